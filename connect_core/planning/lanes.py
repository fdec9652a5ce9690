"""From open ranges to lanes: which ranges one worker process works through, in which order. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from connect_core.sdk.records import Partition
from connect_core.sdk.values import OpenRange, Pins


def split_lanes(
    ranges: Sequence[OpenRange], lanes: int, followers: Mapping[Partition, int] | None = None
) -> list[tuple[OpenRange, ...]]:
    """At most `lanes` (1 or more) lanes; none is empty. Ranges that end are shared out by their length, longest first,
    and live ones by their number.

    `followers` has the number of the lane that followed a partition before (see `followed`): it follows it on, since
    its worker may have a connection that is lost with what comes over it when another one connects.

    Only ranges that were planned as the first was go together, whatever their targets: those of an older revision of
    the document are finished before anything newer begins. The others wait for the next execution.
    """
    if not ranges:
        return []
    way = _way(ranges[0])
    together = [item for item in ranges if _way(item) == way]
    shares: list[list[OpenRange]] = [[] for _ in range(min(lanes, len(together)))]
    _deal((item for item in together if item.range.live), shares, followers or {})
    loads = [0 for _ in shares]
    ending = (item for item in together if not item.range.live)
    for item in sorted(ending, key=lambda i: (i.range.begin - i.range.end, i.range.slot, i.id)):
        lightest = min(range(len(shares)), key=lambda number: (loads[number], len(shares[number])))
        shares[lightest].append(item)
        loads[lightest] += item.range.end - item.range.begin
    return [tuple(sorted(share, key=lambda i: i.id)) for share in shares if share]


def followed(lanes: Sequence[Sequence[OpenRange]]) -> dict[Partition, int]:
    """The number of the lane that follows each of these partitions."""
    return {item.range.partition: number for number, lane in enumerate(lanes) for item in lane if item.range.live}


def _deal(live: Iterable[OpenRange], shares: Sequence[list[OpenRange]], followers: Mapping[Partition, int]) -> None:
    """Whoever has no follower yet goes where the fewest are."""
    for item in sorted(live, key=lambda i: (i.range.partition not in followers, i.range.slot, i.id)):
        before = followers.get(item.range.partition, len(shares))
        fewest = min(range(len(shares)), key=lambda number: len(shares[number]))
        shares[before if before < len(shares) else fewest].append(item)


def _way(item: OpenRange) -> Pins:
    return replace(item.range.pins, target={})
