"""What a server says of a query that a source reads, for `check --probe`. Reads only."""

from __future__ import annotations

from collections.abc import Iterator

from pymysql.cursors import Cursor

from connect_core.errors import WaybillError
from connect_core.sdk.plugin import ProbeResult
from connect_core.systems.mysql.catalog import quoted_name
from connect_core.systems.mysql.metadata_locks import who_shows
from connect_core.systems.mysql.source_catalog import MysqlSourceTable
from connect_core.systems.mysql.source_options import MysqlSourceOptions
from connect_core.systems.mysql.source_query import query_as_it_is, query_understood
from connect_core.systems.mysql.standing import database_now, query_extent, writers
from connect_core.systems.mysql.table_reading import changed_in
from connect_core.systems.tables.pages import unfit_numbers
from connect_core.systems.tables.probed_rows import times_to_come, to_come
from connect_core.systems.tables.queries import PARTITION, query_probed
from connect_core.systems.tables.query_rows import equal_numbers, to_come_of


def probed_query(asking: Cursor, given: MysqlSourceOptions) -> Iterator[ProbeResult]:
    try:
        with query_understood(f"{given.address}/{PARTITION}"):
            yield from _looked_at(asking, given)
    except WaybillError as error:
        yield ProbeResult(False, ": ".join(filter(None, ("query", error.what, error.next_step))))


def _looked_at(asking: Cursor, given: MysqlSourceOptions) -> Iterator[ProbeResult]:
    lowest, highest = query_extent(asking, given)
    with query_as_it_is(asking, given) as table:
        twice = equal_numbers(asking, table.relation, quoted_name(table.id))
        yield from query_probed(table.id, table.time, bulk=given.bulk, twice=twice)
        if wrong := unfit_numbers(lowest, (highest or 0) + 1):
            yield ProbeResult(False, f"{wrong}: name another column as incrementing")
        if table.time:
            in_time = changed_in(table, to_come(database_now(asking, table)))
            yield from times_to_come(to_come_of(asking, table.relation, in_time))
        if not given.bulk:
            yield _open_transactions(asking, table, given.address)


def _open_transactions(asking: Cursor, table: MysqlSourceTable, where: str) -> ProbeResult:
    named = ", ".join(".".join(place) for place in table.places)
    words = f"the query reads {named}; who writes these is shown by {who_shows(asking)}"
    return ProbeResult(True, f"{words}; transactions at this moment: {len(writers(asking, table, where))}")
