"""What a database says of the table that a source reads, for `check --probe`. Reads only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from pymysql.cursors import Cursor

from connect_core.errors import ConfigError, Refused, Unreachable
from connect_core.sdk.plugin import ProbeResult
from connect_core.sdk.values import Json
from connect_core.systems.mysql.connecting import connected
from connect_core.systems.mysql.failures import understood
from connect_core.systems.mysql.probing import server_probed
from connect_core.systems.mysql.source_catalog import MysqlSourceTable, read_source_table
from connect_core.systems.mysql.source_options import MysqlSourceOptions
from connect_core.systems.mysql.standing import counter_stands_at, extent, who_shows, writers
from connect_core.systems.tables.pages import unfit_numbers


def probe_source(options: Json) -> Iterator[ProbeResult]:
    given = MysqlSourceOptions.model_validate(options)
    where = given.address
    with closing(connected(given, where)) as database, understood(where), database.cursor() as asking:
        yield from server_probed(asking, where)
        try:
            table = read_source_table(asking, given)
            yield ProbeResult(True, f"table {given.table} is there, its rows are numbered by {table.id}")
            yield from _numbers(asking, table)
            open_ones = writers(asking, table, where)
        except (ConfigError, Refused, Unreachable) as error:
            yield ProbeResult(False, f"table {given.table}: {error.what}: {error.next_step}")
            return
        words = f"who writes the table is shown by {who_shows(asking)}"
        yield ProbeResult(True, f"{words}; transactions at this moment: {len(open_ones)}")


def _numbers(asking: Cursor, table: MysqlSourceTable) -> Iterator[ProbeResult]:
    if not table.counts:
        words = f"column {table.id} is not AUTO_INCREMENT: rows must be inserted in the order of their numbers"
        yield ProbeResult(True, words)
    elif (stands_at := counter_stands_at(asking, table)) is not None:
        yield ProbeResult(True, f"the counter of column {table.id} is at {stands_at}")
    lowest, highest = extent(asking, table)
    if wrong := unfit_numbers(lowest, (highest or 0) + 1):
        yield ProbeResult(False, f"{wrong}: name another column as incrementing")
