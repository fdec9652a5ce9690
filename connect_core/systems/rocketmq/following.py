"""Follows several queues at once: a suspended pull for each, and whatever arrives is a batch at once.

Runs in the worker, for live ranges. Answers that are there already are put together; none is waited for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from connect_core import clock
from connect_core.errors import Failure, LeaseHeld
from connect_core.rocketmq import QueueReader, TopicMissing, wait_for_any
from connect_core.sdk.values import STOPPED_WITHIN_S, Limit, Range, SourceBatch
from connect_core.systems.rocketmq.columns import Columns
from connect_core.systems.rocketmq.gathering import Gathering
from connect_core.systems.rocketmq.reach import Reach

LEAST_RENEWAL_S = 0.01
"""In less time no broker deletes a topic, creates it again and stores messages in it."""


class FollowedQueue:
    """The reader of a queue, the live range that wants its messages, and how far they were gathered."""

    def __init__(self, reader: QueueReader, wanted: Range, gathering: Gathering, reach: Reach) -> None:
        self.reader, self.wanted, self.gathering = reader, wanted, gathering
        self._reach = reach
        self._came, self._quiet_s = -math.inf, 0.0
        self.failure: Failure | None = None
        self.over = False
        """Its failure was handed over."""

    def fail(self, error: Exception) -> None:
        """What concerns this queue alone; the others are followed on."""
        if isinstance(error, (TopicMissing, LeaseHeld, MemoryError)):
            raise error
        self.failure = Failure.unexpected(error, "reading", self.wanted.partition.key)

    def gather(self) -> bool:
        """Takes what has arrived; whether there is anything to hand over or to tell."""
        if self.failure is None:
            try:
                return self._gather()
            except Exception as error:
                self.fail(error)
        return not self.over

    def take(self) -> tuple[Columns, SourceBatch] | None:
        """What was gathered; None when that is nothing, or cannot be made a batch of."""
        try:
            return self.gathering.take() if self.gathering.pending() else None
        except Exception as error:
            self.fail(error)
        return None

    def _gather(self) -> bool:
        gathering = self.gathering
        while not (gathering.full() or gathering.hole or gathering.exhausted()):
            with self._reach.asking(self.reader.queue.broker):
                part = self.reader.arrived()
            if part is None:
                break
            now = clock.monotonic()
            self._came, self._quiet_s = now, max(self._quiet_s, now - self._came)
            gathering.add(part)
        return gathering.pending() or gathering.hole is not None

    def has_waited(self) -> bool:
        """Whether it was quiet for so long before something of what was gathered now came, that the topic may have been
        created anew meanwhile; always of what comes first. Asked once for each batch."""
        quiet_s, self._quiet_s = self._quiet_s, 0.0
        return quiet_s >= LEAST_RENEWAL_S


def following(queues: Sequence[FollowedQueue], limit: Limit, idle_timeout_s: float) -> Iterator[FollowedQueue]:
    """Those that have something, as it comes, until the quantum is over or nothing came for `idle_timeout_s`."""
    came = clock.monotonic()
    while (left_s := limit.quantum_left_s()) > 0:
        now = clock.monotonic()
        if now - came >= idle_timeout_s:
            return
        if all(queue.over for queue in queues):
            return
        full = [queue for queue in queues if queue.gather()]
        for queue in full:
            yield queue
            came = clock.monotonic()
            if limit.quantum_left_s() <= 0:  # what was gathered of the others is read again
                return
        if any(queue.gathering.exhausted() for queue in queues):
            return
        if not full:
            wait_for_any(
                [queue.reader for queue in queues if not queue.over],
                min(now + min(left_s, STOPPED_WITHIN_S), came + idle_timeout_s),
            )
