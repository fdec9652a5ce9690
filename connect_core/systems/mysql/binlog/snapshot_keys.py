"""Rows of a table by its primary key, chunk by chunk, in SQL. Pure.

A key is kept as texts that the server has made, and goes back to it as literals of which it makes the same values: so
the server compares, by the collation of each column.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from connect_core.errors import DataError
from connect_core.systems.mysql.catalog import MysqlColumn, MysqlTable, quoted, quoted_name
from connect_core.systems.tables.snapshots import Key


class _Form(NamedTuple):
    """`text` makes a text of a column, `literal` a value of such a text."""

    text: str
    literal: Callable[[str, MysqlColumn], str]


def _number(text: str, column: MysqlColumn) -> str:
    return _checked(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", text)


def _quoted(text: str, column: MysqlColumn) -> str:
    return f"'{_checked(r'[0-9a-f:. -]+', text)}'"


def _bytes(text: str, column: MysqlColumn) -> str:
    return f"X'{_checked(r'([0-9a-f]{2})*', text)}'"


def _characters(text: str, column: MysqlColumn) -> str:
    """The name of a collation begins with that of its character set."""
    return f"_{column.collation.partition('_')[0]} {_bytes(text, column)} COLLATE {column.collation}"


def _checked(pattern: str, text: str) -> str:
    if not re.fullmatch(pattern, text, re.IGNORECASE):
        step = "Have all rows come again: waybill snapshot NAME"
        raise DataError("The key up to which rows of a snapshot came is damaged", next_step=step)
    return text


_NUMBER = _Form("CAST({} AS CHAR)", _number)
_FORMS: Mapping[str, _Form] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year"), _NUMBER),
    **dict.fromkeys(("float", "double"), _Form("CAST(CAST({} AS DOUBLE) AS CHAR)", _number)),
    **dict.fromkeys(("bit", "enum", "set"), _Form("CAST(CAST({} AS UNSIGNED) AS CHAR)", _number)),
    **dict.fromkeys(("char", "varchar"), _Form("HEX({})", _characters)),
    **dict.fromkeys(("binary", "varbinary"), _Form("HEX({})", _bytes)),
    **dict.fromkeys(
        ("date", "time", "datetime", "timestamp", "uuid", "inet4", "inet6"), _Form("CAST({} AS CHAR)", _quoted)
    ),
}


def unfit_for_chunks(table: MysqlTable) -> str:
    """Why rows of this table cannot be read by its key; empty: they can be."""
    if table.kind != "BASE TABLE":
        return f"it is {table.kind}"
    if not table.key:
        return "it has no primary key"
    if not all(table.key):
        return "its primary key has a part of a column"
    unfit = [one for one in _of_key(table) if one.word not in _FORMS]
    return f"its primary key has a column of type {unfit[0].word}" if unfit else ""


def key_texts(table: MysqlTable) -> list[str]:
    """SQL of the texts of a key."""
    return [_FORMS[one.word].text.format(quoted_name(one.name)) for one in _of_key(table)]


def key_of(table: MysqlTable, texts: Sequence[str], until: Sequence[str]) -> Key:
    """Of a row of the table, whose rows are read up to the key `until`."""
    return (_signature(table), json.dumps([*until]), *texts)


def until_of(table: MysqlTable, after: Key | None) -> Sequence[str] | None:
    """None where rows are read from the first one on: nothing has come, or by a key that the table no longer has."""
    if after is None or after[0] != _signature(table):
        return None
    until: list[str] = json.loads(after[1])
    return until


def between(table: MysqlTable, after: Key | None, until: Sequence[str] | None) -> str:
    """SQL that is true of the rows that come behind a key: of all up to `until`, where there is one."""
    rest = _compared(table, until, "<", "<=") if until is not None else "TRUE"
    if after is None or until_of(table, after) is None:
        return rest
    return f"({_compared(table, after[2:], '>', '>')}) AND ({rest})"


def _compared(table: MysqlTable, texts: Sequence[str], other: str, last: str) -> str:
    """The columns with a key, the first ones by `other`, and the last one by `last`."""
    columns = _of_key(table)
    literals = [_FORMS[one.word].literal(text, one) for one, text in zip(columns, texts, strict=True)]
    names = [quoted_name(one.name) for one in columns]
    condition = f"{names[-1]} {last} {literals[-1]}"
    for name, literal in [*zip(names, literals, strict=True)][-2::-1]:
        condition = f"{name} {other}= {literal} AND ({name} {other} {literal} OR ({condition}))"
    return condition


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


def _of_key(table: MysqlTable) -> list[MysqlColumn]:
    by_name = {one.name: one for one in table.columns}
    return [by_name[one] for one in table.key]


def _signature(table: MysqlTable) -> str:
    return ",".join(f"{one.name} {one.kind} {one.collation}".rstrip() for one in _of_key(table))
