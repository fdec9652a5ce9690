"""The RocketMQ source: every queue of its topics, by offset. It needs no consumer group of real consumers.

A partition is a queue, `topic/broker/queueId`; a position is a queue offset with evidence of the message before it.
Its own consumer group is told what is settled, so that RocketMQ's lag tools show it; reading never asks the group.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime

from connect_core import clock
from connect_core.contracts import Bounds, Json, Limit, Position, Range, SourceBatch
from connect_core.errors import OffsetGone, Unreachable
from connect_core.records import Partition
from connect_core.rocketmq import Client, MissingRange, Queue, QueueBounds, QueueReader, wait_for_any
from connect_core.systems.rocketmq.columns import Columns
from connect_core.systems.rocketmq.connecting import Connecting, queue_of, telling_who_is_away
from connect_core.systems.rocketmq.continuity import (
    closed_bounds,
    evidence_of,
    evidence_of_last,
    first_bounds,
    is_closed,
    next_bounds,
)
from connect_core.systems.rocketmq.finding import visible_ends
from connect_core.systems.rocketmq.following import FollowedQueue, following
from connect_core.systems.rocketmq.gathering import Gathering
from connect_core.systems.rocketmq.options import RocketMQSourceOptions
from connect_core.systems.rocketmq.times import first_stored_at


class RocketMQSource:
    """A `contracts.Source`."""

    def __init__(self, options: RocketMQSourceOptions, resources: ExitStack | None = None) -> None:
        self._options = options
        self._connecting = Connecting(options.name_servers, resources)
        self._recent: dict[Partition, list[Columns]] = {}
        self._told: dict[Queue, int] = {}
        self._waiting: dict[tuple[Queue, int], QueueReader] = {}

    def partitions(self, known: Sequence[Partition]) -> list[Partition]:
        with self._connecting.client() as client:
            mine = [partition for partition in known if queue_of(partition.key).topic in self._options.topics]
            with telling_who_is_away(client, [queue_of(partition.key).broker for partition in mine]):
                queues = [queue for topic in self._options.topics for queue in client.topics.read_queues(topic)]
        there = [Partition(str(queue)) for queue in queues]
        return [*mine, *(partition for partition in there if partition not in mine)]

    def bounds(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        queues = {partition: queue_of(partition.key) for partition in known}
        with self._connecting.client() as client:
            seen: dict[Queue, QueueBounds] = {}
            with telling_who_is_away(client, [queue.broker for queue in queues.values()]):
                for topic in sorted({queue.topic for queue in queues.values()}):
                    seen |= client.offsets.bounds(topic)
            return {
                partition: self._bounds_of(client, queue, known[partition], seen) for partition, queue in queues.items()
            }

    def _bounds_of(
        self, client: Client, queue: Queue, position: Position | None, seen: Mapping[Queue, QueueBounds]
    ) -> Bounds:
        if queue not in seen:
            _check_closed(client, queue, {one.broker for one in seen})
            left = QueueBounds(client.offsets.begin(queue), client.offsets.end(queue), 0)
            return closed_bounds(position or Position(0, self._first_offset(client, queue, left), {}), left.end)
        if position is None:
            return first_bounds(client, queue, seen[queue], self._first_offset(client, queue, seen[queue]))
        return next_bounds(client, queue, position, seen[queue])

    def at_time(self, partitions: Sequence[Partition], moment: datetime) -> dict[Partition, int]:
        """By the broker's clock. Behind a barrier: a message that was acknowledged before is there by now."""
        queues = {partition: queue_of(partition.key) for partition in partitions}
        moment_ms = math.ceil(moment.timestamp() * 1000)
        with self._connecting.client() as client:
            ends = visible_ends(client, queues.values())
            return {
                partition: first_stored_at(client, queue, client.offsets.begin(queue), ends[queue], moment_ms)
                for partition, queue in queues.items()
            }

    def record_at(self, partition: Partition, seen: Bounds, offset: int) -> int:
        return offset

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
        gathering = Gathering(wanted)
        self._recent.pop(wanted.partition, None)
        deadline = clock.monotonic() + limit.quantum_left_s()
        with self._connecting.client() as client:
            reader = client.read(queue_of(wanted.partition.key), wanted.begin, wanted.end, deadline=deadline)
            for part in reader.stored():
                gathering.add(part)
                if gathering.full():
                    yield self._batch(wanted, gathering)
                if gathering.hole or gathering.exhausted():
                    break
        if gathering.pending():
            yield self._batch(wanted, gathering)
        if gathering.hole and not gathering.exhausted():
            raise _gone(wanted, gathering.hole)

    def wait(self, seen: Mapping[Partition, Bounds], limit_s: float) -> None:
        """A suspended pull at the end of each queue, kept from one call to the next."""
        until = clock.monotonic() + limit_s
        with self._connecting.client() as client:
            waiting = self._waiting if self._connecting.keeps else {}
            ends = {(queue_of(partition.key), bounds.end) for partition, bounds in seen.items() if bounds.grows}
            for place in waiting.keys() - ends:
                waiting.pop(place).give_up()
            for queue, end in ends - waiting.keys():
                waiting[queue, end] = client.follow(queue, end, end=end + 1, deadline=math.inf)
            _until_arrived(waiting, until)

    def follow(self, wanted: Sequence[Range], limit: Limit, linger_s: float) -> Iterator[tuple[Range, SourceBatch]]:
        until = clock.monotonic() + limit.quantum_left_s()
        with self._connecting.client() as client, ExitStack() as given_up:
            followed = []
            for one in wanted:
                self._recent.pop(one.partition, None)
                reader = client.follow(queue_of(one.partition.key), one.begin, deadline=until)
                given_up.callback(reader.give_up)
                followed.append(FollowedQueue(one, reader))
            for queue in following(followed, until, linger_s):
                if queue.gathering.pending():
                    yield queue.wanted, self._batch(queue.wanted, queue.gathering)
                if queue.gathering.hole and not queue.gathering.exhausted():
                    raise _gone(queue.wanted, queue.gathering.hole)

    def _batch(self, wanted: Range, gathering: Gathering) -> SourceBatch:
        """The batch gathered so far. Its messages, and the one before them, are kept as evidence for the receipt."""
        messages, batch = gathering.take()
        before = [columns.between(len(columns) - 1, len(columns)) for columns in self._recent.get(wanted.partition, [])]
        self._recent[wanted.partition] = [columns for columns in (*before[-1:], messages) if len(columns)]
        return batch

    def evidence(self, wanted: Range, end: int) -> Json:
        """The last message before `end`. Asks the broker only when it was not among the messages read last."""
        if end == wanted.begin:
            return wanted.evidence
        for messages in reversed(self._recent.get(wanted.partition, [])):
            before = messages.before(end)
            if len(before) and before.offsets[-1] >= wanted.begin:
                return evidence_of_last(before)
        with self._connecting.client() as client:
            found = client.pull(queue_of(wanted.partition.key), end - 1, max_messages=1).messages
        there = [message for message in found if message.queue_offset < end]
        return evidence_of(there[-1]) if there else wanted.evidence

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


