"""What is wanted of a queue and what is there -> the pieces that Spark's tasks read, and those that are lost. Pure.

Pieces are fixed when Spark plans: whatever comes or goes later, a task that is tried again reads the same offsets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from connect_core.rocketmq import Queue, QueueBounds


class ReadRange(NamedTuple):
    """Offsets `[begin, end)` of a queue; None: from the oldest there is, to the end there is."""

    queue: Queue
    begin: int | None = None
    end: int | None = None


@dataclass(frozen=True)
class ReadPiece:
    """Offsets `[begin, end)` of a queue: what one task reads. With a cause in `lost` there is nothing to be read."""

    queue: Queue
    begin: int
    end: int
    lost: str = ""


def pieces(wanted: ReadRange, seen: QueueBounds, most: int) -> Iterator[ReadPiece]:
    """In the order of their offsets; no readable piece has more than `most`."""
    begin, end = _range(wanted, seen)
    behind = max(begin, seen.end)
    if begin < min(end, seen.begin):
        yield ReadPiece(
            wanted.queue, begin, min(end, seen.begin), f"the oldest message there is has offset {seen.begin}"
        )
    yield from _cut(ReadPiece(wanted.queue, max(begin, seen.begin), min(end, seen.end)), most)
    if begin > seen.end or end > seen.end:
        yield ReadPiece(wanted.queue, behind, max(behind, end), f"the queue ends at {seen.end}")


def _range(wanted: ReadRange, seen: QueueBounds) -> tuple[int, int]:
    """What is not said is there, so that only what is said can be lost."""
    begin, end = wanted.begin, wanted.end
    if begin is None:
        begin = seen.begin if end is None else min(seen.begin, end)
    return begin, seen.end if end is None else end


def _cut(piece: ReadPiece, most: int) -> Iterator[ReadPiece]:
    length = piece.end - piece.begin
    count = -(-length // most) if length > 0 else 0
    places = [piece.begin + length * index // count for index in range(count + 1)] if count else []
    for begin, end in pairwise(places):
        yield ReadPiece(piece.queue, begin, end)
