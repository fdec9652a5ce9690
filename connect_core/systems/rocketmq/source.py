"""The RocketMQ source: every queue of its topics, by offset. It needs no consumer group of real consumers.

A partition is a queue, `topic/broker/queueId`; a position is a queue offset with evidence of the message before it.
Its own consumer group is told what is settled, so that RocketMQ's lag tools show it; reading never asks the group.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime

from connect_core import clock
from connect_core.errors import ConfigError, Failure, LeaseHeld, OffsetGone, Retriable, Unreachable, WaybillError
from connect_core.rocketmq import (
    Client,
    MissingRange,
    Queue,
    QueueBounds,
    QueueReader,
    TopicMissing,
    wait_for_any,
)
from connect_core.sdk.records import Partition
from connect_core.sdk.source import Followed
from connect_core.sdk.values import Bounds, Json, Limit, Position, Range, SourceBatch
from connect_core.systems.rocketmq.columns import Columns
from connect_core.systems.rocketmq.connecting import Connecting, check_route, queue_of
from connect_core.systems.rocketmq.continuity import (
    SecondLook,
    at_end,
    begun_at,
    closed_bounds,
    deleted_bounds,
    evidence_of,
    evidence_of_last,
    first_bounds,
    never_read,
    next_bounds,
    shrunk,
)
from connect_core.systems.rocketmq.decoding import record_batch, whole_messages
from connect_core.systems.rocketmq.finding import visible_ends
from connect_core.systems.rocketmq.following import FollowedQueue, following
from connect_core.systems.rocketmq.gathering import Gathering
from connect_core.systems.rocketmq.options import SYSTEM, RocketMQSourceOptions
from connect_core.systems.rocketmq.own_group import OwnGroup
from connect_core.systems.rocketmq.presence import Presence, awaited, missing
from connect_core.systems.rocketmq.reach import Reach
from connect_core.systems.rocketmq.read_before import limits_at
from connect_core.systems.rocketmq.starting import started_from
from connect_core.systems.rocketmq.times import first_stored_at


class RocketMQSource:
    """A `sdk.source.Source`, and `Keyed`."""

    def __init__(self, options: RocketMQSourceOptions, resources: ExitStack | None = None) -> None:
        self._options = options
        self._connecting = Connecting(options, resources)
        self._reach = Reach()
        self._presence = Presence(options.names, self._reach)
        self._recent: dict[Partition, list[Columns]] = {}
        self._ends: dict[Partition, int] = {}
        self._group = OwnGroup(options.consumer_group())
        self._begun: set[str] = set()
        """Topics of which something was read, as far as this task knows."""
        self._waiting: dict[tuple[Queue, int], QueueReader] = {}
        self._refused: dict[Queue, WaybillError] = {}
        """Why nobody can wait at the end of a queue, though it could be looked at: for the next look to say."""

    def partitions(self, known: Sequence[Partition]) -> list[Partition]:
        with self._connecting.client() as client:
            mine = [partition for partition in known if self._options.reads(queue_of(partition.key).topic)]
            known_queues = [queue_of(partition.key) for partition in mine]
            queues = [queue for topic in self._topics(client) for queue in self._queues(client, topic, known_queues)]
        there = [Partition(str(queue)) for queue in queues]
        self._check_starts([*mine, *there])
        return [*mine, *(partition for partition in there if partition not in mine)]

    def _check_starts(self, partitions: Sequence[Partition]) -> None:
        """Raises ConfigError when the document says where a queue begins that there is not."""
        known = {partition.key for partition in partitions}
        named = [f"{topic}/{name}" for topic, offsets in self._options.start_offsets().items() for name in offsets]
        if strange := sorted(set(named) - known):
            raise ConfigError(
                f"There is no queue {', '.join(strange)}",
                where="source.rocketmq.start",
                next_step=f"There are {', '.join(sorted(known)[:8])}{' and others' if len(known) > 8 else ''}",
            )

    def topic(self, partition: Partition) -> str:
        return queue_of(partition.key).topic

    def _topics(self, client: Client) -> list[str]:
        """Those that are named, which have to be there, and those that a pattern means now."""
        named = [topic for topic in self._options.topics if self._options.names(topic)]
        if len(named) == len(self._options.topics):
            return named
        return [
            *named,
            *(topic for topic in client.topics.names() if topic not in named and self._options.reads(topic)),
        ]

    def _queues(self, client: Client, topic: str, known: Collection[Queue]) -> list[Queue]:
        """None of a topic that a pattern means and that was deleted a moment ago, and of one whose broker is away: the
        name server has forgotten it. What else is in the way, as with a static topic, the look at its queues says.
        Raises Unreachable for one that is named and was never there, as far as this connector knows, TopicMissing for
        one that was."""
        try:
            return client.topics.listed_queues(topic)
        except TopicMissing as error:
            if not self._options.names(topic):
                return []
            had_it = {queue.broker for queue in known if queue.topic == topic}
            try:
                check_route(client, topic, had_it)
            except Unreachable:
                if had_it:
                    return []
                raise
            raise (missing(error) if had_it else awaited(error)) from None

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        """Queues of topics that the document does not name are not asked for."""
        every = {partition: queue_of(partition.key) for partition in known}
        queues = {partition: queue for partition, queue in every.items() if self._options.reads(queue.topic)}
        left = {partition: Bounds.unread(known[partition]) for partition in every.keys() - queues.keys()}
        self._begun = {queue.topic for partition, queue in queues.items() if known[partition]}
        with self._connecting.client() as client:
            seen = self._presence.bounds(client, queues.values())
            there = {
                partition: self._bounds_or_why_not(client, queue, known[partition], seen)
                for partition, queue in queues.items()
            }
        away = [why for queue in queues.values() if (why := self._presence.why_not(queue))]
        if away and len(away) == len(queues):
            raise away[0]  # there is nobody to go on with
        return left | there

    def _bounds_or_why_not(
        self, client: Client, queue: Queue, position: Position | None, seen: Mapping[Queue, QueueBounds]
    ) -> Bounds:
        """A queue that cannot be looked at stops no other. A broker that does not answer concerns its own queues, and a
        document that cannot be right the whole run."""
        if (refused := self._refused.get(queue)) is not None:
            return Bounds.unread(position, Failure.of(refused))
        try:
            with self._reach.asking(queue.broker):
                return self._bounds_of(client, queue, position, seen)
        except (LeaseHeld, ConfigError):
            raise
        except WaybillError as error:
            return Bounds.unread(position, Failure.of(error))

    def _bounds_of(
        self, client: Client, queue: Queue, position: Position | None, seen: Mapping[Queue, QueueBounds]
    ) -> Bounds:
        if queue not in seen:
            if self._presence.is_deleted(client, queue):
                return deleted_bounds(position)
            left = QueueBounds(client.offsets.begin(queue), client.offsets.end(queue), 0)
            return closed_bounds(position or never_read(self._first_offset(client, queue, left)), left.end)
        try:
            return self._bounds_seen(client, queue, position, seen[queue])
        except TopicMissing:  # it was deleted since it was seen
            if self._options.names(queue.topic) or not self._presence.is_deleted(client, queue):
                raise
            return deleted_bounds(position)

    def _bounds_seen(self, client: Client, queue: Queue, position: Position | None, seen: QueueBounds) -> Bounds:
        if position is not None:
            return next_bounds(client, queue, position, seen)
        if (wanted := self._named_offset(queue)) is not None:
            return begun_at(client, queue, seen, wanted)
        begin = self._first_offset(client, queue, seen)
        return first_bounds(client, queue, seen, begin, chosen=self._options.start_of_others() != "earliest")

    def offsets_for_time(self, partitions: Sequence[Partition], moment: datetime) -> dict[Partition, int]:
        """By the broker's clock. Behind a barrier: a message that was acknowledged before is there by now."""
        queues = {partition: queue_of(partition.key) for partition in partitions}
        moment_ms = math.ceil(moment.timestamp() * 1000)
        with self._connecting.client() as client:
            ends = visible_ends(client, queues.values())
            return {
                partition: first_stored_at(client, queue, client.offsets.begin(queue), ends[queue], moment_ms)
                for partition, queue in queues.items()
            }

    def offsets_with_key(self, key: str) -> list[tuple[Partition, int]]:
        """By the index of the brokers, of each at most 64."""
        found: list[tuple[Partition, int]] = []
        with self._connecting.client() as client:
            for topic in self._topics(client):
                with suppress(TopicMissing):
                    messages = client.with_key(topic, key)
                    found += [(Partition(str(queue)), message.queue_offset) for queue, message in messages]
        return found

    def align_offset(self, partition: Partition, seen: Bounds, offset: int) -> int:
        return offset

    def _first_offset(self, client: Client, queue: Queue, seen: QueueBounds) -> int:
        """Where a queue that was never read begins. The ledger keeps it from the first run on; our group from the first
        look on, which may be a person's: the newest message, and the place of another group, are others at each look. A
        queue that a topic has got since others of it were looked at is new, and begins at its first message."""
        if (wanted := self._named_offset(queue)) is not None:
            return wanted
        if self._options.start_of_others() == "earliest":
            return seen.begin
        group = self._options.consumer_group()
        if group and (kept := client.groups.committed(group, queue)) is not None:
            return kept
        start = "earliest" if queue.topic in self._begun else self._options.start_of_others()
        begin = started_from(client, queue, seen, start)
        if group:
            client.groups.create(group, [queue.broker])
            client.groups.commit(group, queue, begin)
        return begin

    def _named_offset(self, queue: Queue) -> int | None:
        return self._options.start_offsets().get(queue.topic, {}).get(f"{queue.broker}/{queue.queue_id}")

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        gathering = self._gathering(wanted)
        self._forget(wanted.partition)
        deadline = clock.monotonic() + limit.quantum_left_s()
        queue = queue_of(wanted.partition.key)
        with self._connecting.client() as client, self._telling_what_concerns_it_alone(wanted):
            if not SecondLook(client, queue, wanted.evidence, deadline).holds():
                raise _made_anew(wanted)
            reader = client.read(queue, wanted.begin, wanted.end, deadline=deadline)
            for part in reader.stored():
                gathering.add(part)
                self._ends[wanted.partition] = reader.queue_end
                if gathering.full():
                    yield self._remembered(wanted, *gathering.take())
                if gathering.hole or gathering.exhausted():
                    break
            else:
                self._ends[wanted.partition] = reader.queue_end
                if wanted.begin == reader.queue_end < wanted.end:
                    raise _gone(wanted, MissingRange(wanted.begin, wanted.end, "the queue ends before them by now"))
        if gathering.pending():
            yield self._remembered(wanted, *gathering.take())
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
            self._refused |= _until_arrived(waiting, until)

    def follow(self, wanted: Sequence[Range], limit: Limit, idle_timeout_s: float) -> Iterator[Followed]:
        """Ends as well when one of the topics was deleted, or created anew: the next plan looks at it."""
        until = clock.monotonic() + limit.quantum_left_s()
        with self._connecting.client() as client, ExitStack() as given_up, suppress(TopicMissing):
            followed = []
            for one in wanted:
                self._forget(one.partition)
                reader = client.follow(queue_of(one.partition.key), one.begin, deadline=until)
                given_up.callback(reader.give_up)
                followed.append(FollowedQueue(reader, one, self._gathering(one), self._reach))
            for queue in following(followed, limit, idle_timeout_s):
                if not queue.failure:
                    taken, holds = self._taken(client, queue, until)
                    if not holds:
                        return
                    self._ends[queue.wanted.partition] = queue.reader.queue_end
                    if taken:
                        yield queue.wanted, self._remembered(queue.wanted, *taken)
                    if queue.gathering.hole and not queue.gathering.exhausted():
                        queue.fail(_gone(queue.wanted, queue.gathering.hole))
                if queue.failure:
                    queue.over = True
                    yield queue.wanted, queue.failure

    def _taken(
        self, client: Client, queue: FollowedQueue, until: float
    ) -> tuple[tuple[Columns, SourceBatch] | None, bool]:
        """What was gathered, and whether the queue is still the one of which the range was planned. Nothing where its
        broker does not say so any more."""
        before = self._last_seen(queue.wanted) if queue.has_waited() else {}
        try:
            with self._reach.asking(queue.reader.queue.broker):
                look = SecondLook(client, queue.reader.queue, before, until)
                taken = queue.take()
                return taken, look.holds()
        except WaybillError as error:
            queue.fail(error)
            return None, True

    def _gathering(self, wanted: Range) -> Gathering:
        """Whole messages for a sink that takes them, else what any system takes."""
        decode = whole_messages if self._options.sink_system == SYSTEM else record_batch
        return Gathering(wanted, decode, leave_out_copies=self._options.copies == "leave_out")

    def _forget(self, partition: Partition) -> None:
        """What an earlier range has shown."""
        self._recent.pop(partition, None)
        self._ends.pop(partition, None)

    @contextmanager
    def _telling_what_concerns_it_alone(self, wanted: Range) -> Iterator[None]:
        """That its broker does not answer. And a topic that a pattern means may go while it is read: what is told of it
        is for the next plan to say."""
        try:
            with self._reach.asking(queue_of(wanted.partition.key).broker):
                yield
        except TopicMissing as error:
            if self._options.names(queue_of(wanted.partition.key).topic):
                raise missing(error) from None
            raise Retriable(
                "The topic was deleted while it was read",
                where=error.where,
                next_step="The next run reports what was not read of it",
            ) from None

    def _last_seen(self, wanted: Range) -> Json:
        """The evidence of what was read last."""
        recent = self._recent.get(wanted.partition)
        return evidence_of_last(recent[-1]) if recent else wanted.evidence

    def _remembered(self, wanted: Range, messages: Columns, batch: SourceBatch) -> SourceBatch:
        """The batch of these messages. They, and the one before them, are kept as evidence for the receipt."""
        before = [columns.between(len(columns) - 1, len(columns)) for columns in self._recent.get(wanted.partition, [])]
        self._recent[wanted.partition] = [columns for columns in (*before[-1:], messages) if len(columns)]
        return batch

    def evidence(self, wanted: Range, end: int) -> Json:
        """The last message before `end`, and whether the queue ended there, and before the end that was planned."""
        if end == wanted.begin:
            return wanted.evidence
        message = self._last_before(wanted, end) | limits_at(wanted.evidence, end)
        if self._ends.get(wanted.partition) != end:
            return message
        return at_end(message) if wanted.live or end == wanted.end else shrunk(message, wanted.end)

    def _last_before(self, wanted: Range, end: int) -> Json:  # asks only for one that was not read last
        for messages in reversed(self._recent.get(wanted.partition, [])):
            before = messages.before(end)
            if len(before) and before.offsets[-1] >= wanted.begin:
                return evidence_of_last(before)
        with self._connecting.client() as client, self._telling_what_concerns_it_alone(wanted):
            found = client.pull(queue_of(wanted.partition.key), end - 1, max_messages=1).messages
        there = [message for message in found if message.queue_offset < end]
        return evidence_of(there[-1]) if there else wanted.evidence

    def commit_offsets(self, positions: Mapping[Partition, Position]) -> None:
        if self._group.name and positions:
            with self._connecting.client() as client:
                self._group.commit(client, {queue_of(one.key): at.offset for one, at in positions.items()})


