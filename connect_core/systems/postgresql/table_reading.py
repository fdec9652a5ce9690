"""Rows of a table as records, a page at a time, within a transaction that sees the table as it is at one moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from psycopg2.extensions import cursor

from connect_core.errors import DataError
from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.sdk.values import SourceBatch
from connect_core.systems.postgresql.catalog import quoted, quoted_name
from connect_core.systems.postgresql.readable import expression, one_line
from connect_core.systems.postgresql.source_catalog import SourceTable, read_source_table
from connect_core.systems.postgresql.source_options import PostgresSourceOptions

MOST_ROWS, MOST_BYTES = 10_000, 4 << 20
"""Of a page, where nothing else bounds it."""
_FIRST_ROWS = 50
"""Nobody knows yet how long rows are."""
Row = tuple[int, str | None, str]
"""Its id, its key and its JSON object."""


class Page(NamedTuple):
    rows: list[Row]
    at_end: bool
    """Whether there are no more in the stretch that was asked for."""


@contextmanager
def as_it_is(asking: cursor, options: PostgresSourceOptions) -> Iterator[SourceTable]:
    """The table at one moment: it is neither dropped nor changed meanwhile."""
    asking.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    asking.execute(f"LOCK TABLE {quoted(options.table)} IN ACCESS SHARE MODE")
    yield read_source_table(asking, options)
    asking.execute("COMMIT")


def page(asking: cursor, name: str, table: SourceTable, begin: int, end: int, most: int, most_bytes: int) -> Page:
    """Rows of [begin, end) in the order of their ids, until there are `most`, or their bytes reach `most_bytes`."""
    ids = quoted_name(table.id)
    within = f"WHERE {ids} >= {begin} AND {ids} < {end}"
    asking.execute(f"DECLARE waybill NO SCROLL CURSOR FOR {_select(name, table, within)} ORDER BY {ids}")
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


def newest(asking: cursor, name: str, table: SourceTable, last: int) -> list[Row]:
    """The last rows, in order."""
    asking.execute(f"{_select(name, table, '')} ORDER BY {quoted_name(table.id)} DESC LIMIT {last}")
    rows: list[Row] = asking.fetchall()
    return rows[::-1]


def batch_of(found: Page, begin: int, end: int, where: str) -> SourceBatch:
    """Raises DataError where two rows have one id: only one of them would be a record."""
    ids = np.array([row[0] for row in found.rows], np.int64)
    if (again := np.flatnonzero(ids[1:] == ids[:-1])).size:
        words = f"Two rows have the number {ids[again[0]]}, which must tell rows apart"
        raise DataError(words, where=where, next_step="Give one of them another one, higher than all others")
    behind = end if found.at_end else int(ids[-1]) + 1
    return SourceBatch(record_batch(found.rows), behind, _holes(ids, begin, behind))


def record_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    given = {
        "offset": pa.array([row[0] for row in rows], pa.int64()),
        "key": pa.array([row[1] for row in rows], pa.string()),
        "value": pa.array([row[2] for row in rows], pa.string()).cast(pa.binary()),
        "operation": pa.array(np.zeros(len(rows), np.int8)),
    }
    columns = [given[one.name] if one.name in given else pa.nulls(len(rows), one.type) for one in RECORD_SCHEMA]
    return pa.RecordBatch.from_arrays(columns, schema=RECORD_SCHEMA)


def _holes(ids: NDArray[np.int64], begin: int, behind: int) -> tuple[tuple[int, int], ...]:
    begins, ends = np.append(begin, ids + 1), np.append(ids, behind)
    there = ends > begins
    return tuple(zip(begins[there].tolist(), ends[there].tolist(), strict=True))


def _select(name: str, table: SourceTable, within: str) -> str:
    value = one_line("row_to_json(r)::text", table.columns)
    members = ", ".join(map(expression, table.columns))
    return (
        f"SELECT {quoted_name(table.id)}, {_key(table)}, {value} FROM (SELECT {members} FROM {quoted(name)} {within}) r"
    )


def _key(table: SourceTable) -> str:
    """Of one column its text as JSON has it, without quotation marks; of several an object."""
    names = [quoted_name(column.name) for column in table.key]
    if not names:
        return "NULL"
    if len(names) == 1:
        return f"to_json({names[0]}) #>> '{{}}'"
    whole = f"row_to_json((SELECT k FROM (SELECT {', '.join(names)}) k))::text"
    return one_line(whole, table.key)
