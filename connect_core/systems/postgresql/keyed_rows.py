"""Rows of a table whose primary key is no column of whole numbers: what their numbers are, and which come behind a key.

A key is kept as texts that the server has made, and goes back to it as values of the same types: so the server
compares, by the collation of each column.
"""

from __future__ import annotations

from typing import NamedTuple

from psycopg2.extensions import cursor

from connect_core.systems.postgresql.catalog import TableColumn, quoted_name
from connect_core.systems.tables.snapshots import Key
from connect_core.systems.tables.stretches import KEY_DIGITS, PassStretch

NUMBER = '"waybill number"'
_KEY_COLUMNS = """
SELECT k.attnum, a.attname, a.atttypid, a.atttypmod, a.attcollation, coalesce(c.collisdeterministic, true)
FROM pg_index i
JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(attnum, place) ON k.place <= i.indnkeyatts
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
LEFT JOIN pg_collation c ON c.oid = a.attcollation
WHERE i.indrelid = %s AND i.indisprimary ORDER BY k.place
"""


class KeyColumn(NamedTuple):
    number: int
    name: str
    kind: int
    size: int
    collation: int
    compares_all: bool
    """Whether texts of other characters are other ones."""


def key_columns(asking: cursor, number: int) -> list[KeyColumn]:
    """Of the primary key of the table with this oid: without those that it only includes."""
    asking.execute(_KEY_COLUMNS, (number,))
    return [KeyColumn(*row) for row in asking.fetchall()]


def number_of(key: tuple[TableColumn, ...]) -> str:
    """SQL of what gives each row its number, computed once: a digest of the key. The list has neither names nor what
    else a row has, so that only another key is another number."""
    values = f"json_build_array({', '.join(quoted_name(one.name) for one in key)})::text"
    digits = f"left(encode(sha256(convert_to({values}, 'UTF8')), 'hex'), {KEY_DIGITS})"
    return f"(SELECT ('x' || {digits})::bit({4 * KEY_DIGITS})::bigint OFFSET 0) digest ({NUMBER})"


def within_keys(asking: cursor, key: tuple[TableColumn, ...], stretch: PassStretch | None) -> str:
    """A condition."""
    found = [
        f"({_names(key)}) {sign} ({_values(asking, key, values)})"
        for sign, values in ((">", stretch and stretch.after), ("<=", stretch and stretch.until))
        if values is not None
    ]
    return " AND ".join(found) or "true"


def until_behind(asking: cursor, relation: str, key: tuple[TableColumn, ...], condition: str, most: int) -> Key | None:
    """Of the rows that fulfil a condition the key up to which a stretch goes; None where it has all of them."""
    names = _names(key)
    ahead = f"SELECT {names} FROM {relation} WHERE {condition} ORDER BY {names} LIMIT 2 OFFSET {most - 1}"
    texts = ", ".join(f"{quoted_name(one.name)}::text" for one in key)
    asking.execute(f"SELECT {texts} FROM ({ahead}) k")
    found = asking.fetchall()
    return found[0] if len(found) > 1 else None


def _names(key: tuple[TableColumn, ...]) -> str:
    return ", ".join(quoted_name(one.name) for one in key)


def _values(asking: cursor, key: tuple[TableColumn, ...], values: Key) -> str:
    pairs = zip(key, values, strict=True)
    return ", ".join(f"{asking.mogrify('%s', (text,)).decode()}::{one.kind}" for one, text in pairs)
