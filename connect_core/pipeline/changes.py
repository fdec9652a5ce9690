"""Changes of rows in a pipeline: what happened to a row travels with its record, and how it was before goes through the
steps that change its fields. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from connect_core.pipeline.formats.payloads import taken, with_column
from connect_core.pipeline.transforms.row_step import RowStep
from connect_core.pipeline.transforms.running import Stepped, run
from connect_core.pipeline.transforms.working import TypedRows
from connect_core.sdk.batches import BEFORE


def with_operations(records: pa.RecordBatch, operations: pa.Array | None) -> pa.RecordBatch:
    """`operations` are those of these records; None where they are no changes."""
    if operations is None:
        return records
    return with_column(records, "operation", operations)


def with_before(stepped: Stepped, steps: Sequence[RowStep], before: pa.StructArray, given: TypedRows) -> Stepped:
    """The column BEFORE beside those of the records: of each row as it was, null where that is not known, what the
    steps make of it. `given` is what `stepped` was made of, `before` as long. No step makes several rows of one."""
    there = np.flatnonzero(before.is_valid().to_numpy(zero_copy_only=False))
    working = [step for step in steps if step.on_images == "works"]
    made = run(working, TypedRows(before.take(pa.array(there)), taken(given.records, there), given.path))
    unfit = {int(there[place]): f"before: {why}" for place, why in made.unfit} | dict(stepped.unfit)
    index = np.full(len(before), -1, dtype=np.int64)
    index[there[made.places]] = np.arange(len(made.places))
    stays = np.flatnonzero(~np.isin(stepped.places, list(unfit)))
    places = stepped.places[stays]
    images = made.rows.struct.take(pa.array(index[places], mask=index[places] < 0))
    records = taken(stepped.rows.records, stays)
    records = records.append_column(BEFORE, images)
    return Stepped(TypedRows(taken(stepped.rows.struct, stays), records, given.path), places, sorted(unfit.items()))