def _until_arrived(waiting: dict[tuple[Queue, int], QueueReader], until: float) -> None:
    """Returns when something is behind one of the ends, or what is there is not what was seen: `bounds` looks at it."""
    if not waiting:
        clock.sleep(until - clock.monotonic())
    while clock.monotonic() < until:
        for place, reader in waiting.items():
            try:
                come = reader.arrived() is not None
            except OffsetGone:
                come = True
            if come:
                del waiting[place]
                return
        wait_for_any(list(waiting.values()), until)


def _check_closed(client: Client, queue: Queue, there: Collection[str]) -> None:
    """Raises Unreachable when a queue is missing from the route for another reason than that its topic has fewer."""
    if queue.broker not in there or not is_closed(client, queue):
        raise Unreachable(
            "The queue is not in the topic's route: its broker is away, or the route is older than the queue",
            where=str(queue),
            next_step="Start the broker again; the next run goes on where this one was",
        )


def _gone(wanted: Range, hole: MissingRange) -> OffsetGone:
    return OffsetGone(
        f"Messages {hole.begin} to {hole.end} cannot be read: {hole.cause}",
        where=f"{wanted.partition.key}, offset {hole.begin}",
        next_step="Find out what happened to them; the next run goes on behind them when errors.on_gap is skip",
    )
