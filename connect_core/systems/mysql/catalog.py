"""What the database says of a table: its engine, its columns and its keys."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any, NamedTuple

from pymysql.cursors import Cursor

_TABLE = """
SELECT ENGINE, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s
"""
_COLUMNS = """
SELECT COLUMN_NAME, COLUMN_TYPE, DATA_TYPE, IS_NULLABLE, COLUMN_DEFAULT IS NOT NULL, EXTRA,
       COALESCE(GENERATION_EXPRESSION, ''), NUMERIC_PRECISION, NUMERIC_SCALE, COALESCE(DATETIME_PRECISION, 0),
       CHARACTER_MAXIMUM_LENGTH, COLLATION_NAME
FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION
"""
_INDEXES = """
SELECT INDEX_NAME, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND NON_UNIQUE = 0 ORDER BY INDEX_NAME, SEQ_IN_INDEX
"""
PRIMARY = "PRIMARY"
INNODB = "InnoDB"
_MADE = re.compile(r"\b(VIRTUAL|STORED|PERSISTENT) GENERATED|\bPERSISTENT\b|GENERATED ALWAYS")
_WORD = re.compile(r"'((?:[^']|'')*)'")


class MysqlColumn(NamedTuple):
    name: str
    kind: str
    """As the catalog writes it: `bigint(20) unsigned`, `varchar(9)`, `enum('a','b')`."""
    word: str
    """The first word of that: `bigint`, `varchar`."""
    required: bool
    """Whether it takes no NULL."""
    filled: bool
    """Whether the database has a value for a row that brings none."""
    generated: bool
    """Whether no row may bring a value."""
    counts: bool
    """Whether it is AUTO_INCREMENT."""
    precision: int
    scale: int
    digits: int
    """Of a second."""
    length: int
    """Characters, or bytes."""
    collation: str
    """Empty of a column that has none."""

    @property
    def unsigned(self) -> bool:
        return " unsigned" in self.kind

    @property
    def texts(self) -> list[str]:
        """Of an enum or a set, those that it knows."""
        return [word.replace("''", "'") for word in _WORD.findall(self.kind)]


class MysqlTable(NamedTuple):
    database: str
    name: str
    engine: str
    """Empty of a view."""
    columns: tuple[MysqlColumn, ...]
    key: tuple[str, ...]
    """Of its primary key; empty without one."""
    indexes: dict[str, tuple[str, ...]]
    """By name those that are unique; an expression, or the first characters of a column, has an empty name."""
    form: object = None
    """What `form_of` said of it."""
    kind: str = ""
    """What the server calls it: `BASE TABLE`."""

    @property
    def unique(self) -> frozenset[frozenset[str]]:
        """Sets of columns of which no two rows have the same."""
        return frozenset(frozenset(names) for names in self.indexes.values() if all(names))


def form_of(asking: Cursor, place: tuple[str, str]) -> tuple[Any, ...] | None:
    """Another one once the table keeps values in another way; None where there is no such table."""
    asking.execute(_TABLE, place)
    found = asking.fetchone()
    if found is None:
        return None
    asking.execute(_COLUMNS, place)
    return (*found, tuple(asking.fetchall()))


def read_table(asking: Cursor, place: tuple[str, str]) -> MysqlTable | None:
    """None where there is none of that name."""
    form = form_of(asking, place)
    if form is None:
        return None
    engine, kind, rows = form
    asking.execute(_INDEXES, place)
    indexes = defaultdict[str, list[str]](list)
    for name, column, prefix in asking.fetchall():
        indexes[name].append("" if column is None or prefix is not None else column)
    unique = {name: tuple(names) for name, names in indexes.items()}
    return MysqlTable(*place, engine or "", tuple(map(_column, rows)), unique.get(PRIMARY, ()), unique, form, kind)


def _column(row: tuple[Any, ...]) -> MysqlColumn:
    name, kind, word, nullable, default, extra, expression, precision, scale, digits, length, collation = row
    counts = "auto_increment" in extra
    return MysqlColumn(
        name,
        kind,
        word,
        nullable == "NO",
        bool(default) or counts,
        bool(expression) or _MADE.search(extra.upper()) is not None,
        counts,
        int(precision or 0),
        int(scale or 0),
        int(digits),
        int(length or 0),
        collation or "",
    )


def quoted(place: tuple[str, str]) -> str:
    return ".".join(map(quoted_name, place))


def quoted_name(name: str) -> str:
    escaped = name.replace("`", "``")
    return f"`{escaped}`"
