"""What a database says of the sink's tables, for `check --probe`. Reads only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from psycopg2.extensions import connection, cursor

from connect_core.errors import ConfigError
from connect_core.rows.types import struct_of
from connect_core.sdk.plugin import ProbeResult, Role
from connect_core.sdk.values import Json
from connect_core.systems.postgresql.catalog import Table, read_table
from connect_core.systems.postgresql.connecting import connected
from connect_core.systems.postgresql.failures import understood
from connect_core.systems.postgresql.fitting import columns_of, key_of
from connect_core.systems.postgresql.making import add_columns, create_table, tried
from connect_core.systems.postgresql.options import PostgresSinkOptions, split_table
from connect_core.systems.postgresql.relations import following_rows, partition_among
from connect_core.systems.postgresql.rights import OF_MARKERS, OF_TABLE, missing
from connect_core.systems.tables.fitting import there_are


def probe(role: Role, options: Json) -> Iterator[ProbeResult]:
    given = PostgresSinkOptions.model_validate(options)
    where = given.address
    with closing(connected(given, where)) as database, understood(where), database.cursor() as asking:
        asking.execute("SELECT current_setting('server_version'), pg_is_in_recovery()")
        version, is_standby = asking.fetchone() or ("", False)
        yield ProbeResult(not is_standby, f"{where} answers, PostgreSQL {version}{', a standby' if is_standby else ''}")
        several = given.each()
        for one in several:
            for found in _table_probed(database, asking, one):
                known = len(several) == 1 or one.table in found.what
                yield found if known else ProbeResult(found.ok, f"{one.table}: {found.what}")
        if why := partition_among(asking, [one.table for one in several]):
            yield ProbeResult(False, f"{why}: name one of both")
        if read_table(database, given.markers) is not None:
            yield from _rights(asking, given.markers, OF_MARKERS, given.user)
        else:
            yield _may_be_made(asking, given.markers, given.user, "will be made")


def _table_probed(database: connection, asking: cursor, given: PostgresSinkOptions) -> Iterator[ProbeResult]:
    table = read_table(database, given.table)
    if table is not None:
        yield ProbeResult(True, f"table {given.table} is there, oid {table.oid}")
        yield from _fits(database, table, given)
        yield from _rights(asking, given.table, OF_TABLE[given.mode], given.user)
        if given.mode == "upsert":
            yield from (ProbeResult(True, words) for words in following_rows(asking, given.table))
    elif given.create_table:
        yield from _made(database, asking, given)
    else:
        yield ProbeResult(False, f"table {given.table} does not exist")


def _made(database: connection, asking: cursor, given: PostgresSinkOptions) -> Iterator[ProbeResult]:
    may = _may_be_made(asking, given.table, given.user, "will be made")
    if not may.ok or not given.row_fields:
        yield may
        return
    try:
        statement = create_table(given.table, struct_of(given.row_fields), given.key)
    except ConfigError as error:
        yield ProbeResult(False, f"{error.what}: {error.next_step}")
        return
    yield _done(database, statement, given, f"table {given.table} will be made: {statement}")


def _done(database: connection, statement: str, given: PostgresSinkOptions, words: str) -> ProbeResult:
    """Whether the database would do it."""
    why = tried(database, statement, given.table)
    return ProbeResult(not why, f"{why} ({statement})" if why else words)


def _may_be_made(asking: cursor, table: str, user: str, words: str) -> ProbeResult:
    schema, _ = split_table(table)
    asking.execute("SELECT has_schema_privilege(%s, 'CREATE')", (schema,))
    [may] = asking.fetchone() or (False,)
    refused = f"does not exist, and {user} may not make it: GRANT CREATE ON SCHEMA {schema}"
    return ProbeResult(bool(may), f"table {table} {words if may else refused}")


def _fits(database: connection, table: Table, given: PostgresSinkOptions) -> Iterator[ProbeResult]:
    """Where the fields are known."""
    if not given.row_fields:
        return
    rows = there = struct_of(given.row_fields)
    try:
        if given.add_columns and (statement := add_columns(given.table, table, rows)):
            yield _changed(database, table, given, statement)
            there = there_are(table.columns, rows)
        columns_of(table, there, given.table)
        if given.mode == "upsert":
            key_of(table, given.key, rows, given.table)
    except ConfigError as error:
        yield ProbeResult(False, f"{error.what}: {error.next_step}")
    else:
        yield ProbeResult(True, f"table {given.table} keeps each field exactly")


def _changed(database: connection, table: Table, given: PostgresSinkOptions, statement: str) -> ProbeResult:
    """Only by its owner, and who has the rights of that."""
    with database.cursor() as asking:
        asking.execute("SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = %s", (table.oid,))
        [may] = asking.fetchone() or (False,)
    if not may:
        return ProbeResult(False, f"{given.user} does not own the table, and may add no columns")
    return _done(database, statement, given, statement)


def _rights(asking: cursor, table: str, wanted: tuple[str, ...], user: str) -> Iterator[ProbeResult]:
    lacks = missing(asking, table, wanted)
    rights = ", ".join(lacks or wanted)
    if lacks:
        yield ProbeResult(False, f"{user} lacks {rights} on {table}: GRANT {rights}")
    else:
        yield ProbeResult(True, f"{user} has {rights} on {table}")
