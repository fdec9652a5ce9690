"""Lets the records of a lane pass at the pace that it is given (`limits.records_per_second`), in its worker.

In pieces of a twentieth of a second; ranges take turns in a lane. The driver divides the rate among tasks and lanes.
"""

from __future__ import annotations

from collections.abc import Iterator

from connect_core import clock
from connect_core.replication.worker.counts import cut
from connect_core.sdk.values import Limit, SourceBatch
from connect_core.work import Pace

PIECE_S = 0.05
CATCH_UP_S = 0.1
"""How much of a standstill within a lane is made good."""


class Pacer:
    """Of one lane."""

    def __init__(self, pace: Pace, limit: Limit) -> None:
        self._rate, self._limit = pace.records_per_second, limit
        self._next = clock.monotonic() - pace.saved_s
        self._catch_up_s = max(CATCH_UP_S, pace.saved_s)
        self.over = False
        """The quantum ends before the next record may pass: what was not given then must not be skipped."""

    def pieces(self, batch: SourceBatch) -> Iterator[SourceBatch]:
        """The batch, in pieces each given when its time has come. Not all of it when that makes it `over`."""
        rest: SourceBatch | None = batch
        while rest is not None and self._rate:
            piece, rest = cut(rest, max(int(self._rate * PIECE_S), 1))
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
