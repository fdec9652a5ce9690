"""Whether a table takes the rows of a document: asked before anything is planned. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from connect_core.errors import ConfigError
from connect_core.rows.types import Type
from connect_core.systems.postgresql.catalog import Table, TableColumn
from connect_core.systems.postgresql.types import holds
from connect_core.systems.tables import fitting


def columns_of(table: Table, rows: Type, where: str) -> list[TableColumn]:
    """Of each field the column. Raises ConfigError with the first thing that does not fit."""
    if table.unlogged:
        words = "The table is UNLOGGED, so a crash of the database empties it"
        raise ConfigError(words, where=where, next_step="ALTER TABLE … SET LOGGED")
    return fitting.columns_of(table.columns, rows, _keeps, where)


def key_of(table: Table, wanted: Sequence[str], rows: Type, where: str) -> tuple[str, ...]:
    """The columns that tell rows apart. Raises ConfigError where the table does not see to it."""
    key = tuple(wanted) or table.key
    fitting.key_of(key, table.unique, rows, "CREATE UNIQUE INDEX ON …", where)
    return key


def _keeps(column: TableColumn, one: Type) -> bool:
    return holds(column.kind, one, is_enum=column.is_enum)
