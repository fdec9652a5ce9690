"""From the bounds of partitions to the ranges that are worked through next: one for each partition with something to
read, from where reading goes on to where this run ends. A partition with nothing to read but gaps to tell of gets an
empty range, which carries them into the ledger. Pure.

How much of a range is done is the worker's to say (records and bytes are only known by reading): its receipt closes
the range where it got to, and the next plan goes on behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from connect_core.contracts import Bounds, Pins, Range
from connect_core.records import Partition


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
    pins: Pins,
) -> list[Range]:
    """At most one range for each partition, ordered by slot whatever the order of the input. Partitions without a
    goal end where their bounds do."""
    planned = []
    for partition in sorted(bounds, key=lambda p: (slots[p], p)):
        seen = bounds[partition]
        end = goals.get(partition, Goal(seen.incarnation, seen.end)).end_within(seen)
        if end > seen.begin or seen.gaps:
            planned.append(
                Range(
                    stream=stream,
                    partition=partition,
                    slot=slots[partition],
                    incarnation=seen.incarnation,
                    begin=seen.begin,
                    end=end,
                    max_records=limits.max_records,
                    max_bytes=limits.max_bytes,
                    evidence=seen.evidence,
                    pins=pins,
                    gaps=seen.gaps,
                )
            )
    return planned
