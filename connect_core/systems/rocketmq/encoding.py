"""Columns of bodies and properties -> the body of one batch send. No Python code runs per message.

The same bytes as `wire.batch_entries.encode_batch` makes of lists.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect_core.rocketmq import Batch
from connect_core.rocketmq.wire.batch_entries import ENTRY_OVERHEAD, MAX_ENTRIES, MAX_PROPERTIES_BYTES
from connect_core.systems.rocketmq.marking import fixed, joined


def encode_columns(bodies: pa.Array, properties: pa.Array) -> Batch:
    """Raises ValueError for too many messages, or properties that the broker would damage its queue with."""
    count = len(bodies)
    sizes, lengths = (pc.binary_length(column).to_numpy() for column in (bodies, properties))
    if count > MAX_ENTRIES or lengths.max(initial=0) > MAX_PROPERTIES_BYTES:
        raise ValueError(f"{count} messages with properties of up to {lengths.max(initial=0)} bytes in one batch")
    heads = np.zeros((count, 5), dtype=">i4")  # total, magic, checksum (the broker computes it), flag, body length
    heads[:, 0] = ENTRY_OVERHEAD + sizes + lengths
    heads[:, 4] = sizes
    texts = fixed(np.ascontiguousarray(lengths.astype(">i2")).view(np.uint8).reshape(count, 2))
    messages = joined(fixed(heads.view(np.uint8)), bodies, texts, properties)
    _, _, data = messages.buffers()
    return Batch(count, bytes(memoryview(data)[: int(heads[:, 0].sum())]) if count else b"")
