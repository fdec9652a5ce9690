"""Records with a list that become one record for each of its items, column by column. Pure.

Pieces of a record keep its offset. Which piece is which is said at the end of the pipeline, by its place among all
outputs of the record (`pipeline.numbering`): what a filter leaves out has no place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.pipeline.formats.payloads import with_values
from connect_core.pipeline.transforms.columns import column_at
from connect_core.pipeline.transforms.paths import written
from connect_core.pipeline.transforms.row_step import RowStep
from connect_core.pipeline.transforms.shape_steps import ExplodeRows
from connect_core.pipeline.transforms.sizes import row_bytes, value_bytes
from connect_core.pipeline.transforms.working import Work

MAX_PIECES = 10_000
"""Of one record, however many lists it is exploded by: all of them are written at once, or none."""
MAX_BYTES = 64 << 20
"""What the pieces of one record may hold in all, about. Where they are written they are there several times."""


class TooManyOutputs(Exception):
    """More outputs than may be held at once; fewer records have to be shaped."""


def explode(step: ExplodeRows, work: Work) -> None:
    """What is copied to each piece is neither the list nor, unless a later step names it, the payload."""
    field, lists = column_at(work.rows, step.path)
    counts = pc.fill_null(lists.value_lengths(), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    counts = np.where(work.alive, counts, 0)
    work.put(step.path, (field, pa.nulls(len(lists), lists.type)))
    if not _name_payload(work.later):
        work.records = with_values(work.records, pa.nulls(len(lists), pa.binary()))
    counts = _bounded(step, work, counts, value_bytes(lists))
    item = lists.type.value_field.with_name(step.path[-1])
    items = lists.values.take(pa.array(_places(lists, counts)))
    work.take(np.repeat(np.arange(len(counts)), counts))
    work.put(step.path, (item, items))


def _name_payload(steps: Sequence[RowStep]) -> bool:
    return any(one.kind == "text" for step in steps for one in step.references().values())


def _bounded(
    step: ExplodeRows, work: Work, counts: NDArray[np.int64], in_lists: NDArray[np.float64]
) -> NDArray[np.int64]:
    """How many pieces of each row, those left out whose record would have too many, or too large ones."""
    named = f"explode of {written(step.path)}"
    held: NDArray[np.float64] = counts * (row_bytes(work.rows) + row_bytes(work.records))
    work.reject(_in_all(work, counts) > MAX_PIECES, f"{named}: more than {MAX_PIECES} pieces of one record")
    work.reject(
        _in_all(work, held + in_lists) > MAX_BYTES,
        f"{named}: its pieces would hold more than {MAX_BYTES >> 20} MiB in all: each has all other fields of its"
        " record; drop those that no piece needs before",
    )
    counts = np.where(work.alive, counts, 0)
    _check_size(work, counts, float(held[work.alive].sum()))
    return counts


def _in_all(work: Work, of_rows: NDArray[Any]) -> NDArray[np.float64]:
    """For each row that of all rows of its record."""
    sums = np.zeros(int(work.places.max(initial=-1)) + 1)
    np.add.at(sums, work.places, of_rows)
    of_record: NDArray[np.float64] = sums[work.places]
    return of_record


def _places(lists: pa.ListArray, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the items are, list after list."""
    starts = lists.offsets.to_numpy()[:-1].astype(np.int64)
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(starts, counts) + within


def _check_size(work: Work, counts: NDArray[np.int64], held: float) -> None:
    """One record is never too many: it cannot be divided."""
    if work.most_bytes is not None and held > work.most_bytes and len(np.unique(work.places[counts > 0])) > 1:
        raise TooManyOutputs
