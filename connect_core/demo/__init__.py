"""`make demo`: log files to a topic and back to a file, with two kills on the way, and a comparison at the end.

A user of the `waybill` command like any other: runs are subprocesses, and nothing here reaches into a run.
"""
