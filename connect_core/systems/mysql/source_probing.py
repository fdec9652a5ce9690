"""What a database says of the table that a source reads, for `check --probe`. Reads only."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from functools import partial

import pymysql
from pymysql.cursors import Cursor

from connect_core.errors import ConfigError, Refused, Unreachable
from connect_core.sdk.plugin import ProbeResult
from connect_core.sdk.values import Json
from connect_core.systems.mysql.connecting import connected
from connect_core.systems.mysql.failures import is_forbidden, understood
from connect_core.systems.mysql.metadata_locks import who_shows
from connect_core.systems.mysql.probing import server_probed
from connect_core.systems.mysql.source_catalog import (
    MysqlSourceTable,
    others_there,
    read_source_table,
    tables_there,
)
from connect_core.systems.mysql.source_options import MysqlSourceOptions
from connect_core.systems.mysql.source_query_probing import probed_query
from connect_core.systems.mysql.standing import counter_stands_at, database_now, extent, writers
from connect_core.systems.mysql.table_reading import changed_in
from connect_core.systems.mysql.table_spellings import named_twice
from connect_core.systems.tables.named_tables import NamedTables
from connect_core.systems.tables.pages import unfit_numbers
from connect_core.systems.tables.probed_rows import (
    EACH_RUN_READS_ALL,
    MANY,
    TablesThere,
    each_probed,
    times_probed,
    to_come,
    told_apart,
)

_TIMES = """
SELECT (SELECT COUNT(*) FROM information_schema.STATISTICS
        WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND COLUMN_NAME = %s AND SEQ_IN_INDEX = 1),
       (SELECT DATA_TYPE FROM information_schema.COLUMNS
        WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND COLUMN_NAME = %s),
       IF(@@GLOBAL.time_zone = 'SYSTEM', @@system_time_zone, @@GLOBAL.time_zone)
"""


def probe_source(options: Json) -> Iterator[ProbeResult]:
    given = MysqlSourceOptions.model_validate(options)
    where = given.address
    with closing(connected(given, where)) as database, understood(where), database.cursor() as asking:
        yield from server_probed(asking, where, may_be_read_only=given.bulk)
        if given.query:
            yield from probed_query(asking, given)
        elif given.tables:
            named, there = given.named_tables, TablesThere(tables_there(asking), others_there(asking))
            yield from each_probed(named, there, given.of_table, partial(_one_probed, asking, named, there.tables))
        else:
            yield from _probed(asking, given)


def _one_probed(
    asking: Cursor, named: NamedTables, there: Collection[str], given: MysqlSourceOptions
) -> Iterator[ProbeResult]:
    """Of several."""
    if wrong := named_twice(named, there, given.table):
        yield ProbeResult(False, f"table {given.table}: {wrong.what}: {wrong.next_step}")
    else:
        yield from _probed(asking, given)


def _probed(asking: Cursor, given: MysqlSourceOptions) -> Iterator[ProbeResult]:
    """One table. What is wrong with it says nothing of others."""
    try:
        with understood(f"{given.address}/{given.table}"):
            yield from _looked_at(asking, given)
    except (ConfigError, Refused, Unreachable) as error:
        yield ProbeResult(False, ": ".join(filter(None, (f"table {given.table}", error.what, error.next_step))))


def _looked_at(asking: Cursor, given: MysqlSourceOptions) -> Iterator[ProbeResult]:
    try:
        table = read_source_table(asking, given)
        keys = [column.name for column in table.key]
        yield ProbeResult(True, f"table {given.table} is there, {told_apart(table.id, keys)}")
        yield from _how_rows_are_found(asking, given, table)
        yield from _extent(asking, table)
        if not given.bulk:
            yield _open_transactions(asking, table, given.address)
    except pymysql.Error as error:
        if not is_forbidden(error):
            raise
        yield ProbeResult(False, f"{given.user} lacks SELECT on {given.table}, or on a column of it: GRANT SELECT")


def _how_rows_are_found(asking: Cursor, given: MysqlSourceOptions, table: MysqlSourceTable) -> Iterator[ProbeResult]:
    if given.bulk:
        yield ProbeResult(True, EACH_RUN_READS_ALL)
    else:
        yield from _times(asking, table) if table.time else _numbers(asking, table)


def _open_transactions(asking: Cursor, table: MysqlSourceTable, where: str) -> ProbeResult:
    words = f"who writes the table is shown by {who_shows(asking)}"
    return ProbeResult(True, f"{words}; transactions at this moment: {len(writers(asking, table, where))}")


def _numbers(asking: Cursor, table: MysqlSourceTable) -> Iterator[ProbeResult]:
    if not table.counts:
        words = f"column {table.id} is not AUTO_INCREMENT: rows must be inserted in the order of their numbers"
        yield ProbeResult(True, words)
    elif (stands_at := counter_stands_at(asking, table)) is not None:
        yield ProbeResult(True, f"the counter of column {table.id} is at {stands_at}")


def _extent(asking: Cursor, table: MysqlSourceTable) -> Iterator[ProbeResult]:
    lowest, highest = (None, None) if table.is_keyed else extent(asking, table)
    if wrong := unfit_numbers(lowest, (highest or 0) + 1):
        yield ProbeResult(False, f"{wrong}: name another column as incrementing")


def _times(asking: Cursor, table: MysqlSourceTable) -> Iterator[ProbeResult]:
    asking.execute(_TIMES, (*table.places[0], table.time) * 2)
    indexed, kind, zone = asking.fetchone() or (0, "", "")
    behind = changed_in(table, to_come(database_now(asking, table)))
    among = f"SELECT 1 FROM {table.relation} WHERE NOT ({behind}) LIMIT {MANY}"
    asking.execute(f"SELECT COUNT(*) FROM ({among}) r")
    [future] = asking.fetchone() or (0,)
    yield from times_probed(
        table.time, indexed=bool(indexed), future=future, zone="" if kind == "timestamp" else str(zone)
    )
