"""What a table is called in the log."""

from __future__ import annotations

from typing import NamedTuple


class TableName(NamedTuple):
    database: str
    table: str
