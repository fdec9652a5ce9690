"""Which output of its record each row is. Pure.

Rows of one record stand behind each other with the same offset. Their ordinals count from 0 without a gap, in order:
a range can so tell a record that is there as a whole from one that is there in part (`docs/decisions/rules.md`).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


def numbered(records: Numbers) -> tuple[pa.Array, pa.Array] | None:
    """`records` says for each output which record it is of, ascending. Ordinals, and how many outputs its record has;
    None where each has one."""
    _, first, counts = np.unique(records, return_index=True, return_counts=True)
    if len(counts) == len(records):
        return None
    ordinals = np.arange(len(records)) - np.repeat(first, counts)
    return pa.array(ordinals, pa.int32()), pa.array(np.repeat(counts, counts), pa.int32())


def with_numbers(outputs: pa.RecordBatch) -> pa.RecordBatch:
    """Of RECORD_SCHEMA."""
    numbers = numbered(outputs.column("offset").to_numpy())
    if numbers is None:
        return outputs
    columns = dict(zip(outputs.schema.names, outputs.columns, strict=True))
    columns["ordinal"], columns["outputs"] = numbers
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=outputs.schema)


def whole_records(offsets: Numbers, rows: int) -> int:
    """As many of the first `rows` as end where a record ends; at least one record."""
    if rows >= len(offsets):
        return len(offsets)
    begin = int(np.searchsorted(offsets, offsets[rows]))
    return begin or int(np.searchsorted(offsets, offsets[rows], side="right"))
