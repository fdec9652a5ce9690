"""Columns of bodies and properties -> bodies of batch sends. No Python code runs per message, unless there are few.

The same bytes as `wire.batch_entries.encode_batch` makes of lists.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from connect_core.rocketmq import Batch, encode_batch
from connect_core.rocketmq.wire.batch_entries import ENTRY_OVERHEAD, MAX_ENTRIES, MAX_PROPERTIES_BYTES
from connect_core.sdk.batches import value_lengths
from connect_core.systems.rocketmq.marking import FEW, fixed, joined


def encode_entries(bodies: pa.Array, properties: pa.Array, flags: NDArray[np.int32] | None = None) -> pa.Array:
    """For each row its entry in a batch. Raises ValueError for properties that would damage the broker's queue."""
    sizes, lengths = map(value_lengths, (bodies, properties))
    if lengths.max(initial=0) > MAX_PROPERTIES_BYTES:
        raise ValueError(f"Properties of {lengths.max()} bytes in a batch")
    heads = np.zeros((len(bodies), 5), dtype=">i4")  # total, magic, checksum (the broker's affair), flag, body length
    heads[:, 0] = ENTRY_OVERHEAD + sizes + lengths
    if flags is not None:
        heads[:, 3] = flags
    heads[:, 4] = sizes
    texts = fixed(np.ascontiguousarray(lengths.astype(">i2")).view(np.uint8).reshape(-1, 2))
    return joined(fixed(heads.view(np.uint8)), bodies, texts, properties)


def encode_few(bodies: pa.Array, properties: Iterable[bytes], flags: NDArray[np.int32] | None = None) -> list[bytes]:
    """The same row by row: a message that comes alone would wait for the columns."""
    given = [0] * len(bodies) if flags is None else flags.tolist()
    rows = zip(bodies.to_pylist(), properties, given, strict=True)
    return [encode_batch([body], [text], [flag]).body for body, text, flag in rows]


def batch_of(entries: pa.Array) -> Batch:
    """Entries back to back, as one request takes them. Raises ValueError for too many."""
    count = len(entries)
    if count > MAX_ENTRIES:
        raise ValueError(f"{count} messages in one batch")
    if count <= FEW:
        return Batch(count, b"".join(entries.to_pylist()))
    _, places, data = entries.buffers()
    begin, end = np.frombuffer(places, dtype=np.int32)[[entries.offset, entries.offset + count]]
    return Batch(count, bytes(memoryview(data)[begin:end]))
