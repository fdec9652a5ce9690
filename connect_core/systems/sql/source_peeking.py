"""The newest rows of a table, for people. Reads only."""

from __future__ import annotations

import pyarrow as pa
import sqlalchemy as sa

from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.systems.sql.source import rows_of
from connect_core.systems.sql.source_catalog import newest, read_source_table
from connect_core.systems.sql.source_listing import tables_there
from connect_core.systems.sql.source_options import SqlSourceOptions
from connect_core.systems.sql.source_query import read_query, reading, reading_understood


def newest_rows(options: SqlSourceOptions, last: int) -> pa.Table:
    """Of several tables those of each."""
    found = []
    with reading(options, options.url) as database, reading_understood(options, options.url):
        for one in _each(database, options):
            table = (read_query if one.query else read_source_table)(database, one)
            found.append(rows_of(one).of_topic(newest(database, table, last)))
    return pa.Table.from_batches(found, RECORD_SCHEMA)


def _each(asking: sa.Connection, options: SqlSourceOptions) -> list[SqlSourceOptions]:
    if not options.tables:
        return [options]
    named = options.named_tables
    return [options.of_table(one) for one in named.now(tables_there(asking, named))]
