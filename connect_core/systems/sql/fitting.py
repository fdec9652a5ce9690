"""Whether a table takes the rows of a document: asked before anything is planned. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from connect_core.rows.types import Type
from connect_core.systems.sql.catalog import SqlColumn, SqlTable
from connect_core.systems.sql.types import holds
from connect_core.systems.tables import fitting


def columns_of(table: SqlTable, rows: Type, where: str) -> list[SqlColumn]:
    """Of each field the column. Raises ConfigError with the first thing that does not fit."""
    return fitting.columns_of(table.columns, rows, holds, where)


def key_of(table: SqlTable, wanted: Sequence[str], rows: Type, where: str) -> tuple[str, ...]:
    """The columns that tell rows apart. Raises ConfigError where the table does not see to it."""
    key = tuple(wanted) or table.key
    fitting.key_of(key, table.unique, rows, "CREATE UNIQUE INDEX … ON …", where)
    return key
