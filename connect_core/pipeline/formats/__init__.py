"""Formats of payloads, a module each (docs/transforms.md). `known.py` has a row for each; a format says there which
options of a document go with it, which fields it makes, and how it is read and written.
"""
