"""Rows of a table whose primary key is no column of whole numbers: what their numbers are, and which come behind a key,
in SQL. Pure, but for one question."""

from __future__ import annotations

from collections.abc import Sequence

from pymysql.cursors import Cursor

from connect_core.systems.mysql.catalog import MysqlColumn, quoted_name
from connect_core.systems.mysql.row_keys import compared, texts_of_key
from connect_core.systems.tables.snapshots import Key
from connect_core.systems.tables.stretches import KEY_DIGITS, PassStretch

DIGEST = "SHA2({}, 256)"


def number_of(key: Sequence[MysqlColumn]) -> str:
    """A digest of the key: of nothing else that a row has."""
    digits = DIGEST.format(f"CONCAT_WS(',', {', '.join(texts_of_key(key))})")
    return f"CAST(CONV(LEFT({digits}, {KEY_DIGITS}), 16, 10) AS SIGNED)"


def within_keys(key: Sequence[MysqlColumn], stretch: PassStretch | None) -> str:
    """A condition."""
    found = []
    if stretch and stretch.after is not None:
        found.append(f"({compared(key, stretch.after, '>', '>')})")
    if stretch and stretch.until is not None:
        found.append(f"({compared(key, stretch.until, '<', '<=')})")
    return " AND ".join(found) or "TRUE"


def until_behind(asking: Cursor, relation: str, key: Sequence[MysqlColumn], condition: str, most: int) -> Key | None:
    """Of the rows that fulfil a condition the key up to which a stretch goes; None where it has all of them."""
    order = ", ".join(quoted_name(one.name) for one in key)
    asking.execute(
        f"SELECT {', '.join(texts_of_key(key))} FROM {relation} WHERE {condition} ORDER BY {order} LIMIT {most - 1}, 2"
    )
    found = asking.fetchall()
    return (*map(str, found[0]),) if len(found) > 1 else None
