"""What a database says of the table that a source reads, for `check --probe`. Reads only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial

from psycopg2.extensions import cursor

from connect_core.errors import ConfigError, Unreachable
from connect_core.sdk.plugin import ProbeResult
from connect_core.sdk.values import Json
from connect_core.systems.postgresql.catalog import quoted
from connect_core.systems.postgresql.connecting import connected
from connect_core.systems.postgresql.failures import understood
from connect_core.systems.postgresql.inheritance import parents_there
from connect_core.systems.postgresql.source_catalog import (
    SourceTable,
    others_there,
    read_source_table,
    tables_there,
)
from connect_core.systems.postgresql.source_options import PostgresSourceOptions
from connect_core.systems.postgresql.source_query_probing import probed_query
from connect_core.systems.postgresql.standing import database_now, extent, sequence_stands_at, writers
from connect_core.systems.postgresql.table_reading import changed_in
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
SELECT EXISTS (SELECT 1 FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
               WHERE i.indrelid = %(table)s AND a.attname = %(column)s AND i.indisvalid AND i.indpred IS NULL),
       has_table_privilege(%(name)s, 'SELECT'), (SELECT reset_val FROM pg_settings WHERE name = 'TimeZone')
"""


def probe(options: Json) -> Iterator[ProbeResult]:
    given = PostgresSourceOptions.model_validate(options)
    where = given.address
    with closing(connected(given, where)) as database, understood(where), database.cursor() as asking:
        asking.execute("SELECT current_setting('server_version')")
        [version] = asking.fetchone() or ("",)
        yield ProbeResult(True, f"{where} answers, PostgreSQL {version}")
        if given.query:
            yield from probed_query(asking, given)
        elif given.tables:
            there = TablesThere(tables_there(asking), others_there(asking), parents_there(asking))
            yield from each_probed(given.named_tables, there, given.of_table, partial(_probed, asking))
        else:
            yield from _probed(asking, given)


def _probed(asking: cursor, given: PostgresSourceOptions) -> Iterator[ProbeResult]:
    """One table. What is wrong with it says nothing of others."""
    try:
        with understood(f"{given.address}/{given.table}"):
            yield from _looked_at(asking, given)
    except (ConfigError, Unreachable) as error:
        yield ProbeResult(False, ": ".join(filter(None, (f"table {given.table}", error.what, error.next_step))))


def _looked_at(asking: cursor, given: PostgresSourceOptions) -> Iterator[ProbeResult]:
    table = read_source_table(asking, given)
    keys = [column.name for column in table.key] if table.is_keyed else []
    yield ProbeResult(True, f"table {given.table} is there, {told_apart(table.id, keys)}")
    rights = list(_rights(asking, given))
    yield from rights
    yield from _how_rows_are_found(asking, given, table)
    if all(one.ok for one in rights) and (wrong := _unfit_rows(asking, given, table)):
        yield ProbeResult(False, f"{wrong}: name another column as incrementing")
    if not given.bulk and (many := len(writers(asking, table))):
        which = "of the database that are open" if table.time else "that write to it"
        yield ProbeResult(True, f"transactions {which} at this moment: {many} (pg_locks)")


def _how_rows_are_found(asking: cursor, given: PostgresSourceOptions, table: SourceTable) -> Iterator[ProbeResult]:
    if given.bulk:
        yield ProbeResult(True, EACH_RUN_READS_ALL)
    else:
        yield from _times(asking, given, table) if table.time else _numbers(asking, table)


def _times(asking: cursor, given: PostgresSourceOptions, table: SourceTable) -> Iterator[ProbeResult]:
    """Rows with times to come are counted where they may be read."""
    asking.execute(_TIMES, {"table": table.number, "column": given.timestamp, "name": quoted(given.table)})
    indexed, may_read, zone = asking.fetchone() or (False, False, "")
    future = 0
    if may_read:
        behind = changed_in(table, to_come(database_now(asking)))
        asking.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM {quoted(given.table)} WHERE NOT ({behind}) LIMIT {MANY}) r"
        )
        [future] = asking.fetchone() or (0,)
    has_zone = table.time is not None and table.time.kind.endswith("with time zone")
    yield from times_probed(given.timestamp or "", indexed=indexed, future=future, zone="" if has_zone else zone)


def _unfit_rows(asking: cursor, given: PostgresSourceOptions, table: SourceTable) -> str:
    lowest, highest = (None, None) if table.is_keyed else extent(asking, table)
    return unfit_numbers(lowest, (highest or 0) + 1)


def _rights(asking: cursor, given: PostgresSourceOptions) -> Iterator[ProbeResult]:
    asking.execute(
        "SELECT has_table_privilege(%(table)s, 'SELECT'), relrowsecurity AND NOT relforcerowsecurity AND"
        " pg_has_role(relowner, 'USAGE') OR NOT relrowsecurity OR (SELECT rolbypassrls OR rolsuper FROM pg_roles"
        " WHERE rolname = current_user) FROM pg_class WHERE oid = to_regclass(%(table)s)",
        {"table": quoted(given.table)},
    )
    may_read, sees_all = asking.fetchone() or (False, False)
    if may_read:
        yield ProbeResult(True, f"{given.user} has SELECT on {given.table}")
    else:
        yield ProbeResult(False, f"{given.user} lacks SELECT on {given.table}: GRANT SELECT")
    if not sees_all:
        words = f"row-level security hides rows of {given.table} from {given.user}: ALTER ROLE {given.user} BYPASSRLS"
        yield ProbeResult(False, words)


def _numbers(asking: cursor, table: SourceTable) -> Iterator[ProbeResult]:
    if not table.sequences:
        yield ProbeResult(
            True, f"column {table.id} has no sequence: rows must be inserted in the order of their numbers"
        )
    for one in table.sequences:
        if not one.may_read:
            words = f"whether {one.name} is set back is not noticed: GRANT SELECT ON SEQUENCE {one.name}"
            yield ProbeResult(True, words)
        elif one.step > 1:
            words = f"{one.name} counts by {one.step}: programs must not keep numbers of a step for later rows"
            yield ProbeResult(True, words)
    if (stands_at := sequence_stands_at(asking, table)) is not None:
        yield ProbeResult(True, f"the sequence of column {table.id} is at {stands_at}")
