"""Rows of a table by its primary key, chunk by chunk, in SQL. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence

from connect_core.systems.mysql.catalog import MysqlTable, quoted, quoted_name
from connect_core.systems.mysql.row_keys import compared, key_columns, signature, texts_of_key, unfit_key
from connect_core.systems.tables.snapshots import Key


def unfit_for_chunks(table: MysqlTable) -> str:
    """Why rows of this table cannot be read by its key; empty: they can be."""
    if table.kind != "BASE TABLE":
        return f"it is {table.kind}"
    return unfit_key(table)


def key_texts(table: MysqlTable) -> list[str]:
    """SQL of the texts of a key."""
    return texts_of_key(key_columns(table))


def key_of(table: MysqlTable, texts: Sequence[str], until: Sequence[str]) -> Key:
    """Of a row of the table, whose rows are read up to the key `until`."""
    return (signature(key_columns(table)), json.dumps([*until]), *texts)


def until_of(table: MysqlTable, after: Key | None) -> Sequence[str] | None:
    """None where rows are read from the first one on: nothing has come, or by a key that the table no longer has."""
    if after is None or after[0] != signature(key_columns(table)):
        return None
    until: list[str] = json.loads(after[1])
    return until


def between(table: MysqlTable, after: Key | None, until: Sequence[str] | None) -> str:
    """SQL that is true of the rows that come behind a key: of all up to `until`, where there is one."""
    rest = compared(key_columns(table), until, "<", "<=") if until is not None else "TRUE"
    if after is None or until_of(table, after) is None:
        return rest
    return f"({compared(key_columns(table), after[2:], '>', '>')}) AND ({rest})"


def by_key(table: MysqlTable) -> str:
    """The table, read in the order of its key."""
    return f"{quoted((table.database, table.name))} FORCE INDEX (PRIMARY)"


def rows_of(table: MysqlTable, within: str, condition: str = "") -> str:
    """SQL of the rows of a stretch that fulfil a condition, in order."""
    columns = ", ".join(quoted_name(one.name) for one in table.columns)
    which = f"({within}) AND ({condition})" if condition else within
    return f"SELECT {columns} FROM {by_key(table)} WHERE {which} ORDER BY {in_order(table)}"


def in_order(table: MysqlTable, *, descending: bool = False) -> str:
    way = " DESC" if descending else ""
    return ", ".join(f"{quoted_name(one)}{way}" for one in table.key)


def copy_of(table: MysqlTable, name: str) -> str:
    """SQL that makes a table with the same columns, so that the log has the same of its rows. What the database makes
    itself of a row is a value as others are."""
    columns = [
        f"{quoted_name(one.name)} {one.kind}{f' COLLATE {one.collation}' if one.collation else ''}"
        f" {'NOT NULL' if one.name in table.key else 'NULL'}"
        for one in table.columns
    ]
    return f"CREATE TABLE {name} ({', '.join(columns)}, PRIMARY KEY ({in_order(table)})) ENGINE=InnoDB"
