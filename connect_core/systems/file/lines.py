"""Bytes of a file -> batches of lines, without I/O. The file source's hot path: no Python code runs per line.

A line ends with a line feed. A carriage return right before it belongs to the line end, unless the document says that
only the line feed does; any other is part of the line.
Bytes pass as they are, valid UTF-8 or not. A line's offset is that of its first byte.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from connect_core.sdk.batches import batch_of_columns
from connect_core.sdk.records import OPERATION_NONE
from connect_core.sdk.values import Reject, SourceBatch
from connect_core.systems.file.line_rules import LineRules

MAX_ORIGINAL_BYTES = 64 * 1024
"""How much of a line that is too long is kept."""

_LF, _CR = 10, 13


def line_feeds(data: bytes) -> NDArray[np.int64]:
    """Positions of the line feeds in `data`."""
    return np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == _LF)


def line_batch(
    data: bytes, feeds: NDArray[np.int64], offset: int, rules: LineRules, *, padded: bool = False
) -> SourceBatch:
    """The batch of whole lines that `data` is; `feeds` are its line feeds, the last one its last byte; `offset` is
    where `data` stands in the file. Lines above the limit become rejects. `padded` says that the last line feed is not
    in the file: a carriage return before it is part of the line."""
    starts = np.empty_like(feeds)
    starts[0], starts[1:] = 0, feeds[:-1] + 1
    lengths = feeds - starts
    places = np.column_stack([starts + offset, lengths + 1])
    if rules.drop_returns and b"\r" in data:
        raw = np.frombuffer(data, dtype=np.uint8)
        returns = (raw[feeds - 1] == _CR) & (feeds > 0)
        kept = b"\r" if padded and returns[-1] else b""
        returns[-1] &= not padded
        lengths -= returns
        text = data.replace(b"\r\n", b"").replace(b"\n", b"") + kept
    else:
        text = data.replace(b"\n", b"")
    records = _records(text, lengths, starts + offset)
    too_long = lengths > rules.max_bytes
    if not too_long.any():
        return SourceBatch(records, offset + len(data), places=places)
    rejects = tuple(
        rejected_line(data[start : min(end, start + MAX_ORIGINAL_BYTES)], offset + start, rules.max_bytes)
        for start, end in zip(starts[too_long].tolist(), feeds[too_long].tolist(), strict=True)
    )
    return SourceBatch(records.filter(pa.array(~too_long)), offset + len(data), rejects=rejects, places=places)


def _records(text: bytes, lengths: NDArray[np.int64], offsets: NDArray[np.int64]) -> pa.RecordBatch:
    """Rows of RECORD_SCHEMA from values that stand back to back in `text`."""
    count = len(lengths)
    ends = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(lengths, out=ends[1:])
    values = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(text)])
    columns = {
        "value": values,
        "offset": pa.array(offsets, type=pa.int64()),
        "operation": pa.array(np.full(count, OPERATION_NONE, dtype=np.int8)),
    }
    return batch_of_columns(columns, count)


def rejected_line(original: bytes, offset: int, max_line_bytes: int) -> Reject:
    """`original` is the beginning of the line."""
    return Reject(
        offset=offset,
        ordinal=0,
        stage="read",
        kind="LineTooLong",
        message=f"The line is longer than max_line_bytes = {max_line_bytes}",
        original=original,
    )
