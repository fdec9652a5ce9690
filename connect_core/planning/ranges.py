"""From the bounds of partitions to the ranges that are worked through next: one for each partition with something to
read, from where reading goes on to where this run ends. A partition with nothing to read but gaps to tell of gets an
empty range, which carries them into the ledger. Pure.

How much of a range is done is the worker's to say (records and bytes are only known by reading): its receipt closes
the range where it got to, and the next plan goes on behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from connect_core.sdk.records import Partition
from connect_core.sdk.values import OPEN_END, Bounds, Pins, Range


class RangeLimits(NamedTuple):
    """The most that one range may hold; both above zero."""

    max_records: int
    max_bytes: int


@dataclass(frozen=True)
class Goal:
    """Where a run ends in a partition: the end that was seen when the run first looked at this incarnation."""

    incarnation: int
    end: int

    def end_within(self, bounds: Bounds) -> int:
        """The end to plan for: never behind what is there now, never before where reading goes on."""
        end = min(self.end, bounds.end) if bounds.incarnation == self.incarnation else bounds.end
        return max(end, bounds.begin)


def plan_ranges(
    stream: str,
    bounds: Mapping[Partition, Bounds],
    slots: Mapping[Partition, int],
    goals: Mapping[Partition, Goal],
    limits: RangeLimits,
    pins: Callable[[Partition], Pins],
) -> list[Range]:
    """At most one range for each partition, ordered by slot whatever the order of the input. Partitions without a
    goal end where their bounds do."""
    planned = []
    for partition in sorted(bounds, key=lambda p: (slots[p], p)):
        seen = bounds[partition]
        end = goals.get(partition, Goal(seen.incarnation, seen.end)).end_within(seen)
        if end > seen.begin or seen.gaps:
            planned.append(_range(stream, partition, slots[partition], seen, end, limits, pins(partition)))
    return planned


def follow_ranges(
    stream: str,
    bounds: Mapping[Partition, Bounds],
    slots: Mapping[Partition, int],
    ahead: Container[Partition],
    limits: RangeLimits,
    pins: Callable[[Partition], Pins],
) -> list[Range]:
    """Ranges for who stays in a window: a live one for each partition that grows, whether there is something now or
    not. One with gaps to tell of, or of which records stand `ahead` in a target, is planned to the end seen now; one
    that pushes has none, so what stands ahead of it is settled when it has been looked for."""
    planned = []
    for partition in sorted(bounds, key=lambda p: (slots[p], p)):
        seen = bounds[partition]
        follows = seen.grows and not seen.gaps and (partition not in ahead or seen.pushes)
        end = OPEN_END if follows else max(seen.end, seen.begin)
        if end > seen.begin or seen.gaps:
            planned.append(_range(stream, partition, slots[partition], seen, end, limits, pins(partition)))
    return planned


def something(bounds: Mapping[Partition, Bounds]) -> bool:
    """Whether there is anything to move or to tell of, or may be."""
    return any(seen.end > seen.begin or seen.gaps or seen.pushes for seen in bounds.values())


def _range(
    stream: str, partition: Partition, slot: int, seen: Bounds, end: int, limits: RangeLimits, pins: Pins
) -> Range:
    return Range(
        stream=stream,
        partition=partition,
        slot=slot,
        incarnation=seen.incarnation,
        begin=seen.begin,
        end=end,
        max_records=limits.max_records,
        max_bytes=limits.max_bytes,
        evidence=seen.evidence,
        pins=pins,
        gaps=seen.gaps,
    )
