"""What a run has seen in its targets behind the ranges that it has settled, for the ranges that follow there.

An attempt that was stopped, or a ledger that was restored, may have left much more of a partition in the target than
one range holds. It is looked for once: each later range takes its part of what was seen, and only what has come to the
target since is looked through. A part of a run's driver; nothing of it is durable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from connect_core.sdk.records import Partition
from connect_core.sdk.values import OpenRange
from connect_core.work import Receipt

if TYPE_CHECKING:
    from connect_core.sdk.scan import ScanResult


class ScanCache:
    """By partition, what the range that was settled last has seen."""

    def __init__(self) -> None:
        self._settled: dict[Partition, tuple[OpenRange, int]] = {}

    def settled(self, item: OpenRange, receipt: Receipt) -> None:
        """Keeps what was seen only where something stands further on."""
        if item.found is not None and any(move.floor.ahead for move in receipt.floors):
            self._settled[item.range.partition] = (item, receipt.end)
        else:
            self._settled.pop(item.range.partition, None)

    def known(self, item: OpenRange) -> ScanResult | None:
        """What was seen of this range; None when it has to be looked for from its floors."""
        former, end = self._settled.get(item.range.partition, (None, -1))
        if former is None or former.found is None or not _follows(item, former, end):
            return None
        return former.found.onward(item.range.begin, item.range.end)

    def with_known(self, items: Sequence[OpenRange]) -> list[OpenRange]:
        return [item if item.found else replace(item, found=self.known(item)) for item in items]


def _follows(item: OpenRange, former: OpenRange, end: int) -> bool:
    """Whether a range begins where the other was closed, and goes to the same targets: by the same document and
    connections, too, for targets of one name may stand in two clusters."""
    mine, theirs = item.range, former.range
    alike = replace(mine.pins, pipeline="", code="") == replace(theirs.pins, pipeline="", code="")
    return alike and (mine.begin, mine.incarnation) == (end, theirs.incarnation)
