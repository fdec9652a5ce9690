"""The newest rows of a table, for people. Reads only."""

from __future__ import annotations

from contextlib import closing

import pyarrow as pa
from pymysql.cursors import Cursor

from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.systems.mysql.connecting import connected
from connect_core.systems.mysql.failures import understood
from connect_core.systems.mysql.source import rows_of
from connect_core.systems.mysql.source_catalog import tables_there
from connect_core.systems.mysql.source_options import MysqlSourceOptions
from connect_core.systems.mysql.source_query import query_understood
from connect_core.systems.mysql.table_reading import as_it_is, newest


def newest_rows(options: MysqlSourceOptions, last: int) -> pa.Table:
    """Of several tables those of each."""
    where = options.address
    judged = query_understood if options.query else understood
    with closing(connected(options, where)) as database, judged(where), database.cursor() as asking:
        found = []
        for one in _each(asking, options):
            with as_it_is(asking, one) as table:
                found.append(rows_of(one).of_topic(newest(asking, table, last)))
        return pa.Table.from_batches(found, RECORD_SCHEMA)


def _each(asking: Cursor, options: MysqlSourceOptions) -> list[MysqlSourceOptions]:
    if not options.tables:
        return [options]
    return [options.of_table(one) for one in options.named_tables.now(tables_there(asking))]
