"""Whether a table takes the rows of a document: asked before anything is planned. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from connect_core.errors import ConfigError
from connect_core.rows.types import Type
from connect_core.systems.mysql.catalog import INNODB, MysqlColumn, MysqlTable
from connect_core.systems.mysql.types import holds
from connect_core.systems.tables import fitting


def columns_of(table: MysqlTable, rows: Type, where: str) -> list[MysqlColumn]:
    """Of each field the column. Raises ConfigError with the first thing that does not fit."""
    check_engine(table, where)
    return fitting.columns_of(table.columns, rows, holds, where)


def check_engine(table: MysqlTable, where: str) -> None:
    """Raises ConfigError for a table that has no transactions, and for what is none."""
    if not table.engine:
        raise ConfigError("This is no table", where=where, next_step="Name a table; views have no rows of their own")
    if table.engine.lower() != INNODB.lower():
        words = f"The engine of the table is {table.engine}, which has no transactions as they are needed"
        raise ConfigError(words, where=where, next_step="ALTER TABLE … ENGINE = InnoDB")


def key_of(table: MysqlTable, wanted: Sequence[str], rows: Type, where: str) -> tuple[str, ...]:
    """The columns that tell rows apart. Raises ConfigError where the table does not see to it, and where another unique
    index could make a row change one with another key."""
    key = tuple(wanted) or table.key
    fitting.key_of(key, table.unique, rows, "CREATE UNIQUE INDEX … ON …", where)
    for name in _others(table, key, rows):
        words = f"Index {name} is unique, too: a row could change one that has another key"
        step = "Name its columns as key, or make the index one that is not unique"
        raise ConfigError(words, where=where, next_step=step)
    return key


def _others(table: MysqlTable, key: Sequence[str], rows: Type) -> Iterator[str]:
    """Unique indexes that a row can meet. A number that the database gives out is always another one."""
    fresh = {column.name for column in table.columns if column.counts and rows.field(column.name) is None}
    for name, columns in table.indexes.items():
        if set(columns) != set(key) and not fresh & set(columns):
            yield name
