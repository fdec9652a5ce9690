"""What rows hold, row by row. Pure."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Bytes = NDArray[np.float64]


def row_bytes(rows: pa.RecordBatch) -> Bytes:
    """Of each row all that its columns hold of it, about."""
    held: Bytes = np.zeros(len(rows))
    for column in rows.columns:
        held += value_bytes(column)
    return held


def value_bytes(column: pa.Array) -> Bytes:
    kind = column.type
    held: Bytes = np.zeros(len(column))
    if pa.types.is_struct(kind):
        for part in column.flatten():
            held += value_bytes(part)
    elif pa.types.is_list(kind):
        ends = column.offsets.to_numpy()
        items = value_bytes(column.values.slice(ends[0], ends[-1] - ends[0]))
        before = np.concatenate([[0.0], np.cumsum(items)])
        held += before[ends[1:] - ends[0]] - before[ends[:-1] - ends[0]] + 4
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        held += pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False) + 4
    else:
        held += kind.bit_width / 8
    return held
