"""Metadata locks of tables, as the server lists them: who holds some, and into which tables a session has looked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import pymysql
from pymysql.cursors import Cursor

from connect_core.errors import Refused
from connect_core.systems.mysql.failures import is_forbidden

PLUGIN, SCHEMA = "metadata_lock_info", "performance_schema"
_BY_SCHEMA = """
SELECT CONCAT_WS(':', OWNER_THREAD_ID, OWNER_EVENT_ID, OBJECT_INSTANCE_BEGIN), LOCK_TYPE,
       SOURCE LIKE 'mdl.cc%%' OR SOURCE LIKE 'xa.cc%%'
FROM performance_schema.metadata_locks
WHERE OBJECT_TYPE = 'TABLE' AND (LOWER(OBJECT_SCHEMA), LOWER(OBJECT_NAME)) IN ({})
"""
_BY_PLUGIN = """
SELECT CAST(THREAD_ID AS CHAR), SUBSTRING(LOCK_MODE, 5), FALSE FROM information_schema.METADATA_LOCK_INFO
WHERE (LOWER(TABLE_SCHEMA), LOWER(TABLE_NAME)) IN ({})
"""
_OWN_BY_SCHEMA = """
SELECT DISTINCT OBJECT_SCHEMA, OBJECT_NAME FROM performance_schema.metadata_locks
WHERE OBJECT_TYPE = 'TABLE' AND OBJECT_SCHEMA <> 'performance_schema' AND OWNER_THREAD_ID =
  (SELECT THREAD_ID FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID())
ORDER BY 1, 2
"""
_OWN_BY_PLUGIN = """
SELECT DISTINCT TABLE_SCHEMA, TABLE_NAME FROM information_schema.METADATA_LOCK_INFO
WHERE LOCK_TYPE = 'Table metadata lock' AND THREAD_ID = CONNECTION_ID() ORDER BY 1, 2
"""
_IS_INSTRUMENTED = """
SELECT EXISTS (SELECT 1 FROM performance_schema.setup_instruments
               WHERE NAME = 'wait/lock/metadata/sql/mdl' AND ENABLED = 'YES')
   AND EXISTS (SELECT 1 FROM performance_schema.setup_consumers
               WHERE NAME = 'global_instrumentation' AND ENABLED = 'YES')
"""
_LOST, _UP, _COUNTED = "performance_schema_metadata_lock_lost", "uptime", "uptime_since_flush_status"
Place = tuple[str, str]
"""A database and a table in it."""


class TableLock(NamedTuple):
    holder: str
    """Who has the lock, or waits for it."""
    mode: str
    is_copied: bool
    """Whether the server made it of another one, which it has no more: MySQL does so when a transaction is prepared
    (XA PREPARE) or its session ends then, and when it finds one in its log at its start."""


def locks_of(asking: Cursor, places: Sequence[Place], where: str) -> list[TableLock]:
    """Raises Refused by a server that does not show them."""
    asked = ", ".join(["(LOWER(%s), LOWER(%s))"] * len(places))
    with looking_into_schema(where):
        statement = _BY_SCHEMA if _shown_by(asking, where) == SCHEMA else _BY_PLUGIN
        asking.execute(statement.format(asked), [name for place in places for name in place])
    return [TableLock(str(name), str(mode), bool(copied)) for name, mode, copied in asking.fetchall()]


def tables_of_transaction(asking: Cursor, where: str) -> list[Place]:
    """Into which the transaction of this session has looked, through views and functions, too. Raises Refused by a
    server that does not show them."""
    with looking_into_schema(where):
        asking.execute(_OWN_BY_SCHEMA if _shown_by(asking, where) == SCHEMA else _OWN_BY_PLUGIN)
    return [(str(database), str(table)) for database, table in asking.fetchall()]


@contextmanager
def looking_into_schema(where: str) -> Iterator[None]:
    """Raises Refused where the user may not: a right to a table of its own is another one."""
    try:
        yield
    except pymysql.Error as error:
        if not is_forbidden(error):
            raise
        words = f"The user may not look into {SCHEMA}, where the server shows who still writes"
        raise Refused(words, where=where, next_step=f"GRANT SELECT ON {SCHEMA}.* TO the user") from None


def _shown_by(asking: Cursor, where: str) -> str:
    if found := who_shows(asking):
        return found
    raise _not_shown(asking, where)


def _not_shown(asking: Cursor, where: str) -> Refused:
    if lost := _lost(asking):
        return Refused(
            f"The server {lost}, so it does not show which transactions still write",
            where=where,
            next_step="Set performance_schema_max_metadata_locks = -1 in its configuration, which is no limit, and"
            " start it again",
        )
    return Refused(
        "The server does not show which transactions still write",
        where=where,
        next_step=f"MariaDB: INSTALL SONAME '{PLUGIN}'. MySQL: enable the instrument wait/lock/metadata/sql/mdl and the"
        " consumer global_instrumentation in the server's configuration, as by default, and start it again: what was"
        f" locked before is not listed. GRANT SELECT ON {SCHEMA}.*",
    )


def _lost(asking: Cursor) -> str:
    """Why a lock may be missing in the list: a list that was full once lacks those that were taken then, and nobody
    knows whether it was when somebody has had it counted anew (FLUSH STATUS)."""
    asking.execute("SHOW GLOBAL STATUS WHERE Variable_name IN %s", ([_LOST, _UP, _COUNTED],))
    found = {name.lower(): int(value) for name, value in asking.fetchall()}
    if lost := found.get(_LOST, 0):
        return f"could not list {lost} locks of tables"
    asking.execute("SELECT @@performance_schema_max_metadata_locks")
    [most] = asking.fetchone() or (-1,)
    if int(most) >= 0 and found.get(_COUNTED, 0) < found.get(_UP, 0):
        return f"lists at most {most} locks of tables, and its count of the others was reset (FLUSH STATUS)"
    return ""


def who_shows(asking: Cursor) -> str:
    """What lists metadata locks; empty: nothing."""
    asking.execute("SELECT PLUGIN_STATUS FROM information_schema.PLUGINS WHERE PLUGIN_NAME = %s", (PLUGIN.upper(),))
    if asking.fetchone() == ("ACTIVE",):
        return PLUGIN
    asking.execute(f"SELECT @@{SCHEMA}")
    if not (asking.fetchone() or (0,))[0]:
        return ""
    if _lost(asking):
        return ""
    asking.execute(_IS_INSTRUMENTED)
    return SCHEMA if (asking.fetchone() or (0,))[0] else ""
