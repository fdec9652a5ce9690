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
from connect_core.systems.postgresql.fitting import columns_of, key_of
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
        there = "does not exist" if table is None else f"is there, oid {table.oid}"
        yield ProbeResult(table is not None, f"table {given.table} {there}")
        if table is not None:
            yield from _fits(table, given)
            yield from _rights(asking, given.table, _OF_TABLE[given.mode], given.user)
        if read_table(database, given.markers) is not None:
            yield from _rights(asking, given.markers, _OF_MARKERS, given.user)
        else:
            schema, _ = split_table(given.markers)
            asking.execute("SELECT has_schema_privilege(%s, 'CREATE')", (schema,))
            [may] = asking.fetchone() or (False,)
            refused = f"does not exist, and {given.user} may not make it: GRANT CREATE ON SCHEMA {schema}"
            words = "will be made" if may else refused
            yield ProbeResult(bool(may), f"table {given.markers} {words}")


def _fits(table: Table, given: PostgresSinkOptions) -> Iterator[ProbeResult]:
    """Where the fields are known."""
    if not given.row_fields:
        return
    rows = struct_of(given.row_fields)
    try:
        columns_of(table, rows, given.table)
        if given.mode == "upsert":
            key_of(table, given.key, rows, given.table)
    except ConfigError as error:
        yield ProbeResult(False, f"{error.what}: {error.next_step}")
    else:
        yield ProbeResult(True, f"table {given.table} keeps each field exactly")


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
