"""What a database says of the tables that a sink needs, for `check --probe`. Writes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa

from connect_core.errors import ConfigError
from connect_core.rows.types import struct_of
from connect_core.sdk.plugin import ProbeResult
from connect_core.sdk.values import Json
from connect_core.systems.sql.catalog import SqlTable, is_view, read_table
from connect_core.systems.sql.connecting import connected
from connect_core.systems.sql.failures import understood
from connect_core.systems.sql.fitting import columns_of, key_of
from connect_core.systems.sql.making import add_columns, create_table
from connect_core.systems.sql.options import SqlOptions, SqlSinkOptions
from connect_core.systems.tables.fitting import there_are


def probe_sink(options: Json) -> Iterator[ProbeResult]:
    given = SqlSinkOptions.model_validate(options)
    if given.file:
        found = _folder_probed(given.file)
        yield from found
        if not os.path.exists(given.file):
            made = given.create_table and all(one.ok for one in found)
            yield ProbeResult(made, f"{given.file} {'will be made' if made else 'is not there'}")
            return
        if not os.access(given.file, os.W_OK):
            yield ProbeResult(False, f"{given.file} may not be written")
    with connected(given, given.url, "reads") as database, understood(given.url):
        yield from database_probed(database, given)
        for one in given.each():
            yield from _table_probed(database, one)
        there = read_table(database, given.markers) is not None
        yield ProbeResult(True, f"table {given.markers} {'is there' if there else 'will be made'}")


def database_probed(database: sa.Connection, given: SqlOptions) -> Iterator[ProbeResult]:
    if not given.file:
        yield ProbeResult(True, f"{given.url} answers; Waybill has tests with SQLite alone")
        return
    journal = database.exec_driver_sql("PRAGMA journal_mode").scalar()
    version = database.exec_driver_sql("SELECT sqlite_version()").scalar()
    yield ProbeResult(True, f"{given.file} is a database of SQLite ({version}), with journal_mode = {journal}")


def _folder_probed(path: str) -> list[ProbeResult]:
    """SQLite keeps its journal beside the file."""
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        return [ProbeResult(False, f"the folder {folder} is missing")]
    if not os.access(folder, os.W_OK | os.X_OK):
        return [ProbeResult(False, f"no file may be made in {folder}, where SQLite keeps its journal")]
    return []


def _table_probed(database: sa.Connection, given: SqlSinkOptions) -> Iterator[ProbeResult]:
    table = read_table(database, given.table)
    if table is not None and is_view(database, given.table):
        yield ProbeResult(False, f"{given.table} is a view: name a table")
    elif table is not None:
        yield ProbeResult(True, f"table {given.table} is there")
        yield from _fits(database, table, given)
    elif given.create_table:
        yield from _made(database, given)
    else:
        yield ProbeResult(False, f"table {given.table} does not exist")


def _made(database: sa.Connection, given: SqlSinkOptions) -> Iterator[ProbeResult]:
    if not given.row_fields:
        yield ProbeResult(True, f"table {given.table} will be made")
        return
    try:
        statement = create_table(given.table, struct_of(given.row_fields), given.key, database.dialect)
    except ConfigError as error:
        yield ProbeResult(False, f"table {given.table}: {error.what}: {error.next_step}")
    else:
        yield ProbeResult(True, f"table {given.table} will be made: {statement}")


def _fits(database: sa.Connection, table: SqlTable, given: SqlSinkOptions) -> Iterator[ProbeResult]:
    """Where the fields are known."""
    if not given.row_fields:
        return
    rows = there = struct_of(given.row_fields)
    try:
        if given.add_columns and (statements := add_columns(table, rows, database.dialect)):
            yield ProbeResult(True, "; ".join(statements))
            there = there_are(table.columns, rows)
        columns_of(table, there, given.table)
        if given.mode == "upsert":
            key_of(table, given.key, rows, given.table)
    except ConfigError as error:
        yield ProbeResult(False, f"table {given.table}: {error.what}: {error.next_step}")
    else:
        yield ProbeResult(True, f"table {given.table} keeps each field exactly")
