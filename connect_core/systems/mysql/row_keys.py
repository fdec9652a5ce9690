"""Primary keys of rows as texts, and conditions that compare rows with them, in SQL. Pure.

A key is kept as texts that the server has made, and goes back to it as literals of which it makes the same values: so
the server compares, by the collation of each column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from connect_core.errors import DataError
from connect_core.systems.mysql.catalog import MysqlColumn, MysqlTable, quoted_name


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
        step = "Have all rows come again: waybill snapshot NAME; or delete the connector and apply it again"
        raise DataError("The key up to which rows came is damaged", next_step=step)
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


def unfit_key(table: MysqlTable) -> str:
    """Why rows cannot be read by the primary key of this table; empty: they can be."""
    if not table.key:
        return "it has no primary key"
    if not all(table.key):
        return "its primary key has a part of a column"
    unfit = [one for one in key_columns(table) if one.word not in _FORMS]
    return f"its primary key has a column of type {unfit[0].word}" if unfit else ""


def key_columns(table: MysqlTable) -> list[MysqlColumn]:
    by_name = {one.name: one for one in table.columns}
    return [by_name[one] for one in table.key]


def texts_of_key(key: Sequence[MysqlColumn]) -> list[str]:
    """SQL of the texts of a key."""
    return [_FORMS[one.word].text.format(quoted_name(one.name)) for one in key]


def signature(key: Sequence[MysqlColumn]) -> str:
    """Another text where the same texts may mean other rows, or come in another order."""
    return ",".join(f"{one.name} {one.kind} {one.collation}".rstrip() for one in key)


def compared(key: Sequence[MysqlColumn], texts: Sequence[str], other: str, last: str) -> str:
    """The columns with a key, the first ones by `other`, and the last one by `last`."""
    literals = [_FORMS[one.word].literal(text, one) for one, text in zip(key, texts, strict=True)]
    names = [quoted_name(one.name) for one in key]
    condition = f"{names[-1]} {last} {literals[-1]}"
    for name, literal in [*zip(names, literals, strict=True)][-2::-1]:
        condition = f"{name} {other}= {literal} AND ({name} {other} {literal} OR ({condition}))"
    return condition
