"""What the database says of a table: its columns and its primary key."""

from __future__ import annotations

from typing import NamedTuple

import psycopg2.extensions

from connect_core.systems.postgresql.options import split_table

_COLUMNS = """
SELECT a.attname, format_type(t.oid, CASE WHEN t.oid = a.atttypid THEN a.atttypmod ELSE b.typtypmod END), t.typtype,
       a.attnotnull OR b.typnotnull, a.atthasdef OR a.attidentity <> '' OR b.typdefault IS NOT NULL,
       a.attgenerated <> '' OR a.attidentity = 'a'
FROM pg_attribute a
JOIN pg_type b ON b.oid = a.atttypid
JOIN pg_type t ON t.oid = CASE WHEN b.typtype = 'd' THEN b.typbasetype ELSE b.oid END
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
"""A domain counts as what it is made of."""
_KEY = """
SELECT a.attname FROM pg_index i
JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(attnum, place) ON k.place <= i.indnkeyatts
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
WHERE i.indrelid = %s AND {which} ORDER BY i.indexrelid, k.place
"""
_UNIQUE = """
SELECT array_agg(a.attname ORDER BY a.attname) FROM pg_index i
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
WHERE i.indrelid = %s AND i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indimmediate
GROUP BY i.indexrelid
"""


_FORM = """
SELECT c.relpersistence, c.relkind, c.relrowsecurity,
       array_agg(concat_ws(' ', a.attnum, a.attname, a.atttypid, a.atttypmod, a.attnotnull, a.attgenerated,
                           a.attidentity) ORDER BY a.attnum)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.oid = to_regclass(%s) GROUP BY c.oid
"""


class TableColumn(NamedTuple):
    name: str
    kind: str
    """As `format_type` writes it: `numeric(10,2)`, `timestamp(3) without time zone`, `bigint[]`."""
    is_enum: bool
    required: bool
    """Whether it takes no NULL."""
    filled: bool
    """Whether the database has a value for a row that brings none."""
    generated: bool
    """Whether no row may bring a value."""


class Table(NamedTuple):
    oid: int
    columns: tuple[TableColumn, ...]
    key: tuple[str, ...]
    """Of its primary key; empty without one."""
    unique: frozenset[frozenset[str]]
    """Sets of columns of which no two rows have the same."""
    unlogged: bool
    """Whether a crash of the database empties it."""
    form: object = None
    """What `form_of` said before all this was read."""


def form_of(asking: psycopg2.extensions.cursor, table: str) -> object:
    """Another one once the table keeps values in another way. One statement: it is asked in each transaction."""
    asking.execute(_FORM, (quoted(table),))
    return asking.fetchone()


def read_table(database: psycopg2.extensions.connection, table: str) -> Table | None:
    """None where there is none of that name."""
    with database.cursor() as cursor:
        form = form_of(cursor, table)
        cursor.execute("SELECT oid, relpersistence FROM pg_class WHERE oid = to_regclass(%s)", (quoted(table),))
        number, persistence = cursor.fetchone() or (None, None)
        if number is None:
            return None
        cursor.execute(_COLUMNS, (number,))
        columns = tuple(
            TableColumn(name, kind, typtype == "e", required, filled, generated)
            for name, kind, typtype, required, filled, generated in cursor.fetchall()
        )
        key = primary_key(cursor, number)
        cursor.execute(_UNIQUE, (number,))
        unique = frozenset(frozenset(names) for (names,) in cursor.fetchall())
    return Table(number, columns, key, unique, persistence == "u", form)


def primary_key(asking: psycopg2.extensions.cursor, number: int) -> tuple[str, ...]:
    """The columns of that of the table with this oid; empty without one."""
    asking.execute(_KEY.format(which="i.indisprimary"), (number,))
    return tuple(name for (name,) in asking.fetchall())


def quoted(table: str) -> str:
    return ".".join(map(quoted_name, split_table(table)))


def quoted_name(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
