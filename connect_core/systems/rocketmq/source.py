"""The RocketMQ source: every queue of its topics, by offset. It needs no consumer group of real consumers.

A partition is a queue, `topic/broker/queueId`; a position is a queue offset with evidence of the message before it.
Its own consumer group is told what is settled, so that RocketMQ's lag tools show it; reading never asks the group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from operator import itemgetter

from connect_core import clock
from connect_core.contracts import Bounds, Json, Limit, Position, Range, SourceBatch
from connect_core.errors import OffsetGone, Unreachable
from connect_core.records import Partition
from connect_core.rocketmq import Client, MissingRange, PullStatus, Queue, QueueBounds, Slice, StoredMessage
from connect_core.systems.rocketmq.connecting import Connecting, queue_of
from connect_core.systems.rocketmq.continuity import evidence_of, first_bounds, next_bounds
from connect_core.systems.rocketmq.decoding import record_batch
from connect_core.systems.rocketmq.options import RocketMQSourceOptions

MAX_ROWS = 4_000
MAX_BATCH_BYTES = 2 * 1024 * 1024
MAX_WAIT_S = 0.1
"""Answers hold few messages (32 by default), so several make one batch, but not for longer than this."""

_BODY_LENGTH = itemgetter(StoredMessage._fields.index("body_length"))


class RocketMQSource:
    """A `contracts.Source`."""

    def __init__(self, options: RocketMQSourceOptions, resources: ExitStack | None = None) -> None:
        self._options = options
        self._connecting = Connecting(options.name_servers, resources)
        self._recent: dict[Partition, list[StoredMessage]] = {}
        self._told: dict[Queue, int] = {}

    def partitions(self, known: Sequence[Partition]) -> list[Partition]:
        with self._connecting.client() as client:
            queues = [queue for topic in self._options.topics for queue in client.topics.read_queues(topic)]
        there = [Partition(str(queue)) for queue in queues]
        mine = [partition for partition in known if queue_of(partition.key).topic in self._options.topics]
        return [*mine, *(partition for partition in there if partition not in mine)]

    def bounds(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        queues = {partition: queue_of(partition.key) for partition in known}
        with self._connecting.client() as client:
            seen: dict[Queue, QueueBounds] = {}
            for topic in sorted({queue.topic for queue in queues.values()}):
                seen |= client.offsets.bounds(topic)
            return {
                partition: first_bounds(_of(queue, seen), self._first_offset(client, queue, seen[queue]))
                if (position := known[partition]) is None
                else next_bounds(client, queue, position, _of(queue, seen))
                for partition, queue in queues.items()
            }

    def _first_offset(self, client: Client, queue: Queue, seen: QueueBounds) -> int:
        """Where a queue that was never read begins. The newest message is that of the first look, not of each: our
        group keeps it until something has been read."""
        group = self._options.consumer_group()
        if self._options.start == "earliest":
            return seen.begin
        kept = client.groups.committed(group, queue) if group else None
        if kept is None and group:
            client.groups.create(group)
            client.groups.commit(group, queue, seen.end)
        return seen.end if kept is None else kept

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        gathering = _Gathering(wanted)
        self._recent.pop(wanted.partition, None)
        deadline = clock.monotonic() + limit.quantum_left_s()
        with self._connecting.client() as client:
            for part in client.read(queue_of(wanted.partition.key), wanted.begin, wanted.end, deadline=deadline):
                hole = gathering.add(part)
                if hole or gathering.full():
                    yield self._batch(wanted, gathering)
                if gathering.over():
                    return
                if hole:
                    raise _gone(wanted, hole)
        if gathering.pending():
            yield self._batch(wanted, gathering)

    def _batch(self, wanted: Range, gathering: _Gathering) -> SourceBatch:
        """The batch gathered so far. Its messages, and the one before them, are kept as evidence for the receipt."""
        messages, batch = gathering.take()
        self._recent[wanted.partition] = self._recent.get(wanted.partition, [])[-1:] + messages
        return batch

    def evidence(self, wanted: Range, end: int) -> Json:
        """The last message before `end`. Asks the broker only when it was not among the messages read last."""
        if end == wanted.begin:
            return wanted.evidence
        recent = self._recent.get(wanted.partition, [])
        before = [message for message in recent if wanted.begin <= message.queue_offset < end]
        if not before:
            with self._connecting.client() as client:
                found = client.pull(queue_of(wanted.partition.key), end - 1, max_messages=1).messages
                before = [message for message in found if message.queue_offset < end]
        return evidence_of(before[-1]) if before else wanted.evidence

    def confirm(self, positions: Mapping[Partition, Position]) -> None:
        group = self._options.consumer_group()
        if not group or not positions:
            return
        with self._connecting.client() as client:
            if not self._told:
                client.groups.create(group)
            for partition, position in positions.items():
                queue = queue_of(partition.key)
                told = self._told.get(queue)
                if told is None:
                    told = client.groups.committed(group, queue) or 0
                if position.offset > told:
                    client.groups.commit(group, queue, position.offset)
                self._told[queue] = max(told, position.offset)


class _Gathering:
    """Slices of a queue on their way to becoming one batch, and what the range may still hold.

    The first message is always taken, so that every range makes progress.
    """

    def __init__(self, wanted: Range) -> None:
        self._begin = self._next = wanted.begin
        self._records_left, self._bytes_left = wanted.max_records, wanted.max_bytes
        self._messages: list[StoredMessage] = []
        self._bytes = 0
        self._since = 0.0
        self._taken = False

    def add(self, part: Slice) -> MissingRange | None:
        """Takes the messages up to the first that should be there and is not, and tells of that."""
        hole = next((gap for gap in part.missing if gap.cause != PullStatus.FILTERED.value), None)
        messages = part.messages if hole is None else [m for m in part.messages if m.queue_offset < hole.begin]
        if not self._messages:
            self._since = clock.monotonic()
        self._messages += messages
        self._bytes += _body_bytes(messages)
        self._next = part.end if hole is None else hole.begin
        return hole

    def pending(self) -> bool:
        """Whether anything was gathered that was not handed over."""
        return self._next > self._begin

    def full(self) -> bool:
        """Whether what was gathered should be handed over now."""
        many = len(self._messages) >= min(MAX_ROWS, self._records_left)
        large = self._bytes >= min(MAX_BATCH_BYTES, self._bytes_left)
        return many or large or clock.monotonic() - self._since >= MAX_WAIT_S

    def over(self) -> bool:
        """Whether the range may hold no more."""
        return self._records_left <= 0 or self._bytes_left <= 0

    def take(self) -> tuple[list[StoredMessage], SourceBatch]:
        """What fits, as a batch. What does not fit is let go: the range is over then."""
        messages = self._messages[: self._fitting()]
        left_over = len(messages) < len(self._messages)
        end = self._messages[len(messages)].queue_offset if left_over else self._next
        records, rejects = record_batch(messages)
        batch = SourceBatch(records, end, absent=end - self._begin - len(messages), rejects=rejects)
        self._records_left = 0 if left_over else self._records_left - len(messages)
        self._bytes_left -= _body_bytes(messages) if left_over else self._bytes
        self._taken = self._taken or bool(messages)
        self._begin, self._messages, self._bytes = end, [], 0
        return messages, batch

    def _fitting(self) -> int:
        """How many of the messages gathered the range may still hold."""
        most = min(len(self._messages), self._records_left)
        if self._bytes <= self._bytes_left:
            return most
        total = 0
        for index in range(most):
            total += len(self._messages[index].body)
            if total > self._bytes_left:
                return index if index or self._taken else 1
        return most


def _body_bytes(messages: Sequence[StoredMessage]) -> int:
    return sum(map(_BODY_LENGTH, messages))


def _of(queue: Queue, seen: Mapping[Queue, QueueBounds]) -> QueueBounds:
    if queue not in seen:
        raise Unreachable(
            "The queue is not in the topic's route: its broker is away, or the topic has fewer queues now",
            where=str(queue),
            next_step="Start the broker, or take the partition out of the connector",
        )
    return seen[queue]


def _gone(wanted: Range, hole: MissingRange) -> OffsetGone:
    return OffsetGone(
        f"Messages {hole.begin} to {hole.end} cannot be read: {hole.cause}",
        where=f"{wanted.partition.key}, offset {hole.begin}",
        next_step="Find out what happened to them; the next run goes on behind them when errors.on_gap is skip",
    )
