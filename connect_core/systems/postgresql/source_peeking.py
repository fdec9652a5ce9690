"""The newest rows of a table, for people. Reads only."""

from __future__ import annotations

from contextlib import closing

import pyarrow as pa
from psycopg2.extensions import cursor

from connect_core.systems.postgresql.connecting import connected
from connect_core.systems.postgresql.failures import understood
from connect_core.systems.postgresql.inheritance import parents_there
from connect_core.systems.postgresql.source_catalog import tables_there
from connect_core.systems.postgresql.source_options import PostgresSourceOptions
from connect_core.systems.postgresql.table_reading import as_it_is, newest
from connect_core.systems.tables.pages import record_batch


def newest_rows(options: PostgresSourceOptions, last: int) -> pa.Table:
    """Of several tables those of each."""
    where = options.address
    with closing(connected(options, where)) as database, understood(where), database.cursor() as asking:
        tables = _tables(asking, options)
        found = []
        for one in map(options.of_table, tables):
            with as_it_is(asking, one) as table:
                found += newest(asking, one.table, table, last)
        return pa.Table.from_batches([record_batch(found)])


def _tables(asking: cursor, options: PostgresSourceOptions) -> list[str]:
    if not options.tables:
        return [options.table]
    return options.named_tables.now(tables_there(asking), parents_there(asking))
