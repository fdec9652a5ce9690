"""A cluster in memory: what the systems need of a client, over lists of stored messages that may have lost their
oldest ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from connect_core.errors import Unreachable
from connect_core.rocketmq import (
    Client,
    PullResult,
    PullStatus,
    Queue,
    QueueBounds,
    QueueSlice,
    StoredMessage,
    StoredSlice,
)
from connect_core.rocketmq.wire.stored_message import encode_message


@dataclass
class MemoryQueue:
    """`begin` is the oldest offset left; the newest is that of the last message."""

    messages: list[StoredMessage]
    begin: int = 0

    @property
    def end(self) -> int:
        return self.messages[-1].queue_offset + 1 if self.messages else self.begin

    def bounds(self) -> QueueBounds:
        return QueueBounds(self.begin, self.end, 0)


class _Reader:
    def __init__(self, messages: Sequence[StoredMessage], begin: int, slices: int | None) -> None:
        self.position = begin
        self._messages = messages
        self._slices = slices

    def __iter__(self) -> Iterator[QueueSlice]:
        for message in self._messages[: self._slices]:
            begin, self.position = self.position, message.queue_offset + 1
            yield QueueSlice(begin, self.position, [message])

    def stored(self) -> Iterator[StoredSlice]:
        for part in self:
            yield StoredSlice(part.begin, part.end, memoryview(b"".join(map(encode_message, part.messages))))


@dataclass
class MemoryCluster:
    """Give `client` where a `Client` is wanted. A read ends after `slices_a_read` messages, as at its deadline."""

    queues: dict[Queue, MemoryQueue]
    slices_a_read: int | None = None
    barriers: list[str] = field(default_factory=list)
    reads: list[tuple[int, int]] = field(default_factory=list)
    deleted: list[StoredMessage] = field(default_factory=list)
    """What was in topics that are no more: the log keeps it until it expires."""

    @property
    def client(self) -> Client:
        return cast(Client, self)

    @property
    def offsets(self) -> Any:
        return self

    def begin(self, queue: Queue) -> int:
        if queue not in self.queues:
            raise Unreachable("the broker is not registered", where=str(queue))
        return self.queues[queue].begin

    def end(self, queue: Queue) -> int:
        return self.queues[queue].end

    def barrier(self, broker: str, *, deadline: float) -> None:
        self.barriers.append(broker)

    def with_id(self, broker: str, message_id: str) -> StoredMessage | None:
        there = [one for queue in self.queues.values() for one in queue.messages if one.queue_offset >= queue.begin]
        return next((one for one in (*there, *self.deleted) if one.offset_message_id == message_id), None)

    def pull(self, queue: Queue, offset: int, *, max_messages: int = 32) -> PullResult:
        there = self.queues[queue]
        end = there.end  # first, as brokers do it: what comes meanwhile is in no part of the answer
        found = [message for message in there.messages if message.queue_offset >= max(offset, there.begin)]
        status = PullStatus.FOUND if found and offset >= there.begin else PullStatus.REMOVED
        messages = found[:max_messages] if status is PullStatus.FOUND else []
        return PullResult(queue, offset, status, offset + len(messages), there.begin, end, messages)

    def read(self, queue: Queue, begin: int, end: int, *, deadline: float) -> _Reader:
        self.reads.append((begin, end))
        there = self.queues[queue]
        wanted = [m for m in there.messages if max(begin, there.begin) <= m.queue_offset < end]
        return _Reader(wanted, begin, self.slices_a_read)
