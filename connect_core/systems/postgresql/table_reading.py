"""Rows of a table as records, a page at a time, within a transaction that sees the table as it is at one moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from psycopg2.extensions import cursor

from connect_core.systems.postgresql.catalog import quoted, quoted_name
from connect_core.systems.postgresql.keyed_rows import NUMBER, number_of, within_keys
from connect_core.systems.postgresql.readable import expression, is_text_in_json, one_line
from connect_core.systems.postgresql.source_catalog import SourceTable, read_source_table
from connect_core.systems.postgresql.source_options import PostgresSourceOptions
from connect_core.systems.postgresql.source_query import query_as_it_is
from connect_core.systems.tables.pages import Page, Row
from connect_core.systems.tables.passes import Among, TimeWindow

_FIRST_ROWS = 50
"""Nobody knows yet how long rows are."""


def read_source(asking: cursor, options: PostgresSourceOptions) -> SourceTable:
    """The table, or the query, now. Raises what `read_source_table` and `query_as_it_is` raise."""
    if not options.query:
        return read_source_table(asking, options)
    with query_as_it_is(asking, options) as table:
        return table


@contextmanager
def as_it_is(asking: cursor, options: PostgresSourceOptions) -> Iterator[SourceTable]:
    """The table at one moment: it is neither dropped nor changed meanwhile."""
    if options.query:
        with query_as_it_is(asking, options) as table:
            yield table
        return
    asking.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    asking.execute(f"LOCK TABLE {quoted(options.table)} IN ACCESS SHARE MODE")
    yield read_source_table(asking, options)
    asking.execute("COMMIT")


def page(
    asking: cursor,
    table: SourceTable,
    begin: int,
    end: int,
    most: int,
    most_bytes: int,
    among: Among,
) -> Page:
    """Of these rows those of [begin, end) in the order of their ids, until there are `most`, or their bytes reach
    `most_bytes`."""
    asking.execute(f"DECLARE waybill NO SCROLL CURSOR FOR {_between(asking, table, begin, end, most, among)}")
    rows: list[Row] = []
    size, step = 0, _FIRST_ROWS
    while len(rows) < most and size < most_bytes:
        asked = min(step, most - len(rows))
        asking.execute(f"FETCH FORWARD {asked} FROM waybill")
        found: list[Row] = asking.fetchall()
        rows += found
        if len(found) < asked:
            return Page(rows, at_end=True)
        size += sum(len(value) for _, _, value in found)
        step = min(10 * step, max(1, (most_bytes - size) * len(rows) // max(size, 1)))
    asking.execute("FETCH FORWARD 1 FROM waybill")
    rows += [row for row in asking.fetchall() if row[0] == rows[-1][0]]  # for whoever looks whether ids are unique
    return Page(rows, at_end=False)


def changed_in(table: SourceTable, window: TimeWindow | None) -> str:
    """A condition."""
    if table.time is None or window is None:
        return "true"
    column = quoted_name(table.time.name)
    zone = " AT TIME ZONE 'UTC'" if table.time.kind.endswith("without time zone") else ""
    before = f"{column} < to_timestamp({window.end}){zone}"
    return before if window.begin is None else f"{column} >= to_timestamp({window.begin}){zone} AND {before}"


def newest(asking: cursor, table: SourceTable, last: int) -> list[Row]:
    """The last rows, in order."""
    names = [quoted_name(one.name) for one in table.key] if table.is_keyed else [quoted_name(table.id)]
    order = ", ".join(f"r.{name} DESC" for name in names)
    found = f"(SELECT * FROM {_rows(table, f'WHERE {names[0]} IS NOT NULL')} ORDER BY {order} LIMIT {last}) r"
    number, digest = (NUMBER, f"CROSS JOIN LATERAL {number_of(table.key)}") if table.is_keyed else (names[0], "")
    asking.execute(f"SELECT {number}, {_written(table)} FROM {found} {digest} ORDER BY {order}")
    rows: list[Row] = asking.fetchall()
    return rows[::-1]


def numbered_rows(asking: cursor, table: SourceTable, among: Among) -> str:
    """What stands behind FROM, of a table whose rows are numbered by their keys."""
    meant = f"{changed_in(table, among.window)} AND {within_keys(asking, table.key, among.stretch)}"
    return f"{_rows(table, f'WHERE {meant}')} CROSS JOIN LATERAL {number_of(table.key)}"


def _between(asking: cursor, table: SourceTable, begin: int, end: int, most: int, among: Among) -> str:
    if table.is_keyed:
        rows = f"SELECT {NUMBER}, {_written(table)} FROM {numbered_rows(asking, table, among)}"
        return f"{rows} WHERE {NUMBER} >= {begin} AND {NUMBER} < {end} ORDER BY {NUMBER} LIMIT {most + 1}"
    ids = quoted_name(table.id)
    within = f"WHERE {ids} >= {begin} AND {ids} < {end} AND {changed_in(table, among.window)}"
    return f"SELECT {ids}, {_written(table)} FROM {_rows(table, within)} ORDER BY r.{ids}"


def _rows(table: SourceTable, within: str) -> str:
    members = ", ".join(map(expression, table.columns))
    return f"(SELECT {members} FROM {table.relation} {within}) r"


def _written(table: SourceTable) -> str:
    """Key and value of a record."""
    return f"{_key(table)}, {one_line('row_to_json(r)::text', table.columns)}"


def _key(table: SourceTable) -> str:
    """Of one column its text as JSON has it, without quotation marks; of several an object."""
    names = [quoted_name(column.name) for column in table.key]
    if not names:
        return "NULL"
    if len(names) == 1 and is_text_in_json(table.key[0]):
        return f"{names[0]}::text"
    if len(names) == 1:
        return f"to_json({names[0]}) #>> '{{}}'"
    whole = f"row_to_json((SELECT k FROM (SELECT {', '.join(names)}) k))::text"
    return one_line(whole, table.key)
