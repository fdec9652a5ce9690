"""Whether a server gives its changes, for `check --probe`. Reads only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from pymysql.cursors import Cursor

from connect_core.errors import WaybillError
from connect_core.sdk.plugin import ProbeResult
from connect_core.sdk.values import Json
from connect_core.systems.mysql.binlog.options import MysqlChangesOptions
from connect_core.systems.mysql.binlog.server_log import begun_at, files_of, unfit_settings
from connect_core.systems.mysql.binlog.table_names import TableName
from connect_core.systems.mysql.connecting import connected, server_of
from connect_core.systems.mysql.failures import understood


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
        yield from _tables(asking, given)


def _tables(asking: Cursor, given: MysqlChangesOptions) -> Iterator[ProbeResult]:
    """Who may not read a table does not see it here, and reads its changes all the same."""
    asking.execute("SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES")
    found = {TableName(*row[:2]): row[2] for row in asking.fetchall()}
    for database, name in map(given.split, given.tables):
        if "*" in f"{database}{name}":
            continue
        kind = found.get(TableName(database, name))
        if kind is None:
            yield ProbeResult(True, f"table {database}.{name} is not there, or {given.user} may not see it")
        elif kind != "BASE TABLE":
            yield ProbeResult(False, f"{database}.{name} is no ordinary table: {kind}")
