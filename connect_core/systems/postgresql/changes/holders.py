"""Who holds up rows of a snapshot, as far as the server tells this user. Reads only."""

from __future__ import annotations

from typing import Any

from psycopg2.extensions import cursor

NEWEST = "SELECT pg_current_xact_id()::text::bigint"
"""Above the number of each transaction that had one before."""
_OPEN = """
SELECT pid, seconds FROM (
  SELECT pid, extract(epoch FROM clock_timestamp() - xact_start), age(backend_xid)
  FROM pg_stat_activity WHERE backend_xid IS NOT NULL
  UNION ALL
  SELECT NULL, extract(epoch FROM clock_timestamp() - prepared), age(transaction) FROM pg_prepared_xacts
) AS held (pid, seconds, age)
WHERE age >= age(%s::text::xid8::xid) ORDER BY age DESC LIMIT 1
"""
"""Of all databases: each of them counts. Since when, the server tells who may read pg_stat_activity of others."""
_LOCKED = """
SELECT l.pid, extract(epoch FROM clock_timestamp() - a.xact_start)
FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'relation' AND l.mode = 'AccessExclusiveLock' AND l.relation = %s
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
ORDER BY l.granted DESC, a.xact_start LIMIT 1
"""
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def who_is_open(asking: cursor, newest: int) -> str:
    """The oldest of the transactions that have begun up to this number."""
    asking.execute(_OPEN, (newest,))
    pid, seconds = asking.fetchone() or (0, None)
    if pid is None:
        return f"a transaction has been prepared{_for(seconds)} (see pg_prepared_xacts)"
    who = f"process {pid} of the server" if pid else "another session"
    return f"{who} has had a transaction open{_for(seconds)}" if seconds else f"{who} has a transaction open"


def who_has_locked(asking: cursor, relation: int) -> str:
    """A table, or waits for it in front of everybody else."""
    asking.execute(_LOCKED, (relation,))
    pid, seconds = asking.fetchone() or (None, None)
    who = f"process {pid} of the server" if pid else "another session"
    since = f", in a transaction that has been open{_for(seconds)}" if seconds else ""
    return f"{who} has locked the table{since}"


def _for(seconds: Any) -> str:
    return f" for {shown(float(seconds))}" if seconds is not None else ""


def shown(seconds: float) -> str:
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds // size:,.0f} {unit}"
    return f"{seconds:.0f} s"
