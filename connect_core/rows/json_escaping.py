"""Texts -> texts as JSON has them between its quotes. Pure, in one pass over all bytes of a column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_SHORT = np.zeros(256, np.uint8)
r"""Of a byte, the letter behind the backslash; zero where it is written as \u00XX."""
for _byte, _letter in {8: "b", 9: "t", 10: "n", 12: "f", 13: "r", 34: '"', 92: "\\"}.items():
    _SHORT[_byte] = ord(_letter)
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_BACKSLASH = ord("\\")
_LIMIT = (1 << 31) - 1


def escaped(column: pa.Array) -> pa.Array:
    """Quotes, backslashes and control characters; all else is as it was. Raises ArrowCapacityError."""
    size, (_, places, data) = len(column), column.buffers()
    if not size or data is None:
        return column
    offsets = np.frombuffer(places, np.int32, size + 1, column.offset * 4).astype(np.int64)
    raw = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    offsets -= offsets[0]
    special = np.flatnonzero((raw < 32) | (raw == ord('"')) | (raw == _BACKSLASH))
    if not len(special):
        return column
    more = np.where(_SHORT[raw[special]] == 0, 5, 1)
    added = np.concatenate(([0], np.cumsum(more)))
    moved = offsets + added[np.searchsorted(special, offsets)]
    if moved[-1] > _LIMIT:
        raise pa.ArrowCapacityError("the texts of a column, escaped, are longer than an Arrow array")
    bytes_ = _with_escapes(raw, special, special + added[:-1], int(moved[-1]))
    buffers = [_validity(column), pa.py_buffer(moved.astype(np.int32)), pa.py_buffer(bytes_)]
    return pa.Array.from_buffers(pa.string(), size, buffers, column.null_count)


def _validity(column: pa.Array) -> pa.Buffer | None:
    """From bit 0 on, also of a slice."""
    if not column.null_count:
        return None
    return pa.py_buffer(np.packbits(column.is_valid().to_numpy(zero_copy_only=False), bitorder="little"))


def _with_escapes(
    raw: NDArray[np.uint8], special: NDArray[np.int64], starts: NDArray[np.int64], size: int
) -> NDArray[np.uint8]:
    """`starts`: where in the result the escape of each special byte begins."""
    found = raw[special]
    letters = _SHORT[found]
    rare = letters == 0
    made, kept = np.empty(size, np.uint8), np.ones(size, bool)
    kept[starts] = False
    for at in range(1, 5):
        kept[starts[rare] + at] = False
    # A special byte itself falls on the last byte of its escape, and is overwritten there.
    made[kept] = raw
    made[starts] = _BACKSLASH
    made[starts[~rare] + 1] = letters[~rare]
    for at, byte in enumerate(b"u00", 1):
        made[starts[rare] + at] = byte
    made[starts[rare] + 4] = _HEX[found[rare] >> 4]
    made[starts[rare] + 5] = _HEX[found[rare] & 15]
    return made
