"""What the server does not write into its log, although it happens to tables that are read."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

import pymysql
from pymysql.cursors import Cursor

from connect_core.systems.mysql.binlog.options import MysqlChangesOptions
from connect_core.systems.mysql.binlog.server_log import filters_of
from connect_core.systems.mysql.binlog.server_tables import SeenTables, changed_by_others
from connect_core.systems.mysql.failures import number_of

_NAMES = ("log_slave_updates", "log_replica_updates", "wsrep_on")
_FORBIDDEN, _SYNTAX = 1227, 1064
_MOST = 5
"""Tables that a sentence names."""


def unlogged(asking: Cursor, options: MysqlChangesOptions, seen: SeenTables) -> Iterator[tuple[str, str]]:
    """What would never come, in words, and what to do."""
    yield from _databases(asking, options)
    yield from _of_a_replica(asking)
    if options.foreign_key_actions == "refuse":
        yield from _by_foreign_keys(asking, seen)


def not_ordinary(options: MysqlChangesOptions, seen: SeenTables) -> Iterator[tuple[str, str]]:
    """Tables that the document has by name, and whose rows in the log are not what is in them."""
    for name, kind in sorted(seen.unfit.items()):
        if options.names(name):
            yield f"{name.database}.{name.table} is no ordinary table: {kind}", "Take it out of `tables`"


def _databases(asking: Cursor, options: MysqlChangesOptions) -> Iterator[tuple[str, str]]:
    only, without = filters_of(asking)
    asking.execute("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")
    there = {str(row[0]) for row in asking.fetchall()} | {options.database}
    for of in dict.fromkeys(options.split(one)[0] for one in options.tables):
        for name in sorted(one for one in there | {of} if fnmatchcase(one, of) and "*" not in one):
            if name in without:
                yield f"the log has nothing of database {name} (binlog_ignore_db)", "Take it out of that setting"
            elif only and name not in only:
                yield f"the log has nothing of database {name} (binlog_do_db)", "Add it to that setting"


def _of_a_replica(asking: Cursor) -> Iterator[tuple[str, str]]:
    asking.execute("SHOW GLOBAL VARIABLES WHERE Variable_name IN %s", (_NAMES,))
    found = {name.lower(): str(value).upper() for name, value in asking.fetchall()}
    logs = found.get("log_replica_updates", found.get("log_slave_updates", "ON"))
    if logs not in ("ON", "1") and (found.get("wsrep_on") == "ON" or _is_replica(asking)):
        step = "Read the server that it follows, or set log_slave_updates = ON and restart this one"
        yield "the log of this replica has nothing of what it takes from others (log_slave_updates is OFF)", step


def _is_replica(asking: Cursor) -> bool:
    """Who may not ask for that is told at least whether it runs."""
    for statement in ("SHOW ALL SLAVES STATUS", "SHOW REPLICA STATUS"):
        try:
            asking.execute(statement)
        except pymysql.Error as error:
            if number_of(error) not in (_FORBIDDEN, _SYNTAX):
                raise
        else:
            return asking.fetchone() is not None
    asking.execute("SHOW GLOBAL STATUS WHERE Variable_name IN ('Slaves_running', 'Slave_running')")
    return any(str(value).upper() not in ("0", "OFF") for _, value in asking.fetchall())


def _by_foreign_keys(asking: Cursor, seen: SeenTables) -> Iterator[tuple[str, str]]:
    """MySQL does and logs it as what a statement does, from 9.6 on, unless InnoDB is told to do it."""
    asking.execute("SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'")
    if any(str(value).upper() == "OFF" for _, value in asking.fetchall()):
        return
    found = [f"{name.database}.{name.table}" for name in changed_by_others(asking, seen)]
    if found:
        named = ", ".join(found[:_MOST]) + (f" and {len(found) - _MOST} more" if len(found) > _MOST else "")
        words = f"the log does not have what foreign keys do to rows (ON DELETE CASCADE, SET NULL) of {named}"
        yield words, "Make these keys RESTRICT, or write foreign_key_actions: leave_out if nobody needs these changes"
