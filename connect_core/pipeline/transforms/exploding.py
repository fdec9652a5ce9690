"""Records with a list that become one record for each of its items, column by column. Pure.

Pieces of a record keep its offset. Which piece is which is said at the end of the pipeline, by its place among all
outputs of the record (`pipeline.numbering`): what a filter leaves out has no place.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.pipeline.transforms.columns import column_at
from connect_core.pipeline.transforms.paths import written
from connect_core.pipeline.transforms.shape_steps import ExplodeRows
from connect_core.pipeline.transforms.working import Work

MAX_PIECES = 10_000
"""Of one record: all of them are written at once, or none."""


class TooManyOutputs(Exception):
    """More outputs than may be held at once; fewer records have to be shaped."""


def explode(step: ExplodeRows, work: Work) -> None:
    _, lists = column_at(work.rows, step.path)
    counts = pc.fill_null(lists.value_lengths(), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    work.reject(counts > MAX_PIECES, f"explode of {written(step.path)}: more than {MAX_PIECES} items")
    counts = np.where(work.alive, counts, 0)
    _check_size(work, counts)
    rows = np.repeat(np.arange(len(counts)), counts)
    field = lists.type.value_field.with_name(step.path[-1])
    items = lists.values.take(pa.array(_places(lists, counts)))
    work.take(rows)
    work.put(step.path, (field, items))


def _places(lists: pa.ListArray, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the items are, list after list."""
    starts = lists.offsets.to_numpy()[:-1].astype(np.int64)
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(starts, counts) + within


def _check_size(work: Work, counts: NDArray[np.int64]) -> None:
    """By what a row holds on the average. One record is never too many: it cannot be divided."""
    if work.most_bytes is None or not len(counts) or len(np.unique(work.places[counts > 0])) <= 1:
        return
    held = (work.rows.nbytes + work.records.nbytes) / len(counts)
    if counts.sum() * held > work.most_bytes:
        raise TooManyOutputs
