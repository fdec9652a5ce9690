"""One look at a table that others write: its highest id, and then who may still bring a lower one."""

from __future__ import annotations

from psycopg2.extensions import cursor

from connect_core.systems.postgresql.catalog import quoted_name
from connect_core.systems.postgresql.keyed_rows import NUMBER, until_behind, within_keys
from connect_core.systems.postgresql.source_catalog import SourceTable
from connect_core.systems.postgresql.source_options import PostgresSourceOptions
from connect_core.systems.postgresql.source_query import query_as_it_is
from connect_core.systems.postgresql.table_reading import changed_in, numbered_rows
from connect_core.systems.tables.finality import OpenTransaction
from connect_core.systems.tables.passes import Among, TimeWindow
from connect_core.systems.tables.queries import PARTITION
from connect_core.systems.tables.query_rows import extent_of
from connect_core.systems.tables.snapshots import Key
from connect_core.systems.tables.stretches import KEY_NUMBERS, PassStretch

_WRITERS = """
WITH RECURSIVE watched AS (
  SELECT unnest(%s::oid[]) AS number UNION SELECT inhrelid FROM pg_inherits JOIN watched ON inhparent = number
)
SELECT DISTINCT virtualtransaction, pid IS NULL FROM pg_locks
WHERE locktype = 'relation' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND relation IN (SELECT number FROM watched)
  AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
"""
"""`nextval` holds RowExclusiveLock on its sequence until the end of its transaction, also when a savepoint is rolled
back; so does an INSERT on its table and on the partition. A prepared transaction has no process."""
_OPEN = """
SELECT 'session ' || l.virtualtransaction, false
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'virtualxid' AND l.mode = 'ExclusiveLock' AND l.pid <> pg_backend_pid()
  AND a.datname = current_database() AND a.usesysid IS NOT NULL
UNION ALL SELECT 'prepared ' || gid, true FROM pg_prepared_xacts WHERE database = current_database()
"""
"""Each transaction holds the lock of its own number until it ends. What belongs to nobody (autovacuum) sets no time."""


def database_now(asking: cursor) -> float:
    asking.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
    [now] = asking.fetchone() or (0.0,)
    return float(now)


def extent(asking: cursor, table: SourceTable, window: TimeWindow | None = None) -> tuple[int | None, int | None]:
    """The lowest and the highest id that are committed, of rows in `window`; None where there is no row."""
    if table.is_keyed:
        return (0, KEY_NUMBERS - 1) if _is_any(asking, table, changed_in(table, window)) else (None, None)
    ids = quoted_name(table.id)
    asking.execute(f"SELECT min({ids}), max({ids}) FROM {table.relation} WHERE {changed_in(table, window)}")
    lowest, highest = asking.fetchone() or (None, None)
    return lowest, highest


def key_stretch(
    asking: cursor, table: SourceTable, window: TimeWindow | None, after: Key | None, most: int
) -> PassStretch | None:
    """Of rows in `window` that are numbered by their keys the next ones, behind a key; None where there are none."""
    behind = PassStretch(0, KEY_NUMBERS, after)
    condition = f"{changed_in(table, window)} AND {within_keys(asking, table.key, behind)}"
    if not _is_any(asking, table, condition):
        return None
    return behind._replace(until=until_behind(asking, table.relation, table.key, condition, most))


def are_apart(asking: cursor, table: SourceTable, among: Among) -> bool:
    """Whether no two of these rows, which are numbered by their keys, have one number."""
    asking.execute(f"SELECT count(*) = count(DISTINCT {NUMBER}) FROM {numbered_rows(asking, table, among)}")
    [are_apart] = asking.fetchone() or (True,)
    return bool(are_apart)


def _is_any(asking: cursor, table: SourceTable, condition: str) -> bool:
    asking.execute(f"SELECT 1 FROM {table.relation} WHERE {condition} LIMIT 1")
    return asking.fetchone() is not None


def writers(asking: cursor, table: SourceTable) -> list[OpenTransaction]:
    """A time may be that of the transaction's begin, long before it has a lock on the table: then all that are open
    count. So they do of a query, whichever tables it reads, and wherever its numbers come from."""
    all_count = table.time or table.is_query
    asking.execute(_OPEN if all_count else _WRITERS, None if all_count else (table.watched,))
    return [OpenTransaction(*row) for row in asking.fetchall()]


def query_extent(
    asking: cursor, options: PostgresSourceOptions, window: TimeWindow | None = None
) -> tuple[int | None, int | None]:
    """The same of a query. Raises ConfigError where a row has no number, or no time."""
    with query_as_it_is(asking, options) as table:
        named = {name: quoted_name(name) for name in (table.id, table.time.name if table.time else "") if name}
        condition, where = changed_in(table, window), f"{options.address}/{PARTITION}"
        return extent_of(asking, table.relation, named[table.id], condition, named, where)


def sequence_stands_at(asking: cursor, table: SourceTable) -> int | None:
    """The highest number that a sequence of the column has given out; None where there is none, or not all may be
    read."""
    if not table.sequences or not all(one.may_read for one in table.sequences):
        return None
    numbers = []
    for one in table.sequences:
        asking.execute(f"SELECT CASE WHEN is_called THEN last_value ELSE last_value - {one.step} END FROM {one.name}")
        numbers += [int(number) for (number,) in asking.fetchall()]
    return max(numbers)
