"""Snapshots that somebody asks for, and cancels, in notes that the log of the tables' changes has at their place
(`snapshot_log`)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import pymysql
from pymysql.cursors import Cursor

from connect_core.errors import ConfigError
from connect_core.sdk.plugin import SnapshotWish
from connect_core.systems.mysql.binlog.chunk_tables import check_tables, check_writable, described, tables_of
from connect_core.systems.mysql.binlog.notes import prepare, say, set_up
from connect_core.systems.mysql.binlog.options import MysqlChangesOptions
from connect_core.systems.mysql.binlog.snapshot_keys import rows_of
from connect_core.systems.mysql.binlog.snapshot_log import request_note
from connect_core.systems.mysql.binlog.table_names import TableName
from connect_core.systems.mysql.connecting import connected, server_of
from connect_core.systems.mysql.failures import is_of_condition, understood
from connect_core.systems.tables.row_conditions import CONDITION_S, MYSQL, check_condition
from connect_core.systems.tables.snapshots import (
    DueTable,
    Place,
    SnapshotProgress,
    SnapshotRequest,
    asked_of,
    to_cancel,
)


def request_snapshot(options: MysqlChangesOptions, wish: SnapshotWish) -> list[str]:
    """Says in the log that rows of these tables are to come, of all that the document names where none is given here.
    Who reads the log hears of it at this place. Raises ConfigError for one that cannot be read, and for a condition
    that the server does not take."""
    where = options.address
    asked = _asked(options, wish.tables)
    with closing(connected(options, where)) as database, understood(where), database.cursor() as asking:
        check_writable(asking, options, where)
        asked = asked or tables_of(asking, options)
        check_tables(asking, asked, where)
        if wish.where is not None:
            for one in asked:
                _check_condition(asking, one, wish.where, where)
        prepare(asking, options, where)
        asked_for = [DueTable(one, wish.where or "") for one in asked]
        say(asking, options, request_note(SnapshotRequest(tuple(asked_for))))
    return [f"{schema}.{table}" for schema, table in asked]


def cancel_snapshot(options: MysqlChangesOptions, progress: SnapshotProgress, tables: Sequence[str]) -> list[str]:
    """Says in the log that nothing is to come of what somebody has asked for of these tables, of all where none is
    named. Whether they are there does not matter. `progress` is how far rows have come."""
    where = options.address
    asked = _asked(options, tables)
    with closing(connected(options, where)) as database, understood(where), database.cursor() as asking:
        chosen = to_cancel(progress, asked, tables_of(asking, options), where)
        prepare(asking, options, where)
        say(asking, options, request_note(SnapshotRequest(cancelled=tuple(chosen))))
    return [f"{schema}.{table}" for schema, table in chosen]


def _asked(options: MysqlChangesOptions, tables: Sequence[str]) -> list[Place]:
    named = ", ".join(options.tables)
    return asked_of(tables, options.split, lambda *one: options.wants(TableName(*one)), options.address, named)


def _check_condition(asking: Cursor, place: Place, condition: str, where: str) -> None:
    """Raises ConfigError where the server does not take the statement by which rows are read with it. Reads no row."""
    named = f"{where}, table {'.'.join(place)}"
    check_condition(condition, MYSQL, named)
    table = described(asking, place, where)
    if table is None:
        return
    set_up(asking)
    is_mariadb = server_of(asking.connection).is_mariadb
    limit = f"max_statement_time = {CONDITION_S}" if is_mariadb else f"max_execution_time = {CONDITION_S * 1000:.0f}"
    asking.execute(f"SET SESSION {limit}")
    asking.execute("START TRANSACTION READ ONLY")
    try:
        asking.execute(f"EXPLAIN {rows_of(table, 'TRUE', condition)}")
    except pymysql.Error as error:
        if not is_of_condition(error):
            raise
        step = "Correct the condition: it is an expression of the table's columns, true or false"
        said = str(error.args[-1])
        raise ConfigError(f"The server does not take the condition: {said}", where=named, next_step=step) from None
    asking.execute("ROLLBACK")
