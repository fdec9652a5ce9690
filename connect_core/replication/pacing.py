"""`limits.records_per_second`: what a connector may move, divided among its tasks and lanes.

Each task with partitions gets an equal part. A task uses as few lanes as can carry its part, so that an idle lane keeps
little of it from a busy one; ranges take turns in a lane. The driver keeps the account (`Budget`): time that went by
unused, as between two quanta, is made good, up to half a second of it; what was moved too early is waited for. In the
worker a `Pacer` lets records pass in portions of a twentieth of a second.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from connect_core import clock
from connect_core.contracts import Limit, Pace, Receipt, SourceBatch
from connect_core.replication.tally import cut

PORTION_S = 0.05
CATCH_UP_S = 0.1
"""How much of a standstill within a lane is made good."""
MOST_SAVED_S = 0.5
RECORDS_OF_A_LANE = 50_000
"""What one lane moves in a second without effort."""


class Budget:
    """What one task may move; driver's side. A rate of 0 has no effect."""

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


class Pacer:
    """Lets the records of one lane pass; worker's side."""

    def __init__(self, pace: Pace, limit: Limit) -> None:
        self._rate, self._limit = pace.records_per_second, limit
        self._next = clock.monotonic() - pace.saved_s
        self._catch_up_s = max(CATCH_UP_S, pace.saved_s)
        self.over = False
        """The quantum ends before the next record may pass: what was not given then must not be skipped."""

    def pieces(self, batch: SourceBatch) -> Iterator[SourceBatch]:
        """The batch, in portions each given when its time has come. Not all of it when that makes it `over`."""
        rest: SourceBatch | None = batch
        while rest is not None and self._rate:
            piece, rest = cut(rest, max(int(self._rate * PORTION_S), 1))
            wait_s = self._next - clock.monotonic()
            if wait_s >= self._limit.quantum_left_s():
                self.over = True
                return
            if wait_s > 0:
                clock.sleep(wait_s)
            self._next = max(self._next, clock.monotonic() - self._catch_up_s) + len(piece.records) / self._rate
            yield piece
        if rest is not None:
            yield rest
