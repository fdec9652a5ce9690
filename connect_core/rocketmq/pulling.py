"""One pull: the request, and its answer as a value. What to do about an answer is the reader's affair (`reading`)."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from connect_core.rocketmq.queues import Queue
from connect_core.rocketmq.wire.stored_message import StoredMessage


class PullStatus(enum.Enum):
    """What a pull found at its offset. Every one but `FOUND` comes without messages."""

    FOUND = "found"
    CAUGHT_UP = "caught up"
    FILTERED = "everything scanned was filtered out"
    REMOVED = "the log of these messages is deleted"
    INDEX_GONE = "the index of these messages is deleted"
    TOO_SMALL = "the offset lies before the oldest message"
    TOO_LARGE = "the offset lies behind the newest message"
    RESET = "an operator has reset the group's offset"


@dataclass(frozen=True, slots=True)
class PullResult:
    """`next_offset` is where the broker says reading goes on; the queue spans [`begin`, `end`)."""

    queue: Queue
    offset: int
    status: PullStatus
    next_offset: int
    begin: int
    end: int
    messages: list[StoredMessage]
