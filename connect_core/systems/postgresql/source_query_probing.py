"""What a database says of a query that a source reads, for `check --probe`. Reads only."""

from __future__ import annotations

from collections.abc import Iterator

from psycopg2.extensions import cursor

from connect_core.errors import WaybillError
from connect_core.sdk.plugin import ProbeResult
from connect_core.systems.postgresql.catalog import quoted_name
from connect_core.systems.postgresql.source_catalog import SourceTable
from connect_core.systems.postgresql.source_options import PostgresSourceOptions
from connect_core.systems.postgresql.source_query import query_as_it_is, query_understood
from connect_core.systems.postgresql.standing import database_now, query_extent, sequence_stands_at, writers
from connect_core.systems.postgresql.table_reading import changed_in
from connect_core.systems.tables.pages import unfit_numbers
from connect_core.systems.tables.probed_rows import times_to_come, to_come
from connect_core.systems.tables.queries import PARTITION, query_probed
from connect_core.systems.tables.query_rows import equal_numbers, to_come_of


def probed_query(asking: cursor, given: PostgresSourceOptions) -> Iterator[ProbeResult]:
    try:
        with query_understood(f"{given.address}/{PARTITION}"):
            yield from _looked_at(asking, given)
    except WaybillError as error:
        yield ProbeResult(False, ": ".join(filter(None, ("query", error.what, error.next_step))))


def _looked_at(asking: cursor, given: PostgresSourceOptions) -> Iterator[ProbeResult]:
    lowest, highest = query_extent(asking, given)
    with query_as_it_is(asking, given) as table:
        twice = equal_numbers(asking, table.relation, quoted_name(table.id))
        yield from query_probed(table.id, given.timestamp or "", bulk=given.bulk, twice=twice)
        if wrong := unfit_numbers(lowest, (highest or 0) + 1):
            yield ProbeResult(False, f"{wrong}: name another column as incrementing")
        yield from _times(asking, table)
        if (stands_at := sequence_stands_at(asking, table)) is not None:
            yield ProbeResult(True, f"the sequence of column {table.id} is at {stands_at}")
        if not given.bulk and (many := len(writers(asking, table))):
            yield ProbeResult(True, f"transactions of the database that are open at this moment: {many} (pg_locks)")


def _times(asking: cursor, table: SourceTable) -> Iterator[ProbeResult]:
    if table.time:
        yield from times_to_come(to_come_of(asking, table.relation, changed_in(table, to_come(database_now(asking)))))
