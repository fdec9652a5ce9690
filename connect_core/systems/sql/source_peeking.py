"""The newest rows of a table, for people. Reads only."""

from __future__ import annotations

import pyarrow as pa

from connect_core.systems.sql.connecting import connected
from connect_core.systems.sql.failures import understood
from connect_core.systems.sql.source_catalog import newest, read_source_table
from connect_core.systems.sql.source_options import SqlSourceOptions
from connect_core.systems.tables.pages import record_batch


def newest_rows(options: SqlSourceOptions, last: int) -> pa.Table:
    with connected(options, options.url, "reads") as database, understood(options.url):
        rows = newest(database, read_source_table(database, options), last)
    return pa.Table.from_batches([record_batch(rows)])
