"""`limits.records_per_second`: what a connector may move, divided among its tasks and lanes.

Each task with partitions gets an equal part. A task uses as few lanes as can carry its part, so that an idle lane keeps
little of it from a busy one. The account is kept here: time that went by unused, as between two quanta, is made good,
up to half a second of it; what was moved too early is waited for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from connect_core import clock
from connect_core.work import Pace, Receipt

MOST_SAVED_S = 0.5
RECORDS_OF_A_LANE = 50_000
"""What one lane moves in a second without effort."""


class Budget:
    """What one task may move. A rate of 0 has no effect."""

    def __init__(self, records_per_second: float, tasks: int) -> None:
        self._rate = records_per_second / max(tasks, 1)
        self._used_until = clock.monotonic()

    def lanes(self, most: int) -> int:
        """How many lanes share the rate."""
        return min(most, math.ceil(self._rate / RECORDS_OF_A_LANE)) if self._rate else most

    def ahead_s(self) -> float:
        """How long to wait until what was moved is within the rate."""
        return max(self._used_until - clock.monotonic(), 0.0) if self._rate else 0.0

    def pace(self, lanes: int) -> Pace:
        """For each of so many lanes that begin now."""
        if not self._rate:
            return Pace()
        now = clock.monotonic()
        self._used_until = max(self._used_until, now - MOST_SAVED_S)
        return Pace(self._rate / lanes, max(now - self._used_until, 0.0))

    def spend(self, receipts: Sequence[Receipt]) -> None:
        if self._rate:
            self._used_until += sum(receipt.read or 0 for receipt in receipts) / self._rate
