"""The newest rows of a table, for people. Reads only."""

from __future__ import annotations

from contextlib import closing

import pyarrow as pa

from connect_core.systems.mysql.connecting import connected
from connect_core.systems.mysql.failures import understood
from connect_core.systems.mysql.source_options import MysqlSourceOptions
from connect_core.systems.mysql.table_reading import as_it_is, newest
from connect_core.systems.tables.pages import record_batch


def newest_rows(options: MysqlSourceOptions, last: int) -> pa.Table:
    where = f"{options.address}/{options.table}"
    with closing(connected(options, where)) as database, understood(where), database.cursor() as asking:
        with as_it_is(asking, options) as table:
            rows = newest(asking, table, last)
        return pa.Table.from_batches([record_batch(rows)])