def _until_arrived(waiting: dict[tuple[Queue, int], QueueReader], until: float) -> dict[Queue, WaybillError]:
    """Returns when something is behind one of the ends, or what is there is not what was seen: the next look says what.
    What trying again does not help is returned: a look might not meet it, and wait again at once."""
    if not waiting:
        clock.sleep(until - clock.monotonic())
    while clock.monotonic() < until:
        for place, reader in waiting.items():
            refused: dict[Queue, WaybillError] = {}
            try:
                come = reader.arrived() is not None
            except LeaseHeld:
                raise
            except (OffsetGone, TopicMissing, Retriable):
                come = True
            except WaybillError as error:
                come, refused = True, {place[0]: error}
            if come:
                del waiting[place]
                return refused
        wait_for_any(list(waiting.values()), until)
    return {}


def _made_anew(wanted: Range) -> Retriable:
    return Retriable(
        "The topic was created again after this range was planned",
        where=f"{wanted.partition.key}, offset {wanted.begin}",
        next_step="Nothing was read; the next run reports what is not known of the former topic",
    )


def _gone(wanted: Range, hole: MissingRange) -> OffsetGone:
    return OffsetGone(
        f"Messages {hole.begin} to {hole.end} cannot be read: {hole.cause}",
        where=f"{wanted.partition.key}, offset {hole.begin}",
        next_step="Find out what happened to them. With --accept-gaps, or errors.on_data_loss: skip, the next run "
        "records the gap and continues after them",
    )
