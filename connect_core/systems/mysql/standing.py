"""One look at a table that others write: its highest number, and then who may still bring a lower one.

A number is given out within the statement that inserts its row, and a statement that writes a table holds a metadata
lock of it before it does anything else, until its transaction has ended and what it did can be seen. InnoDB's own list
of transactions says less: one comes into it only behind the number, and the list is up to 0.1 s old.
"""

from __future__ import annotations

from pymysql.cursors import Cursor

from connect_core.errors import Refused
from connect_core.systems.mysql.catalog import quoted, quoted_name
from connect_core.systems.mysql.source_catalog import MysqlSourceTable
from connect_core.systems.mysql.table_reading import changed_in
from connect_core.systems.tables.finality import OpenTransaction
from connect_core.systems.tables.passes import TimeWindow

PLUGIN, SCHEMA = "metadata_lock_info", "performance_schema"
_READING = ("SHARED", "SHARED_HIGH_PRIO", "SHARED_READ", "SHARED_READ_ONLY")
"""Modes of metadata locks with which nobody inserts."""
_BY_SCHEMA = """
SELECT CONCAT_WS(':', OWNER_THREAD_ID, OWNER_EVENT_ID, OBJECT_INSTANCE_BEGIN), LOCK_TYPE
FROM performance_schema.metadata_locks
WHERE OBJECT_TYPE = 'TABLE' AND LOWER(OBJECT_SCHEMA) = LOWER(%s) AND LOWER(OBJECT_NAME) = LOWER(%s)
"""
_BY_PLUGIN = """
SELECT CAST(THREAD_ID AS CHAR), SUBSTRING(LOCK_MODE, 5) FROM information_schema.METADATA_LOCK_INFO
WHERE LOWER(TABLE_SCHEMA) = LOWER(%s) AND LOWER(TABLE_NAME) = LOWER(%s)
"""
_IS_INSTRUMENTED = """
SELECT COUNT(*) FROM performance_schema.setup_instruments
WHERE NAME = 'wait/lock/metadata/sql/mdl' AND ENABLED = 'YES'
"""


def database_now(asking: Cursor, table: MysqlSourceTable) -> float:
    """What the clock said before the table was looked at: who waits then for the lock of a writer, behind an ALTER
    TABLE, has it behind that look."""
    asking.execute("SELECT UNIX_TIMESTAMP(NOW(6))")
    [now] = asking.fetchone() or (0,)
    asking.execute(f"SELECT 1 FROM {quoted(table.place)} LIMIT 1")
    return float(now)


def extent(asking: Cursor, table: MysqlSourceTable, window: TimeWindow | None = None) -> tuple[int | None, int | None]:
    """The lowest and the highest number that are committed, of rows in `window`; None where there is no row."""
    ids = quoted_name(table.id)
    where = changed_in(table, window)
    asking.execute(f"SELECT MIN({ids}), MAX({ids}) FROM {quoted(table.place)} WHERE {where}")
    lowest, highest = asking.fetchone() or (None, None)
    return lowest, highest


def writers(asking: Cursor, table: MysqlSourceTable, where: str) -> list[OpenTransaction]:
    """Raises Refused by a server that does not show them."""
    shown_by = who_shows(asking)
    if not shown_by:
        raise _not_shown(asking, where)
    asking.execute(_BY_SCHEMA if shown_by == SCHEMA else _BY_PLUGIN, table.place)
    found = [OpenTransaction(name, prepared=False) for name, mode in asking.fetchall() if mode not in _READING]
    return found + (_prepared(asking) if table.is_mariadb else [])


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


def _prepared(asking: Cursor) -> list[OpenTransaction]:
    """Of two-phase commits, whichever tables they write: in MariaDB such a one has no metadata lock any more once its
    session has ended."""
    asking.execute("XA RECOVER")
    return [OpenTransaction(f"xa {one!r}", prepared=True) for *_, one in asking.fetchall()]


def counter_stands_at(asking: Cursor, table: MysqlSourceTable) -> int | None:
    """The highest number that was given out; None where the database gives none out."""
    if not table.counts:
        return None
    counter = "SELECT AUTO_INCREMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    asking.execute(counter, table.place)
    [following] = asking.fetchone() or (None,)
    return None if following is None else int(following) - 1
