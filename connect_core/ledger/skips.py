"""What people left out when they moved a committed position forward. Pure.

No range is settled for it, so no receipt tells of it. It is worked out from the changes by hand whenever gaps are asked
for. Between two changes runs have read from where the first one led to where the second one began.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from connect_core.ledger.repeats import place_of
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Gap, Position

_Place = tuple[float, float]
_Stretch = tuple[_Place, _Place]
_FIRST, _LAST = (-math.inf, 0.0), (math.inf, 0.0)


@dataclass(frozen=True)
class HandMove:
    """A change of a committed position by a person. None: as if the partition had never been read."""

    stream: str
    partition: Partition
    before: Position | None
    after: Position | None
    who: str
    why: str
    at: datetime

    def jump(self) -> _Stretch | None:
        """What it passes over. Nothing where the partition was never read: there it says where that begins."""
        before, after = place_of(self.before), place_of(self.after)
        return (before, after) if self.before is not None and before < after else None


@dataclass(frozen=True)
class Skip:
    """What a move has left out, and nobody has read."""

    move: HandMove
    gap: Gap


def skips_of(moves: Iterable[HandMove]) -> list[Skip]:
    """What is left out by these moves, given in the order in which they were made, and told in that order."""
    by_partition: dict[tuple[str, Partition], list[HandMove]] = {}
    for move in moves:
        by_partition.setdefault((move.stream, move.partition), []).append(move)
    found = [skip for some in by_partition.values() for skip in _of_one(some)]
    return sorted(found, key=lambda one: one.move.at)


def _of_one(moves: Sequence[HandMove]) -> Iterator[Skip]:
    told = _read(moves)
    for move in moves:
        if (jump := move.jump()) is None:
            continue
        left = [jump]
        for known in told:
            left = [piece for one in left for piece in _without(one, known)]
        told.append(jump)
        yield from (Skip(move, gap) for one in left for gap in _gaps(move, one))


def _read(moves: Sequence[HandMove]) -> list[_Stretch]:
    """What runs have read before, between and after these moves, or will read."""
    begins = [_FIRST, *(place_of(move.after) for move in moves)]
    ends = [*(place_of(move.before) for move in moves), _LAST]
    return [*zip(begins, ends, strict=True)]


def _without(one: _Stretch, other: _Stretch) -> list[_Stretch]:
    pieces = ((one[0], min(one[1], other[0])), (max(one[0], other[1]), one[1]))
    return [piece for piece in pieces if piece[0] < piece[1]] if other[0] < other[1] else [one]


def _gaps(move: HandMove, left: _Stretch) -> Iterator[Gap]:
    """Of what ends in a later incarnation nobody knows where the one before ended."""
    (incarnation, begin), (last, end) = left
    reason = f"left out by {move.who}, who set the offset" + (f": {move.why}" if move.why else "")
    if incarnation == last:
        yield Gap(int(incarnation), int(begin), int(end), reason)
        return
    yield Gap(int(incarnation), int(begin), None, reason)
    if end:
        yield Gap(int(last), 0, int(end), reason)
