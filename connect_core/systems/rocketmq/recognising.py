"""Tells messages of ours among those of a queue, many at once: the hot path of looking through a target.

Most of what is looked through was written by one lane, batch behind batch: then the coordinates of all messages of a
part of the queue stand at the same place, counted from the end of their properties, and differ in digits only. Whatever
is otherwise goes through `marking.Recogniser`, message by message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from connect_core.sdk.kits.log_marks import Elsewhere, Marks, grouped
from connect_core.sdk.records import Lineage
from connect_core.systems.rocketmq.columns import Columns
from connect_core.systems.rocketmq.marking import COORDINATES, PAIR_END, MessageRecogniser, Torn

Numbers = NDArray[np.int64]
FEW = 64
"""So many messages are looked at sooner one by one."""
_MAX_DIGITS = 18
_FIELDS = 6
"""Of coordinates that say no more than which record: uid, stream, partition, incarnation, offset, ordinal."""
_COLON, _ZERO = ord(":"), ord("0")


class ColumnRecogniser:
    """As `MessageRecogniser`, for columns."""

    def __init__(self, lineages: Iterable[Lineage]) -> None:
        self._one_by_one = MessageRecogniser(lineages)

    def read(self, columns: Columns) -> Iterator[Marks | Elsewhere | Torn]:
        """What is of ours, in order, and what was torn, whosever it is."""
        alike = _alike(columns.properties, self._one_by_one.needle)
        if alike is None:
            pairs = zip(columns.properties.to_pylist(), columns.offsets.tolist(), strict=True)
            yield from grouped(self._one_by_one.read_pairs(pairs))
            return
        lineage = self._one_by_one.lineage_of(alike.fields)
        if lineage is not None:
            nothing, once = np.zeros(len(columns), dtype=np.int64), np.ones(len(columns), dtype=np.int64)
            rows = np.column_stack([alike.offsets, alike.ordinals, columns.offsets, nothing, once])
            yield Marks(lineage, rows)
        else:
            yield from self._elsewhere(alike, columns.offsets)

    def _elsewhere(self, alike: _Alike, places: Numbers) -> Iterator[Elsewhere]:
        """What the fields say of the first they say of all: most often nothing, of another partition's records."""
        first = self._one_by_one.elsewhere(alike.fields, int(alike.offsets[0]), int(places[0]))
        if first is not None:
            for offset, place in zip(alike.offsets.tolist(), places.tolist(), strict=True):
                yield first._replace(offset=offset, position=place)


class _Alike(NamedTuple):
    """The fields that all have in common, up to the incarnation, and the numbers of each."""

    fields: list[bytes]
    offsets: Numbers
    ordinals: Numbers


def _alike(properties: pa.Array, needle: bytes) -> _Alike | None:
    """None unless every row has its coordinates as the first one has them, but for digits."""
    if len(properties) < FEW or properties.null_count:
        return None
    first = properties[0].as_py()
    at = first.rfind(needle)
    if at < 1 or first[at - 1] != PAIR_END[0]:
        return None
    text, end, _ = first[at + len(COORDINATES) :].partition(PAIR_END)
    fields = text.split(b":")
    if len(fields) != _FIELDS or not end or max(len(fields[-2]), len(fields[-1])) > _MAX_DIGITS:
        return None
    tail = np.frombuffer(first, dtype=np.uint8)[at - 1 :]
    cells = _last_bytes(properties, len(tail))
    ends = 1 + len(COORDINATES) + len(text)
    ordinals = slice(ends - len(fields[-1]), ends)
    offsets = slice(ordinals.start - 1 - len(fields[-2]), ordinals.start - 1)
    if cells is None or not _stand_alike(cells, tail, offsets, ordinals):
        return None
    return _Alike(fields[:-2], _numbers(cells[:, offsets]), _numbers(cells[:, ordinals]))


def _last_bytes(properties: pa.Array, count: int) -> NDArray[np.uint8] | None:
    """Of each row; None when one has fewer."""
    _, places, data = properties.buffers()
    ends = np.frombuffer(places, dtype=np.int32)[properties.offset : properties.offset + len(properties) + 1]
    if data is None or (np.diff(ends) < count).any():
        return None
    windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(data, dtype=np.uint8), count)
    cells: NDArray[np.uint8] = windows[ends[1:] - count]
    return cells


def _stand_alike(cells: NDArray[np.uint8], tail: NDArray[np.uint8], offsets: slice, ordinals: slice) -> bool:
    """Behind the coordinates nothing may begin another property of their name, and no row may end in zeros (`Torn`)."""
    behind = cells[:, ordinals.stop + 1 :]
    return bool(
        (cells[:, : offsets.start] == tail[: offsets.start]).all()
        and (cells[:, offsets.stop] == _COLON).all()
        and (cells[:, ordinals.stop] == PAIR_END[0]).all()
        and (cells[:, -1] != 0).all()
        and not (behind == COORDINATES[0]).any()
        and (cells[:, offsets] - _ZERO <= 9).all()
        and (cells[:, ordinals] - _ZERO <= 9).all()
    )


def _numbers(digits: NDArray[np.uint8]) -> Numbers:
    powers = 10 ** np.arange(digits.shape[1] - 1, -1, -1, dtype=np.int64)
    numbers: Numbers = (digits - _ZERO).astype(np.int64) @ powers
    return numbers
