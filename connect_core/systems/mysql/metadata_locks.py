"""Metadata locks of tables, as the server lists them: who holds some, and into which tables a session has looked."""

from __future__ import annotations

from collections.abc import Sequence

from pymysql.cursors import Cursor

from connect_core.errors import Refused

PLUGIN, SCHEMA = "metadata_lock_info", "performance_schema"
_BY_SCHEMA = """
SELECT CONCAT_WS(':', OWNER_THREAD_ID, OWNER_EVENT_ID, OBJECT_INSTANCE_BEGIN), LOCK_TYPE
FROM performance_schema.metadata_locks
WHERE OBJECT_TYPE = 'TABLE' AND (LOWER(OBJECT_SCHEMA), LOWER(OBJECT_NAME)) IN ({})
"""
_BY_PLUGIN = """
SELECT CAST(THREAD_ID AS CHAR), SUBSTRING(LOCK_MODE, 5) FROM information_schema.METADATA_LOCK_INFO
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
SELECT COUNT(*) FROM performance_schema.setup_instruments
WHERE NAME = 'wait/lock/metadata/sql/mdl' AND ENABLED = 'YES'
"""
Place = tuple[str, str]
"""A database and a table in it."""


def locks_of(asking: Cursor, places: Sequence[Place], where: str) -> list[tuple[str, str]]:
    """Who has a lock of one of these tables, or waits for it, and in which mode. Raises Refused by a server that does
    not show them."""
    statement = _BY_SCHEMA if _shown_by(asking, where) == SCHEMA else _BY_PLUGIN
    asked = ", ".join(["(LOWER(%s), LOWER(%s))"] * len(places))
    asking.execute(statement.format(asked), [name for place in places for name in place])
    return [(str(name), str(mode)) for name, mode in asking.fetchall()]


def tables_of_transaction(asking: Cursor, where: str) -> list[Place]:
    """Into which the transaction of this session has looked, through views and functions, too. Raises Refused by a
    server that does not show them."""
    asking.execute(_OWN_BY_SCHEMA if _shown_by(asking, where) == SCHEMA else _OWN_BY_PLUGIN)
    return [(str(database), str(table)) for database, table in asking.fetchall()]


def _shown_by(asking: Cursor, where: str) -> str:
    if found := who_shows(asking):
        return found
    raise _not_shown(asking, where)


def _not_shown(asking: Cursor, where: str) -> Refused:
    if lost := _lost(asking):
        return Refused(
            f"The server could not list {lost} locks of tables, so it does not show which transactions still write",
            where=where,
            next_step="Raise performance_schema_max_metadata_locks and start the server again: the status"
            " Performance_schema_metadata_lock_lost has to be 0",
        )
    return Refused(
        "The server does not show which transactions still write",
        where=where,
        next_step=f"MariaDB: INSTALL SONAME '{PLUGIN}'. MySQL: enable the instrument wait/lock/metadata/sql/mdl in the"
        " server's configuration, as it is by default, and start it again: what was locked before is not listed. GRANT"
        f" SELECT ON {SCHEMA}.*",
    )


def _lost(asking: Cursor) -> int:
    asking.execute("SHOW GLOBAL STATUS LIKE 'Performance_schema_metadata_lock_lost'")
    return int((asking.fetchone() or ("", 0))[1])


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
