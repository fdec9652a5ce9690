"""What a backfill or a replay moves: which part of each partition is moved next, and how far it has come. Pure.

A partition may have several parts, in order of (incarnation, offset): those that a replayed run has moved of a file
before and after its rotation, say. The committed position of the stream tells which are done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from connect_core.sdk.records import Partition
from connect_core.sdk.values import ORIGIN, Bounds, Gap, Json, Part, Position

Positions = Mapping[Partition, Position | None]


@dataclass(frozen=True)
class BackfillPlan:
    """`parts` as they are stored with the backfill: those of one partition in order, without overlap."""

    parts: tuple[Part, ...]

    def partitions(self) -> set[Partition]:
        return {part.partition for part in self.parts}

    def ahead(self, positions: Positions) -> dict[Partition, Part]:
        """By partition the part that is moved next, or is being moved; partitions that are done are left out."""
        found: dict[Partition, Part] = {}
        for part in self.parts:
            if part.partition in positions and not _is_behind(part, positions[part.partition]):
                found.setdefault(part.partition, part)
        return found

    def jumps(self, positions: Positions) -> dict[Partition, Position]:
        """Where positions must move because one part is done and the next does not follow on it, or begins at this
        place of another file."""
        return {
            partition: Position(part.incarnation, part.begin, part.evidence)
            for partition, part in self.ahead(positions).items()
            if _must_move(part, positions[partition])
        }

    def done(self, positions: Positions) -> int:
        """How much of the parts of these partitions lies behind their positions."""
        return sum(_covered(part, positions[part.partition]) for part in self._of(positions))

    def length(self, partitions: Iterable[Partition]) -> int:
        return sum(part.end - part.begin for part in self._of(set(partitions)))

    def is_done(self, positions: Positions) -> bool:
        return not self.ahead(positions)

    def _of(self, partitions: Iterable[Partition]) -> list[Part]:
        return [part for part in self.parts if part.partition in partitions]


def within(part: Part, seen: Bounds) -> Bounds:
    """What can be read of `part` now, where a live run would read `seen`. What the source has lost of it stays a gap,
    also at its end: all of it was there when it was chosen. Nothing behind its end is touched. What took its place says
    nothing of the part that may be numbered so."""
    seen = replace(seen, later=False)  # whatever came meanwhile: this was chosen before
    if seen.incarnation != part.incarnation:
        return replace(seen, begin=0, end=0, evidence={})
    if _differ(part.evidence, seen.evidence):
        lost = Gap(part.incarnation, seen.begin, max(part.end, seen.begin), "replaced")
        return Bounds(part.incarnation + 1, 0, 0, 0, gaps=(*seen.gaps, lost), grows=False)
    if seen.begin > part.end:
        return replace(seen, begin=part.end, end=part.end, gaps=tuple(_cut(gap, part) for gap in seen.gaps))
    if seen.begin == seen.end < part.end and not (seen.failure or seen.pushes or seen.partial):
        gap = Gap(part.incarnation, seen.end, part.end, "rewound")
        return replace(seen, begin=part.end, end=part.end, gaps=(*seen.gaps, gap))
    return replace(seen, end=max(min(seen.end, part.end), seen.begin))


def merged(parts: Iterable[Part]) -> tuple[Part, ...]:
    """The same stretches in order, joined where they meet or overlap, so that nothing is moved twice."""
    result: list[Part] = []
    for part in sorted(parts, key=lambda one: (one.partition, one.incarnation, one.begin, one.end)):
        last = result[-1] if result else None
        joins = last and (last.partition, last.incarnation) == (part.partition, part.incarnation)
        if last and joins and part.begin <= last.end:
            result[-1] = replace(last, end=max(last.end, part.end))
        elif part.end > part.begin:
            result.append(part)
    return tuple(result)


def _place(position: Position) -> tuple[int, int]:
    return position.incarnation, position.offset


def _must_move(part: Part, position: Position | None) -> bool:
    if position is None or _place(position) < (part.incarnation, part.begin):
        return True
    known = position.evidence and not _differ(part.evidence, position.evidence)
    return bool(part.evidence) and not known and _place(position) == (part.incarnation, part.begin)


def _differ(one: Json, other: Json) -> bool:
    """Whether these are of two files, say, as far as they name theirs."""
    names = {str(evidence.get(ORIGIN, "")) for evidence in (one, other)}
    return len(names) == 2 and "" not in names


def _is_behind(part: Part, position: Position | None) -> bool:
    return position is not None and _place(position) >= (part.incarnation, part.end)


def _covered(part: Part, position: Position | None) -> int:
    if position is None or _place(position) <= (part.incarnation, part.begin):
        return 0
    if _is_behind(part, position):
        return part.end - part.begin
    return position.offset - part.begin


def _cut(gap: Gap, part: Part) -> Gap:
    same = gap.incarnation == part.incarnation
    return replace(gap, end=part.end) if same and gap.end is not None and gap.end > part.end else gap
