"""Rows of a table as records, a page at a time. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from connect_core.errors import DataError
from connect_core.sdk.batches import batch_of_columns
from connect_core.sdk.values import OPEN_END, Reject, SourceBatch

MOST_ROWS, MOST_BYTES = 10_000, 4 << 20
"""Of a page, where nothing else bounds it."""
Row = tuple[int, str | None, str]
"""Its id, its key and its JSON object."""


class UnfitRow(NamedTuple):
    """One that has a value which no record can have."""

    id: int
    why: str
    value: bytes
    """That value."""


class Page(NamedTuple):
    rows: list[Row]
    at_end: bool
    """Whether there are no more in the stretch that was asked for."""
    unfit: Sequence[UnfitRow] = ()
    """Rows that are there, too, in order."""


_NEXT_STEPS = {
    "table": "Give one of them another one, higher than all others",
    "query": "Name a column as incrementing that tells rows of the query apart: of a join mostly the key of the table"
    " that has most rows",
    "keys": "It is made of the key: give one of them another key, or name a column of whole numbers as incrementing",
}
RowsOf = Literal["table", "query", "keys"]
"""`keys`: of a table that is numbered by these."""


def batch_of(found: Page, begin: int, end: int, where: str, topic: str, rows_of: RowsOf = "table") -> SourceBatch:
    """All of this topic. Raises DataError where two rows have one id: only one of them would be a record."""
    ids = np.array([row[0] for row in found.rows] + [one.id for one in found.unfit], np.int64)
    ids.sort()
    if (again := np.flatnonzero(ids[1:] == ids[:-1])).size:
        words = f"Two rows have the number {ids[again[0]]}, which must tell rows apart"
        raise DataError(words, where=where, next_step=_NEXT_STEPS[rows_of])
    behind = end if found.at_end else int(ids[-1]) + 1
    rejects = tuple(Reject(one.id, 0, "read", "Unfit", one.why, one.value, topic) for one in found.unfit)
    return SourceBatch(record_batch(found.rows, topic), behind, holes_between(ids, begin, behind), rejects=rejects)


def record_batch(rows: Sequence[Row], topic: str) -> pa.RecordBatch:
    given = {
        "topic": pa.repeat(pa.scalar(topic, pa.string()), len(rows)),
        "offset": pa.array([row[0] for row in rows], pa.int64()),
        "key": pa.array([row[1] for row in rows], pa.string()),
        "value": pa.array([row[2] for row in rows], pa.string()).cast(pa.binary()),
        "operation": pa.array(np.zeros(len(rows), np.int8)),
    }
    return batch_of_columns(given, len(rows))


def holes_between(ids: NDArray[np.int64], begin: int, behind: int) -> tuple[tuple[int, int], ...]:
    """Of [begin, behind) the stretches without any of these ids, which ascend."""
    begins, ends = np.append(begin, ids + 1), np.append(ids, behind)
    there = ends > begins
    return tuple(zip(begins[there].tolist(), ends[there].tolist(), strict=True))


def unfit_numbers(lowest: int | None, end: int) -> str:
    """Why these cannot be offsets; empty where they can. `end` is the number behind the highest."""
    if (lowest is not None and lowest < 0) or end >= OPEN_END:
        return f"Numbers of rows must be from 0 to {OPEN_END - 2}, and the table has others"
    return ""
