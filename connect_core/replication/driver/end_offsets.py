"""Where one run begins and ends in each partition, for its plans and its progress bar. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from connect_core.planning import Goal
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Bounds, Position, Range


class EndOffsets:
    """`of` says where the run ends in each partition: what was there when it first looked."""

    def __init__(self) -> None:
        self.of: dict[Partition, Goal] = {}
        self._begins: dict[Partition, int] = {}
        self._seen: dict[Partition, Bounds] = {}
        self._partial = set[Partition]()
        self._taken_over: dict[Partition, tuple[int, Goal]] = {}

    def saw(self, bounds: Mapping[Partition, Bounds]) -> None:
        """What comes later is the next run's, unless the partition is a new one under its old name: that one too where
        the source says that it came later, and unless it was there and not seen yet."""
        self._seen.update(bounds)
        for partition, seen in bounds.items():
            goal = self.of.get(partition)
            if goal is None or goal.incarnation != seen.incarnation:
                self.of[partition] = Goal(seen.incarnation, seen.begin if seen.later else seen.end)
                self._begins[partition] = seen.begin
            elif partition in self._partial:
                self.of[partition] = Goal(seen.incarnation, max(goal.end, seen.end))
            (self._partial.add if seen.partial and not seen.later else self._partial.discard)(partition)

    def forget(self, partitions: Iterable[Partition]) -> None:
        """The look at these was overtaken: what is there now may be another file, which ends elsewhere."""
        for partition in partitions:
            self.of.pop(partition, None)
            self._seen.pop(partition, None)

    def aims_at(self, goals: Mapping[Partition, Goal]) -> None:
        """What a backfill or a replay moves next, and nothing else."""
        self.of = dict(goals)

    def took_over(self, ranges: Iterable[Range]) -> None:
        """What an earlier attempt left open is this run's as well; where a live one ends is not known."""
        self._taken_over = {
            one.partition: (one.begin, Goal(one.incarnation, one.begin if one.live else one.end)) for one in ranges
        }

    def partitions(self) -> list[Partition]:
        return list(self._spans())

    def progress(self, positions: Mapping[Partition, Position | None]) -> tuple[int, int]:
        """Done and planned, in units of positions."""
        done = planned = 0
        for partition, (begin, goal) in self._spans().items():
            position = positions.get(partition)
            planned += goal.end - begin
            if position and position.incarnation == goal.incarnation:
                done += min(position.offset, goal.end) - begin
        return done, planned

    def lag(self, settled: Mapping[Partition, tuple[int, int]]) -> int | None:
        """What the last look at each partition saw, without what was settled since: `settled` has by partition its
        incarnation and how far that came. None where nobody has looked."""
        return sum(_left(seen, settled.get(one)) for one, seen in self._seen.items()) if self._seen else None

    def _spans(self) -> dict[Partition, tuple[int, Goal]]:
        spans = dict(self._taken_over)
        for partition, goal in self.of.items():
            begin, taken = spans.get(partition, (0, None))
            same = taken is not None and taken.incarnation == goal.incarnation
            spans[partition] = (begin if same else self._begins[partition], goal)
        return spans


def _left(seen: Bounds, settled: tuple[int, int] | None) -> int:
    came_to = settled[1] if settled and settled[0] == seen.incarnation else seen.begin
    return max(seen.end - max(came_to, seen.begin), 0)
