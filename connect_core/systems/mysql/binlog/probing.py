"""Whether a server gives its changes, for `check --probe`. Reads only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pymysql
from pymysql.cursors import Cursor

from connect_core.errors import ConfigError, WaybillError
from connect_core.sdk.plugin import ProbeResult
from connect_core.sdk.values import Json
from connect_core.systems.mysql.binlog import notes
from connect_core.systems.mysql.binlog.chunk_tables import check_tables, check_writable, tables_of
from connect_core.systems.mysql.binlog.options import MysqlChangesOptions
from connect_core.systems.mysql.binlog.server_log import begun_at, files_of, unfit_settings
from connect_core.systems.mysql.binlog.server_tables import SeenTables, seen_tables
from connect_core.systems.mysql.binlog.table_names import OURS, TableName
from connect_core.systems.mysql.binlog.taking_over import why_no_state
from connect_core.systems.mysql.binlog.unlogged import not_ordinary, unlogged
from connect_core.systems.mysql.catalog import quoted
from connect_core.systems.mysql.connecting import connected, server_of
from connect_core.systems.mysql.failures import number_of, understood

_DENIED = 1142
_ME = "CONCAT(QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', 1)), '@', QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)))"
_GRANTED = f"""
SELECT PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES WHERE GRANTEE = {_ME}
UNION SELECT PRIVILEGE_TYPE FROM information_schema.SCHEMA_PRIVILEGES WHERE GRANTEE = {_ME} AND %s LIKE TABLE_SCHEMA
UNION SELECT PRIVILEGE_TYPE FROM information_schema.TABLE_PRIVILEGES
      WHERE GRANTEE = {_ME} AND TABLE_SCHEMA = %s AND TABLE_NAME = %s
"""

_MOST = 5
"""Tables that a finding names."""


def probe(options: Json) -> Iterator[ProbeResult]:
    given = MysqlChangesOptions.model_validate(options)
    where = given.address
    with closing(connected(given, where)) as database, understood(where), database.cursor() as asking:
        yield ProbeResult(True, f"{where} answers, {server_of(database).version}")
        wrong = [*unfit_settings(asking)]
        for words, step in wrong:
            yield ProbeResult(False, f"{words}: changes would be lost: {step}")
        if not wrong:
            yield ProbeResult(True, "its log has whole rows, with the names of columns")
        try:
            files = files_of(asking, where)
            begun_at(given, where, files.names[files.end.file])
            yield ProbeResult(True, f"{given.user} may read the log; it is at {files.names[files.end.file]}")
        except WaybillError as error:
            step = "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* (of MariaDB BINLOG MONITOR)"
            yield ProbeResult(False, f"{given.user} may not read the log: {error.what}: {step}")
            return
        yield ProbeResult(True, _taking_over(asking))
        seen = seen_tables(asking, given)
        yield from _tables(given, seen)
        for words, step in unlogged(asking, given, seen):
            yield ProbeResult(False, f"{words}: {step}")
        if given.snapshot != "never":
            yield from _rows(asking, given, where)


def _rows(asking: Cursor, given: MysqlChangesOptions, where: str) -> Iterator[ProbeResult]:
    """Whether the rows that are there can come."""
    unfit = [*_unfit(asking, given, where), *_rights(asking, given)]
    yield from unfit
    if not unfit:
        yield ProbeResult(True, "rows that are there can be read by primary key, and come through the log")


def _unfit(asking: Cursor, given: MysqlChangesOptions, where: str) -> Iterator[ProbeResult]:
    try:
        check_writable(asking, given, where)
    except ConfigError as error:
        yield ProbeResult(False, f"{error.what}: {error.next_step}")
    for place in tables_of(asking, given):
        named = ".".join(place)
        try:
            check_tables(asking, [place], where)
            asking.execute(f"SELECT 1 FROM {quoted(place)} LIMIT 0")
        except ConfigError as error:
            yield ProbeResult(False, f"{named}: {error.what}: {error.next_step}")
        except pymysql.Error as error:
            if number_of(error) != _DENIED:
                raise
            words = f"{given.user} may not read the rows of table {named}: GRANT SELECT ON {named}"
            yield ProbeResult(False, f"{words}; or write snapshot: never")


def _rights(asking: Cursor, given: MysqlChangesOptions) -> Iterator[ProbeResult]:
    """Those that come with a role are not listed: nothing is said then."""
    asking.execute("SELECT COALESCE(CURRENT_ROLE(), 'NONE')")
    if asking.fetchone() != ("NONE",):
        return
    for table in sorted(OURS):
        asking.execute(_GRANTED, (given.database, given.database, table))
        granted = {one for (one,) in asking.fetchall()}
        if missing := [one for one in notes.RIGHTS if one not in granted]:
            words = f"{given.user} may not make and fill table {given.database}.{table} ({', '.join(missing)})"
            yield ProbeResult(False, f"{words}: {notes.grant(given, table)} Or write snapshot: never")


def _taking_over(asking: Cursor) -> str:
    if why := why_no_state(asking, is_mariadb=server_of(asking.connection).is_mariadb):
        return f"no replica can take over without a loss: {why}"
    return "a replica may take over: transactions have GTIDs"


def _tables(given: MysqlChangesOptions, seen: SeenTables) -> Iterator[ProbeResult]:
    """Who may not see a table reads its changes all the same, and nobody knows what it is."""
    for database, name in map(given.split, given.tables):
        if "*" not in f"{database}{name}" and TableName(database, name) not in seen.kinds:
            words = f"table {database}.{name} is not there, or {given.user} may not see it"
            yield ProbeResult(False, f"{words}: GRANT SHOW VIEW ON {database}.*")
    for words, step in not_ordinary(given, seen):
        yield ProbeResult(False, f"{words}: {step}")
    if left_out := [f"{one.database}.{one.table}" for one in seen.in_the_log if not given.names(one)]:
        more = f" and {len(left_out) - _MOST} more" if len(left_out) > _MOST else ""
        yield ProbeResult(True, f"left out, as no ordinary tables: {', '.join(left_out[:_MOST])}{more}")
