"""From open ranges to lanes: which ranges one worker process works through, in which order. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from connect_core.sdk.values import OpenRange, Pins


def split_lanes(ranges: Sequence[OpenRange], lanes: int) -> list[tuple[OpenRange, ...]]:
    """At most `lanes` (1 or more) lanes of about equal length, longest ranges placed first; none is empty.

    Only ranges that were planned as the first was go together, whatever their targets: those of an older revision of
    the document are finished before anything newer begins. The others wait for the next execution.
    """
    if not ranges:
        return []
    way = _way(ranges[0])
    together = [item for item in ranges if _way(item) == way]
    loads: list[tuple[int, list[OpenRange]]] = [(0, []) for _ in range(min(lanes, len(together)))]
    for item in sorted(together, key=lambda i: (i.range.begin - i.range.end, i.range.slot, i.id)):
        lightest = min(range(len(loads)), key=lambda index: (loads[index][0], index))
        load, members = loads[lightest]
        members.append(item)
        loads[lightest] = (load + item.range.end - item.range.begin, members)
    return [tuple(sorted(members, key=lambda i: i.id)) for _, members in loads]


def _way(item: OpenRange) -> Pins:
    return replace(item.range.pins, target={})
