"""Sends batches to one queue, in order: at most one batch is outstanding, so that arrival order is ours.

The caller encodes the next batch while one is outstanding. A batch whose outcome is unknown is never sent again: it
raises `SendUnknown`, and the sender is over.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from connect_core.rocketmq.queues import Queue
from connect_core.rocketmq.wire.batch_entries import Batch


class StoreStatus(enum.Enum):
    """How durable a stored batch is. All of them mean stored."""

    OK = 0
    FLUSH_DISK_TIMEOUT = 10
    SLAVE_NOT_AVAILABLE = 11
    FLUSH_SLAVE_TIMEOUT = 12


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """`count` messages stored at `first_offset` and the offsets right behind it."""

    queue: Queue
    first_offset: int
    count: int
    status: StoreStatus

    @property
    def next_offset(self) -> int:
        return self.first_offset + self.count


class BatchSender:
    """One a target queue; not to be shared between threads."""

    queue: Queue

    def submit(
        self, batch: Batch, *, deadline: float, sys_flag: int = 0, born_timestamp_ms: int | None = None
    ) -> Acknowledged | None:
        """Waits for the batch that is outstanding (its acknowledgement is the result), then hands this one over."""
        raise NotImplementedError

    def finish(self, *, deadline: float) -> Acknowledged | None:
        """Waits for the batch that is outstanding; None when there is none. Nothing is outstanding afterwards."""
        raise NotImplementedError
