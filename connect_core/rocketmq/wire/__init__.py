"""The remoting protocol as values: bytes in, values out, and back. No socket, clock, thread or logger; only the
standard library. Malformed input raises `connect_core.errors.WireFormatError` and nothing else.
"""
