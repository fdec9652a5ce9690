"""Rows of a table by its key, chunk by chunk, in SQL. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from connect_core.systems.postgresql.catalog import quoted_name
from connect_core.systems.postgresql.changes.chunk_tables import ChunkTable
from connect_core.systems.tables.row_conditions import CONDITION_S
from connect_core.systems.tables.snapshots import Key


class RowStretch(NamedTuple):
    """Which rows of a table: SQL behind its name, and what that is given."""

    sql: str = ""
    given: Sequence[str] = ()

    def up_to(self, of: ChunkTable, last: Key) -> RowStretch:
        return self._and(_compared(of, "<="), of.behind(last) or ())

    def with_condition(self, condition: str) -> RowStretch:
        """What it has of the signs that stand for what is given is its own."""
        return self._and(f"({condition.replace('%', '%%')})", ()) if condition else self

    def _and(self, condition: str, given: Sequence[str]) -> RowStretch:
        return RowStretch(f"{self.sql} AND {condition}" if self.sql else f"WHERE {condition}", (*self.given, *given))


def behind(of: ChunkTable, after: Key | None) -> RowStretch:
    """Rows that come behind a key, all where there is none."""
    values = of.behind(after)
    return RowStretch() if values is None else RowStretch(f"WHERE {_compared(of, '>')}", values)


def last_key(of: ChunkTable, within: RowStretch, most: int) -> str:
    """SQL of the key of the last one of the next so many rows: nothing where there are fewer."""
    key = _named(of)
    rows = f"SELECT {key} FROM {of.from_} {within.sql} ORDER BY {key} LIMIT 1 OFFSET {most - 1}"
    return f"SELECT {_texts(of)} FROM ({rows}) c"


def rows_of(of: ChunkTable, row_prefix: str, within: RowStretch, most: str = "") -> tuple[str, list[str]]:
    """SQL that writes the rows into the log, and gives the key of each."""
    columns = ", ".join(quoted_name(one.name) for one in of.relation.columns)
    statement = (
        f"SELECT pg_logical_emit_message(true, %s, ROW({columns})::text), {_texts(of)}"
        f" FROM (SELECT {columns} FROM {of.from_} {within.sql} ORDER BY {_named(of)} {most}) c"
    )
    return statement, [row_prefix, *within.given]


def time_limit(statement_timeout_s: float) -> str:
    """SQL that ends statements with a condition, until the transaction ends."""
    return f"SET LOCAL statement_timeout = {max(1, round(min(statement_timeout_s, CONDITION_S) * 1000))}"


def _texts(of: ChunkTable) -> str:
    return ", ".join(f"{quoted_name(one)}::text" for one in of.key_columns)


def _named(of: ChunkTable) -> str:
    return ", ".join(map(quoted_name, of.key_columns))


def _compared(of: ChunkTable, sign: str) -> str:
    key = ", ".join(f"%s::{of.kinds[one]}" for one in of.key_columns)
    return f"({_named(of)}) {sign} ({key})"
