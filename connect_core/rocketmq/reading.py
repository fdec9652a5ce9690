"""Reads a range of one queue in order, keeps the next pull under way while the caller works on the last answer, and
accounts for every offset: what was not there is reported as a value, never passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from connect_core.rocketmq.queues import Queue
from connect_core.rocketmq.wire.stored_message import StoredMessage


@dataclass(frozen=True, slots=True)
class MissingRange:
    """Offsets `begin` (included) to `end` (excluded) hold no message that can be read; `cause` is for people."""

    begin: int
    end: int
    cause: str


@dataclass(frozen=True, slots=True)
class Slice:
    """The next part of a queue: every offset of [`begin`, `end`) is in `messages` or in `missing`, both in order.

    Empty (`begin == end`) only from a following reader, when nothing came for a while.
    """

    begin: int
    end: int
    messages: list[StoredMessage]
    missing: tuple[MissingRange, ...]


class QueueReader:
    """Iterates over slices. Ends at `end`, at the end of the queue, or at the deadline, whichever comes first;
    `position` then says where (the next offset to read). A following reader does not end at the end of the queue.
    """

    queue: Queue
    position: int

    def __iter__(self) -> Iterator[Slice]:
        raise NotImplementedError
