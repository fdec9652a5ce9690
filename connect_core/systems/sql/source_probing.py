"""What a database says of the table that a source reads, for `check --probe`. Reads only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

import sqlalchemy as sa

from connect_core.errors import ConfigError, DataError, Refused, Unreachable, WaybillError
from connect_core.sdk.plugin import ProbeResult
from connect_core.sdk.values import Json
from connect_core.systems.sql.connecting import connected
from connect_core.systems.sql.failures import understood
from connect_core.systems.sql.file_writers import writers_of_file
from connect_core.systems.sql.probing import database_probed
from connect_core.systems.sql.source_catalog import (
    SqlSourceTable,
    check_times,
    extent,
    host_now,
    read_source_table,
    rows_to_come,
)
from connect_core.systems.sql.source_listing import others_there, tables_there
from connect_core.systems.sql.source_options import SqlSourceOptions
from connect_core.systems.sql.source_query import (
    check_numbers,
    number_of_two,
    read_query,
    reading,
    reading_understood,
)
from connect_core.systems.tables.pages import unfit_numbers
from connect_core.systems.tables.probed_rows import (
    EACH_RUN_READS_ALL,
    MANY,
    TablesThere,
    each_probed,
    times_probed,
    times_to_come,
    to_come,
)
from connect_core.systems.tables.queries import PARTITION, query_probed


def probe_source(options: Json) -> Iterator[ProbeResult]:
    given = SqlSourceOptions.model_validate(options)
    if given.file and not os.path.exists(given.file):
        yield ProbeResult(False, f"{given.file} is not there")
        return
    with connected(given, given.url, "reads") as database, understood(given.url):
        yield from database_probed(database, given)
        if given.query:
            yield from _query_probed(given)
        elif given.tables:
            named = given.named_tables
            there = TablesThere(tables_there(database, named), others_there(database, named))
            yield from each_probed(named, there, given.of_table, partial(_probed, database))
        else:
            yield from _probed(database, given)


def _query_probed(given: SqlSourceOptions) -> Iterator[ProbeResult]:
    """On a connection of its own, which has the query."""
    where = f"{given.url}/{PARTITION}"
    try:
        with reading(given, where) as database, reading_understood(given, where):
            table = read_query(database, given)
            check_numbers(database, table, where)
            lowest, highest = extent(database, table, where)
            twice = number_of_two(database, table, MANY)
            yield from query_probed(table.id, given.timestamp or "", bulk=given.bulk, twice=twice)
            if wrong := unfit_numbers(lowest, (highest or 0) + 1):
                yield ProbeResult(False, f"{wrong}: name another column as incrementing")
            if table.time is not None:
                check_times(database, table, where)
                yield from times_to_come(rows_to_come(database, table, to_come(host_now(database))))
                yield _writer(given)
    except WaybillError as error:
        yield ProbeResult(False, ": ".join(filter(None, ("query", error.what, error.next_step))))


def _probed(database: sa.Connection, given: SqlSourceOptions) -> Iterator[ProbeResult]:
    """One table. What is wrong with it says nothing of others."""
    try:
        with understood(f"{given.url}/{given.table}"):
            yield from _looked_at(database, given)
    except (ConfigError, DataError, Refused, Unreachable) as error:
        yield ProbeResult(False, ": ".join(filter(None, (f"table {given.table}", error.what, error.next_step))))


def _looked_at(database: sa.Connection, given: SqlSourceOptions) -> Iterator[ProbeResult]:
    table = read_source_table(database, given)
    yield ProbeResult(True, f"table {given.table} is there, its rows are numbered by {table.id}")
    if given.bulk:
        yield ProbeResult(True, EACH_RUN_READS_ALL)
    elif table.time is not None:
        yield from _times(database, given, table)
    elif given.file:
        yield from _numbers(table)
    else:
        yield ProbeResult(True, f"a row is read when its number has been there for settle_s, {given.settle_s} s")
    lowest, highest = extent(database, table, given.table)
    if wrong := unfit_numbers(lowest, (highest or 0) + 1):
        yield ProbeResult(False, f"{wrong}: name another column as incrementing")


def _times(database: sa.Connection, given: SqlSourceOptions, table: SqlSourceTable) -> Iterator[ProbeResult]:
    named = given.timestamp or ""
    check_times(database, table, given.table)
    indexes = sa.inspect(database).get_indexes(table.relation.name)
    indexed = any(one["column_names"][:1] == [named] for one in indexes)
    future = rows_to_come(database, table, to_come(host_now(database)))
    yield from times_probed(named, indexed=indexed, future=future, zone="")
    yield _writer(given)


def _writer(given: SqlSourceOptions) -> ProbeResult:
    some = "a program has" if writers_of_file(given.file, given.url) else "no program has"
    return ProbeResult(True, f"{some} the file as its writer at this moment")


def _numbers(table: SqlSourceTable) -> Iterator[ProbeResult]:
    if table.id != table.row_id:
        words = f"column {table.id} is not INTEGER PRIMARY KEY: rows must be inserted in the order of their numbers"
        yield ProbeResult(True, words)
    elif not table.counts:
        words = f"column {table.id} has no AUTOINCREMENT: the number of a newest row that is deleted is given out again"
        yield ProbeResult(True, words)
