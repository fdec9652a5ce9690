"""Rows of a table as records, a page at a time, within a transaction that sees the table as it is at one moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from pymysql.cursors import Cursor

from connect_core.systems.mysql.catalog import quoted, quoted_name
from connect_core.systems.mysql.keyed_rows import number_of, within_keys
from connect_core.systems.mysql.source_catalog import MysqlSourceTable, read_source_table
from connect_core.systems.mysql.source_options import MysqlSourceOptions
from connect_core.systems.mysql.source_query import query_as_it_is
from connect_core.systems.tables.pages import Page, Row
from connect_core.systems.tables.passes import Among, TimeWindow

_FIRST_ROWS = 50
"""Nobody knows yet how long rows are."""
_GROWTH, _GROWTH_BY_DIGEST = 10, 1_000
"""Of what is asked for in the next statement. Each one reads the keys of a whole stretch where digests number rows: in
their order the first rows are as long as any others."""
_AT_ONCE, _AT_ONCE_BY_DIGEST = 2_500, 1_000_000
"""Rows of one statement at most: objects of more of them do not stay in the processor's caches while they become
records, which costs more than another statement."""


def read_source(asking: Cursor, options: MysqlSourceOptions) -> MysqlSourceTable:
    """The table, or the query, now. Raises what `read_source_table` and `query_as_it_is` raise."""
    if not options.query:
        return read_source_table(asking, options)
    with query_as_it_is(asking, options) as table:
        return table


@contextmanager
def as_it_is(asking: Cursor, options: MysqlSourceOptions) -> Iterator[MysqlSourceTable]:
    """The table at one moment: whoever has looked into it holds a metadata lock, so that it is neither dropped nor
    changed meanwhile."""
    if options.query:
        with query_as_it_is(asking, options) as table:
            yield table
        return
    asking.execute("START TRANSACTION READ ONLY")
    asking.execute(f"SELECT 1 FROM {quoted(options.split(options.table))} LIMIT 1")
    yield read_source_table(asking, options)
    asking.execute("COMMIT")


def page(
    asking: Cursor,
    table: MysqlSourceTable,
    begin: int,
    end: int,
    most: int,
    most_bytes: int,
    among: Among,
) -> Page:
    """Of these rows those of [begin, end) in the order of their numbers, until there are `most`, or their bytes reach
    `most_bytes`."""
    ids, meant = _number(table), f"{changed_in(table, among.window)} AND {within_keys(table.key, among.stretch)}"
    growth, at_once = (_GROWTH_BY_DIGEST, _AT_ONCE_BY_DIGEST) if table.is_keyed else (_GROWTH, _AT_ONCE)
    rows: list[Row] = []
    size, step = 0, _FIRST_ROWS
    while len(rows) < most and size < most_bytes:
        asked = min(step, at_once, most - len(rows))
        within = f"{ids} BETWEEN {begin} AND {end - 1} AND {meant}"
        found = _rows(asking, table, f"WHERE {within} ORDER BY {ids} LIMIT {asked + 1}")
        rows += found[:asked]
        if len(found) <= asked:
            return Page(rows, at_end=True)
        if found[-1][0] == rows[-1][0]:
            return Page([*rows, found[-1]], at_end=False)  # for whoever looks whether numbers are unique
        size += sum(len(value) for _, _, value in found[:asked])
        step = min(growth * step, max(1, (most_bytes - size) * len(rows) // max(size, 1)))
        begin = rows[-1][0] + 1
    return Page(rows, at_end=False)


def changed_in(table: MysqlSourceTable, window: TimeWindow | None) -> str:
    """A condition. Our sessions are in UTC."""
    if not table.time or window is None:
        return "TRUE"
    column = quoted_name(table.time)
    before = f"{column} < '{_written(window.end)}'"
    return before if window.begin is None else f"{column} >= '{_written(window.begin)}' AND {before}"


def _written(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%d %H:%M:%S")


def newest(asking: Cursor, table: MysqlSourceTable, last: int) -> list[Row]:
    """The last rows, in order."""
    names = [quoted_name(one.name) for one in table.key] if table.is_keyed else [quoted_name(table.id)]
    order = ", ".join(f"{name} DESC" for name in names)
    return _rows(asking, table, f"WHERE {names[0]} IS NOT NULL ORDER BY {order} LIMIT {last}")[::-1]


def _rows(asking: Cursor, table: MysqlSourceTable, which: str) -> list[Row]:
    number = None if table.is_keyed else table.rows.place_of(table.id)
    before = f"{_number(table)}, " if number is None else ""
    asking.execute(f"SELECT {before}{table.rows.asked} FROM {table.relation} {which}")
    return table.rows.read(asking.fetchall(), number)


def _number(table: MysqlSourceTable) -> str:
    return number_of(table.key) if table.is_keyed else quoted_name(table.id)
