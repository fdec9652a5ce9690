"""What a database says of the sink's table, for `check --probe`. Reads only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from psycopg2.extensions import cursor

from connect_core.errors import ConfigError
from connect_core.rows.types import struct_of
from connect_core.sdk.plugin import ProbeResult, Role
from connect_core.sdk.values import Json
from connect_core.systems.postgresql.catalog import Table, quoted, read_table
from connect_core.systems.postgresql.connecting import connected
from connect_core.systems.postgresql.failures import understood
from connect_core.systems.postgresql.fitting import columns_of, key_of, there_are
from connect_core.systems.postgresql.making import add_columns, create_table, has_written
from connect_core.systems.postgresql.options import PostgresSinkOptions, split_table

_OF_TABLE = {"insert": ("INSERT",), "upsert": ("INSERT", "SELECT", "UPDATE", "DELETE")}
_OF_MARKERS = ("SELECT", "INSERT", "UPDATE")


def probe(role: Role, options: Json) -> Iterator[ProbeResult]:
    given = PostgresSinkOptions.model_validate(options)
    where = given.address
    with closing(connected(given, where)) as database, understood(where), database.cursor() as asking:
        asking.execute("SELECT current_setting('server_version'), pg_is_in_recovery()")
        version, is_standby = asking.fetchone() or ("", False)
        yield ProbeResult(not is_standby, f"{where} answers, PostgreSQL {version}{', a standby' if is_standby else ''}")
        table = read_table(database, given.table)
        if table is not None:
            yield ProbeResult(True, f"table {given.table} is there, oid {table.oid}")
            yield from _fits(asking, table, given)
            yield from _rights(asking, given.table, _OF_TABLE[given.mode], given.user)
        elif given.create_table and not has_written(database, given):
            yield from _made(asking, given)
        else:
            yield ProbeResult(False, f"table {given.table} does not exist")
        if read_table(database, given.markers) is not None:
            yield from _rights(asking, given.markers, _OF_MARKERS, given.user)
        else:
            yield _may_be_made(asking, given.markers, given.user, "will be made")


def _made(asking: cursor, given: PostgresSinkOptions) -> Iterator[ProbeResult]:
    words = "will be made"
    if given.row_fields:
        try:
            words = f"will be made: {create_table(given.table, struct_of(given.row_fields), given.key)}"
        except ConfigError as error:
            yield ProbeResult(False, f"{error.what}: {error.next_step}")
            return
    yield _may_be_made(asking, given.table, given.user, words)


def _may_be_made(asking: cursor, table: str, user: str, words: str) -> ProbeResult:
    schema, _ = split_table(table)
    asking.execute("SELECT has_schema_privilege(%s, 'CREATE')", (schema,))
    [may] = asking.fetchone() or (False,)
    refused = f"does not exist, and {user} may not make it: GRANT CREATE ON SCHEMA {schema}"
    return ProbeResult(bool(may), f"table {table} {words if may else refused}")


def _fits(asking: cursor, table: Table, given: PostgresSinkOptions) -> Iterator[ProbeResult]:
    """Where the fields are known."""
    if not given.row_fields:
        return
    rows = there = struct_of(given.row_fields)
    try:
        if given.add_columns and (statement := add_columns(given.table, table, rows)):
            yield _may_be_changed(asking, table, given.user, statement)
            there = there_are(table, rows)
        columns_of(table, there, given.table)
        if given.mode == "upsert":
            key_of(table, given.key, rows, given.table)
    except ConfigError as error:
        yield ProbeResult(False, f"{error.what}: {error.next_step}")
    else:
        yield ProbeResult(True, f"table {given.table} keeps each field exactly")


def _may_be_changed(asking: cursor, table: Table, user: str, statement: str) -> ProbeResult:
    """Only by its owner, and who has the rights of that."""
    asking.execute("SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = %s", (table.oid,))
    [may] = asking.fetchone() or (False,)
    return ProbeResult(bool(may), statement if may else f"{user} does not own the table, and may add no columns")


def _rights(asking: cursor, table: str, wanted: tuple[str, ...], user: str) -> Iterator[ProbeResult]:
    missing = []
    for right in wanted:
        asking.execute("SELECT has_table_privilege(%s, %s)", (quoted(table), right))
        if not (asking.fetchone() or (False,))[0]:
            missing.append(right)
    rights = ", ".join(missing or wanted)
    if missing:
        yield ProbeResult(False, f"{user} lacks {rights} on {table}: GRANT {rights}")
    else:
        yield ProbeResult(True, f"{user} has {rights} on {table}")
