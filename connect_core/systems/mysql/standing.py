"""One look at a table that others write: its highest number, and then who may still bring a lower one.

A number is given out within the statement that inserts its row, and a statement that writes a table holds a metadata
lock of it before it does anything else, until its transaction has ended and what it did can be seen. InnoDB's own list
of transactions says less: one comes into it only behind the number, and the list is up to 0.1 s old.
"""

from __future__ import annotations

from pymysql.cursors import Cursor

from connect_core.systems.mysql.catalog import quoted_name
from connect_core.systems.mysql.keyed_rows import number_of, until_behind, within_keys
from connect_core.systems.mysql.metadata_locks import locks_of
from connect_core.systems.mysql.source_catalog import MysqlSourceTable
from connect_core.systems.mysql.source_options import MysqlSourceOptions
from connect_core.systems.mysql.source_query import query_as_it_is
from connect_core.systems.mysql.table_reading import changed_in
from connect_core.systems.tables.finality import OpenTransaction
from connect_core.systems.tables.passes import Among, TimeWindow
from connect_core.systems.tables.queries import PARTITION
from connect_core.systems.tables.query_rows import extent_of
from connect_core.systems.tables.snapshots import Key
from connect_core.systems.tables.stretches import KEY_NUMBERS, PassStretch

_READING = ("SHARED", "SHARED_HIGH_PRIO", "SHARED_READ", "SHARED_READ_ONLY")
"""Modes of metadata locks with which nobody inserts."""


def database_now(asking: Cursor, table: MysqlSourceTable) -> float:
    """What the clock said before the table was looked at: who waits then for the lock of a writer, behind an ALTER
    TABLE, has it behind that look."""
    asking.execute("SELECT UNIX_TIMESTAMP(NOW(6))")
    [now] = asking.fetchone() or (0,)
    asking.execute(f"SELECT 1 FROM {table.relation} LIMIT {0 if table.is_query else 1}")
    return float(now)


def extent(asking: Cursor, table: MysqlSourceTable, window: TimeWindow | None = None) -> tuple[int | None, int | None]:
    """The lowest and the highest number that are committed, of rows in `window`; None where there is no row."""
    where = changed_in(table, window)
    if table.is_keyed:
        return (0, KEY_NUMBERS - 1) if _is_any(asking, table, where) else (None, None)
    ids = quoted_name(table.id)
    asking.execute(f"SELECT MIN({ids}), MAX({ids}) FROM {table.relation} WHERE {where}")
    lowest, highest = asking.fetchone() or (None, None)
    return lowest, highest


def key_stretch(
    asking: Cursor, table: MysqlSourceTable, window: TimeWindow | None, after: Key | None, most: int
) -> PassStretch | None:
    """Of rows in `window` that are numbered by their keys the next ones, behind a key; None where there are none."""
    behind = PassStretch(0, KEY_NUMBERS, after)
    condition = f"{changed_in(table, window)} AND {within_keys(table.key, behind)}"
    if not _is_any(asking, table, condition):
        return None
    return behind._replace(until=until_behind(asking, table.relation, table.key, condition, most))


def are_apart(asking: Cursor, table: MysqlSourceTable, among: Among) -> bool:
    """Whether no two of these rows, which are numbered by their keys, have one number."""
    condition = f"{changed_in(table, among.window)} AND {within_keys(table.key, among.stretch)}"
    numbers = f"COUNT(*) = COUNT(DISTINCT {number_of(table.key)})"
    asking.execute(f"SELECT {numbers} FROM {table.relation} WHERE {condition}")
    [are_apart] = asking.fetchone() or (1,)
    return bool(are_apart)


def _is_any(asking: Cursor, table: MysqlSourceTable, condition: str) -> bool:
    asking.execute(f"SELECT 1 FROM {table.relation} WHERE {condition} LIMIT 1")
    return asking.fetchone() is not None


def query_extent(
    asking: Cursor, options: MysqlSourceOptions, window: TimeWindow | None = None
) -> tuple[int | None, int | None]:
    """The same of a query. Raises ConfigError where a row has no number, or no time."""
    with query_as_it_is(asking, options) as table:
        named = {name: quoted_name(name) for name in (table.id, table.time) if name}
        condition, where = changed_in(table, window), f"{options.address}/{PARTITION}"
        return extent_of(asking, table.relation, named[table.id], condition, named, where)


def writers(asking: Cursor, table: MysqlSourceTable, where: str) -> list[OpenTransaction]:
    """Raises Refused by a server that does not show them."""
    locks = [one for one in locks_of(asking, table.places, where) if one.mode not in _READING]
    if not table.is_mariadb:
        return [OpenTransaction(one.holder, prepared=one.is_copied) for one in locks]
    return [OpenTransaction(one.holder, prepared=False) for one in locks] + _prepared(asking)


def _prepared(asking: Cursor) -> list[OpenTransaction]:
    """Of two-phase commits, whichever tables they write: in MariaDB such a one has no metadata lock any more once its
    session has ended. In MySQL it has, and few users may ask for a list of those that are prepared."""
    asking.execute("XA RECOVER")
    return [OpenTransaction(f"xa {one!r}", prepared=True) for *_, one in asking.fetchall()]


def counter_stands_at(asking: Cursor, table: MysqlSourceTable) -> int | None:
    """The highest number that was given out; None where the database gives none out."""
    if not table.counts:
        return None
    counter = "SELECT AUTO_INCREMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    asking.execute(counter, table.places[0])
    [following] = asking.fetchone() or (None,)
    return None if following is None else int(following) - 1
