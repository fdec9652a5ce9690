"""Figures, never pass or fail: `make bench`, or `python -m tests.bench --help`.

Starts a stack of its own in a temporary home on free ports, measures Waybill against a bare loop over the same client,
interleaved, and prints a table; `--write` puts it into docs/figures.md.
"""
