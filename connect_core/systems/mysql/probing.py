"""What a database says of the sink's tables, for `check --probe`. Reads only: what would be made is shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from pymysql.cursors import Cursor

from connect_core.errors import ConfigError
from connect_core.rows.types import struct_of
from connect_core.sdk.plugin import ProbeResult
from connect_core.sdk.values import Json
from connect_core.systems.mysql.catalog import INNODB, MysqlTable, quoted_name, read_table
from connect_core.systems.mysql.connecting import connected, server_of
from connect_core.systems.mysql.failures import understood
from connect_core.systems.mysql.fitting import columns_of, key_of
from connect_core.systems.mysql.making import add_columns, create_table
from connect_core.systems.mysql.options import MysqlSinkOptions
from connect_core.systems.mysql.rights import OF_MARKERS, OF_TABLE, missing
from connect_core.systems.tables.fitting import there_are

_MAY_MAKE = """
SELECT COUNT(*) FROM (
  SELECT GRANTEE, PRIVILEGE_TYPE, '%%' AS place FROM information_schema.USER_PRIVILEGES
  UNION ALL SELECT GRANTEE, PRIVILEGE_TYPE, TABLE_SCHEMA FROM information_schema.SCHEMA_PRIVILEGES
) one WHERE PRIVILEGE_TYPE = %s AND %s LIKE place
"""
_FOLLOWING = """
SELECT TABLE_NAME, CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS
WHERE UNIQUE_CONSTRAINT_SCHEMA = %s AND REFERENCED_TABLE_NAME = %s
  AND (DELETE_RULE NOT IN ('RESTRICT', 'NO ACTION') OR UPDATE_RULE NOT IN ('RESTRICT', 'NO ACTION'))
ORDER BY 1, 2
"""
"""Whose rows the server changes by itself when rows of this table go or get another key."""


def probe_sink(options: Json) -> Iterator[ProbeResult]:
    given = MysqlSinkOptions.model_validate(options)
    where = given.address
    with closing(connected(given, where)) as database, understood(where), database.cursor() as asking:
        yield from server_probed(asking, where)
        several = given.each()
        for one in several:
            for found in _table_probed(asking, one):
                known = len(several) == 1 or one.table in found.what
                yield found if known else ProbeResult(found.ok, f"{one.table}: {found.what}")
        yield from _markers(asking, given)


def _table_probed(asking: Cursor, given: MysqlSinkOptions) -> Iterator[ProbeResult]:
    table = read_table(asking, given.split(given.table))
    if table is not None:
        yield ProbeResult(True, f"table {given.table} is there, engine {table.engine or 'none: it is a view'}")
        yield from _fits(asking, table, given)
        yield from rights(asking, table, given.table, OF_TABLE[given.mode], given.user)
        if given.mode == "upsert":
            yield from _following_rows(asking, table, given.table)
    elif given.create_table:
        yield from _made(asking, given)
    else:
        yield ProbeResult(False, f"table {given.table} does not exist")


def _following_rows(asking: Cursor, table: MysqlTable, name: str) -> Iterator[ProbeResult]:
    asking.execute(_FOLLOWING, (table.database, table.name))
    for other, constraint in asking.fetchall():
        untold = f"go or change with rows of table {name}, and no receipt tells of that"
        yield ProbeResult(True, f"rows of table {other} {untold} (constraint {constraint})")


def server_probed(asking: Cursor, where: str, *, may_be_read_only: bool = False) -> Iterator[ProbeResult]:
    asking.execute("SELECT @@read_only, @@innodb_flush_log_at_trx_commit")
    read_only, flushed = asking.fetchone() or (0, 1)
    server = server_of(asking.connection)
    name = f"{where} answers, {'MariaDB' if server.is_mariadb else 'MySQL'} {server.version}"
    yield ProbeResult(may_be_read_only or not read_only, f"{name}{', which is read-only' if read_only else ''}")
    if flushed != 1:
        words = f"innodb_flush_log_at_trx_commit is {flushed}: a crash may lose what was committed and has a receipt"
        yield ProbeResult(True, words)


def rights(asking: Cursor, table: MysqlTable, name: str, wanted: tuple[str, ...], user: str) -> Iterator[ProbeResult]:
    lacks = missing(asking, table, wanted)
    named = ", ".join(lacks or wanted)
    if lacks:
        yield ProbeResult(False, f"{user} lacks {named} on {name}: GRANT {named}")
    else:
        yield ProbeResult(True, f"{user} has {named} on {name}")


def _markers(asking: Cursor, given: MysqlSinkOptions) -> Iterator[ProbeResult]:
    table = read_table(asking, given.split(given.markers))
    if table is None:
        yield _may_be_made(asking, given, given.markers)
    elif table.engine.lower() != INNODB.lower():
        yield ProbeResult(
            False, f"the engine of table {given.markers} is {table.engine}: ALTER TABLE … ENGINE = InnoDB"
        )
    else:
        yield from rights(asking, table, given.markers, OF_MARKERS, given.user)


def _made(asking: Cursor, given: MysqlSinkOptions) -> Iterator[ProbeResult]:
    may = _may_be_made(asking, given, given.table)
    if not may.ok or not given.row_fields:
        yield may
        return
    try:
        statement = create_table(given.split(given.table), struct_of(given.row_fields), given.key)
    except ConfigError as error:
        yield ProbeResult(False, f"{error.what}: {error.next_step}")
        return
    yield ProbeResult(True, f"table {given.table} will be made: {statement}")


def _may_be_made(asking: Cursor, given: MysqlSinkOptions, table: str) -> ProbeResult:
    database, _ = given.split(table)
    may = _has_right(asking, "CREATE", database)
    refused = f"does not exist, and {given.user} may not make it: GRANT CREATE ON {quoted_name(database)}.*"
    return ProbeResult(may, f"table {table} {'will be made' if may else refused}")


def _has_right(asking: Cursor, right: str, database: str) -> bool:
    """Of the user, or of a role that is enabled: the catalog shows no others."""
    asking.execute(_MAY_MAKE, (right, database))
    [count] = asking.fetchone() or (0,)
    return bool(count)


def _fits(asking: Cursor, table: MysqlTable, given: MysqlSinkOptions) -> Iterator[ProbeResult]:
    """Where the fields are known."""
    if not given.row_fields:
        return
    rows = there = struct_of(given.row_fields)
    try:
        if given.add_columns and (statement := add_columns(table, rows)):
            may = _has_right(asking, "ALTER", table.database)
            lacks = f"{given.user} may not alter table {given.table}: GRANT ALTER ({statement})"
            yield ProbeResult(may, statement if may else lacks)
            there = there_are(table.columns, rows)
        columns_of(table, there, given.table)
        if given.mode == "upsert":
            key_of(table, given.key, rows, given.table)
    except ConfigError as error:
        yield ProbeResult(False, f"{error.what}: {error.next_step}")
    else:
        yield ProbeResult(True, f"table {given.table} keeps each field exactly")
