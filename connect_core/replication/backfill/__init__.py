"""Backfills and replays: what is asked for (`request`), which offsets that is (`select`), how it begins (`start`), and
what its attempts take from the connector (`run`).
"""
