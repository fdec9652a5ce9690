"""What a table is called in the log."""

from __future__ import annotations

from typing import NamedTuple


class TableName(NamedTuple):
    database: str
    table: str


NOTES, COPIES = "waybill_snapshots", "waybill_snapshot_rows"
"""Tables of ours by which rows of a snapshot come: what is said of them, and the rows."""
OURS = frozenset((NOTES, COPIES))
