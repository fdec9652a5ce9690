"""Names and figures of queues: what the calls of the client take and return. Pure values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True, slots=True)
class Queue:
    """One independently ordered log: queue `queue_id` of `topic` on the broker group named `broker`."""

    topic: str
    broker: str
    queue_id: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.broker}/{self.queue_id}"


@dataclass(frozen=True, slots=True)
class QueueBounds:
    """Offsets that can be read: from `begin` (included) to `end` (excluded, the offset the next message will get).

    `last_update_ms` is the store time of the newest message, 0 when there is none.
    """

    begin: int
    end: int
    last_update_ms: int


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """What lag tools show of one queue: `lag` is in records; `last_timestamp_ms` is of the newest consumed message."""

    end: int
    committed: int
    last_timestamp_ms: int

    @property
    def lag(self) -> int:
        return self.end - self.committed
