"""Property strings that have the same names in the same order, as those of one producer mostly have: cut into columns
without a look at each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from connect_core.systems.rocketmq.marking import joined

_NAME_END, _PAIR_END = 1, 2
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """Strings of `names`, each with a value: where in `data` the pairs begin, their values begin, and they end (at
    their separator), a row for each string and a column for each name."""

    names: Sequence[bytes]
    data: pa.Buffer
    begins: Numbers
    values: Numbers
    ends: Numbers

    def value(self, column: int) -> pa.Array:
        """The values of one name."""
        return self._cut(self.values[:, column], self.ends[:, column])

    def pairs(self, columns: Sequence[int]) -> pa.Array:
        """These pairs of each string, one behind the other, as they stand in it; at least one."""
        breaks = np.flatnonzero(np.diff(columns) > 1) + 1
        runs = np.split(np.asarray(columns), breaks)
        cut = [self._cut(self.begins[:, run[0]], self.ends[:, run[-1]] + 1) for run in runs]
        return cut[0] if len(cut) == 1 else joined(*cut)

    def _cut(self, begins: Numbers, ends: Numbers) -> pa.Array:
        """Every other value of an array that is all of `data`, cut at these places."""
        places = np.stack([begins, ends], axis=1).astype(np.int32).ravel()
        everything = pa.Array.from_buffers(
            pa.binary(), len(places) - 1, [None, pa.py_buffer(places), self.data], null_count=0
        )
        return everything.take(pa.array(np.arange(0, len(places), 2)))


def layout_of(properties: pa.Array) -> Layout | None:
    """None for strings that differ in their names or order, for a pair without a value, and for no strings at all.

    The last pair of a string may have no separator; two of them in a row are nothing.
    """
    count = len(properties)
    if not count or properties.null_count:
        return None
    ended = joined(properties, b"\x02")
    _, places, data = ended.buffers()
    rows = np.frombuffer(places, dtype=np.int32)[ended.offset : ended.offset + count + 1].astype(np.int64)
    raw = np.frombuffer(data, dtype=np.uint8)[: rows[-1]]
    separators = np.flatnonzero(raw == _PAIR_END)
    if len(separators) % count:
        return None
    ends = separators.reshape(count, -1)
    if not np.array_equal(ends[:, -1] + 1, rows[1:]):
        return None
    begins = np.column_stack([rows[:-1], ends[:, :-1] + 1])
    given = (ends > begins).any(axis=0)
    begins, ends = begins[:, given], ends[:, given]
    values = _values(raw, begins, ends)
    names = None if values is None else _names(raw, begins, values)
    return None if names is None or values is None else Layout(names, data, begins, values, ends)


def _values(raw: NDArray[np.uint8], begins: Numbers, ends: Numbers) -> Numbers | None:
    """Where each value begins: behind the first separator of its pair. None when a name or a value is empty."""
    separators = np.append(np.flatnonzero(raw == _NAME_END), len(raw))
    values = separators[np.searchsorted(separators, begins.ravel())].reshape(begins.shape) + 1
    return None if (values >= ends).any() or (values == begins + 1).any() else values


def _names(raw: NDArray[np.uint8], begins: Numbers, values: Numbers) -> list[bytes] | None:
    names = [raw[begin : value - 1].tobytes() for begin, value in zip(begins[0], values[0], strict=True)]
    lengths = values - begins - 1
    if (lengths != lengths[:1]).any():
        return None
    for column, name in enumerate(names):
        cells = raw[begins[:, column, None] + np.arange(len(name))]
        if (cells != cells[:1]).any():
            return None
    return names
