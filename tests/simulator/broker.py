"""The target: a RocketMQ cluster of one broker in memory, behind the product's own RocketMQ sink.

The sink, its `scan`, its writer and its marks are the real ones; only the client is replaced. What is stored becomes
visible a moment later, in the order of the broker's log, and a barrier waits for that. A batch that was handed to the
kernel is stored even when its sender has died meanwhile; it can be late, lost, or be stored and its answer lost.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from connect_core.errors import Unreachable
from connect_core.rocketmq import (
    Acknowledged,
    Batch,
    MissingRange,
    NoAnswer,
    PullResult,
    PullStatus,
    Queue,
    QueueSlice,
    SendUnknown,
    StoredMessage,
    StoredSlice,
    StoreStatus,
)
from connect_core.rocketmq.wire.batch_entries import decode_entries
from connect_core.rocketmq.wire.route import Cluster
from connect_core.rocketmq.wire.stored_message import MAGIC_V1, encode_message
from connect_core.sdk.records import COORDINATES_PROPERTY
from connect_core.systems.rocketmq.options import RocketMQSinkOptions
from connect_core.systems.rocketmq.sink import RocketMQSink
from tests.simulator.faults import (
    BROKER_AWAY,
    SEND_HELD,
    SEND_LOST,
    SEND_ORPHANED,
    SEND_TORN,
    SEND_UNANSWERED,
    Faults,
)
from tests.simulator.hosts import is_late
from tests.simulator.scheduler import STEP, Actor, Scheduler

BROKER = "broker-a"
SEND_TIMEOUT_S = 0.5
_PULL = 16
_VISIBLE_AFTER_S = (0.0002, 0.0002, 0.001, 0.001, 0.022, 0.4)
"""Between the answer to a send and the moment at which what was sent can be seen."""
_MARK = COORDINATES_PROPERTY.encode() + b"\x01"
_HOST = b"\x7f\0\0\1\0\0\x2a\x9f"


@dataclass(frozen=True)
class Stored:
    """One message of the log. `offset` is -1 for a foreign one; `writer` numbers the leases in the order in which they
    were taken; `held` when it comes under the stated condition; `torn` when a part of its properties is lost."""

    message: StoredMessage
    visible_ns: int
    partition_id: str = ""
    offset: int = -1
    writer: int = 0
    held: bool = False
    torn: bool = False


@dataclass
class _Send:
    """A batch on its way: the sender's `answer` once it is there."""

    batch: Batch
    sender: Actor
    writer: int
    fault: str | None
    answer_by_ns: int
    answer: Acknowledged | None = None


@dataclass
class Broker:
    """`looked` is, by partition, the newest writer that has begun to look or to write; `faulty` are the sentences
    about writes that came after it. `looked_ahead` are the partitions that were looked for from a floor behind which
    settled records stand: there `scan` cannot tell a copy that came late."""

    scheduler: Scheduler
    faults: Faults
    step: Callable[[str], None]
    queues: dict[Queue, list[Stored]] = field(default_factory=dict)
    oldest: dict[Queue, int] = field(default_factory=dict)
    """What retention has left of a queue begins there; 0 where it has deleted nothing."""
    deleted: list[StoredMessage] = field(default_factory=list)
    """What was in topics that were deleted."""
    looked: dict[str, int] = field(default_factory=dict)
    faulty: list[str] = field(default_factory=list)
    looked_ahead: set[str] = field(default_factory=set)
    away_until_ns: int = 0
    _visible_ns: int = 0
    _places: int = 0

    def topic(self, name: str) -> list[Queue]:
        return sorted(queue for queue in self.queues if queue.topic == name)

    def create(self, topic: str, queues: int) -> None:
        for number in range(queues):
            self.queues.setdefault(Queue(topic, BROKER, number), [])

    def end(self, queue: Queue) -> int:
        """The visible end."""
        log, now = self.queues[queue], self.scheduler.now_ns
        end = len(log)
        while end and log[end - 1].visible_ns > now:
            end -= 1
        return end

    def expire(self, queue: Queue, oldest: int) -> None:
        """Retention deletes what stands before that place."""
        self.oldest[queue] = max(self.oldest.get(queue, 0), min(oldest, self.end(queue)))
        self.scheduler.tell(f"begins at {self.oldest[queue]}: {queue}", "broker")

    def make_anew(self, queue: Queue, begin: int = 0) -> None:
        """The log keeps what was in the former one. The new one may begin later than at 0: with what was stored before
        the topic was deleted, and indexed after."""
        self.deleted += [one.message for one in self.queues[queue][self.oldest.pop(queue, 0) :]]
        self.queues[queue] = []
        if begin:
            self.store_foreign(queue, begin)
            self.oldest[queue] = begin

    def with_id(self, message_id: str) -> StoredMessage | None:
        """What the log has not let expire."""
        kept = (one.message for queue, log in self.queues.items() for one in log[self.oldest.get(queue, 0) :])
        return next((one for one in (*kept, *self.deleted) if one.offset_message_id == message_id), None)

    def ask(self, what: str) -> None:
        """A request and its answer."""
        self.step(what)
        if self.faults.strikes(BROKER_AWAY):
            self.away_until_ns = self.scheduler.now_ns + int(self.scheduler.chance.uniform(0.05, 1.5) * 1e9)
        if self.away():
            raise Unreachable("the broker does not answer", where=BROKER)

    def away(self) -> bool:
        return self.scheduler.now_ns < self.away_until_ns

    def visible_from_ns(self) -> int:
        """The moment at which everything stored so far can be seen."""
        return max(self._visible_ns, self.scheduler.now_ns)

    def busy(self) -> bool:
        """Whether something stored cannot be seen yet."""
        return self._visible_ns > self.scheduler.now_ns

    def store_foreign(self, queue: Queue, count: int) -> None:
        self._append(queue, [(b"", b"foreign")] * count, 0, False)

    def store(self, queue: Queue, send: _Send) -> int:
        """The batch arrives: the offset of its first message."""
        entries = [(entry.properties, entry.body) for entry in decode_entries(send.batch.body)]
        held = send.fault == SEND_HELD or is_late(send.sender, self.scheduler.now_ns)
        return self._append(queue, entries, send.writer, held)

    def store_torn(self, queue: Queue, send: _Send) -> None:
        """The broker dies within the batch, and is back after a while: of a message whose body was written the rest of
        its properties are zeros, since nothing checks them."""
        chance = self.scheduler.chance
        entries = [(entry.properties, entry.body) for entry in decode_entries(send.batch.body)]
        whole = chance.randint(0, len(entries) - 1)
        self._append(queue, entries[:whole], send.writer, False)
        if chance.random() < 0.7:
            properties, body = entries[whole]
            kept = properties[: chance.randint(0, len(properties) - 1)]
            self._append_torn(queue, kept.ljust(len(properties), b"\0"), body)
        self.away_until_ns = self.scheduler.now_ns + int(chance.uniform(0.05, 1.5) * 1e9)

    def _append_torn(self, queue: Queue, properties: bytes, body: bytes) -> None:
        log = self.queues[queue]
        self._places += 1
        one = message(queue, len(log), self._places, properties, body)
        self._visible_ns = max(self._visible_ns, self.scheduler.now_ns)
        self.scheduler.tell(f"stored a part of {body!r} at {len(log)} in {queue}", "broker", STEP)
        log.append(Stored(one, self._visible_ns, torn=True))

    def begins(self, partition_id: str, writer: int) -> None:
        """A holder of a newer lease has begun to look, or to write."""
        self.looked[partition_id] = max(self.looked.get(partition_id, 0), writer)

    def _append(self, queue: Queue, entries: list[tuple[bytes, bytes]], writer: int, held: bool) -> int:
        log = self.queues[queue]
        first = len(log)
        delay_s = self.scheduler.chance.choice(_VISIBLE_AFTER_S)
        self._visible_ns = max(self._visible_ns, self.scheduler.now_ns + int(delay_s * 1e9))
        for properties, body in entries:
            partition_id, offset = coordinates(properties)
            if partition_id and not held and writer < self.looked.get(partition_id, 0):
                self.faulty.append(f"lease {writer} wrote {offset} after lease {self.looked[partition_id]} had looked")
            if partition_id and not held:
                self.begins(partition_id, writer)
            self._places += 1
            one = message(queue, len(log), self._places, properties, body)
            log.append(Stored(one, self._visible_ns, partition_id, offset, writer, held))
        self.scheduler.tell(f"stored {[one.offset for one in log[first:]]} at {first} in {queue}", "broker", STEP)
        return first


def coordinates(properties: bytes) -> tuple[str, int]:
    """(partition id, offset) of a message of ours, read without the product's help; ("", -1) for a foreign one."""
    at = properties.rfind(_MARK)
    if at < 0:
        return "", -1
    fields = properties[at + len(_MARK) :].partition(b"\x02")[0].decode().split(":")
    return fields[2], int(fields[4])


@dataclass(frozen=True)
class Holder:
    """For whom a sink works: the number of the lease, and the ids of the partitions that it looks for or writes."""

    writer: int = 0
    partition_ids: tuple[str, ...] = ()


_TEMPLATES = {
    "rule_topics": (),
    "rule_patterns": ("copy-*",),
    "only_rule_topics": True,
    "dynamic_topics": "create",
}
"""Of a sink whose topics only records name."""


class SimulatedSink(RocketMQSink):
    """The product's sink with another client."""

    def __init__(
        self,
        broker: Broker,
        topic: str,
        queues: int,
        order: str,
        holder: Holder,
        on_replaced: str = "fail",
        on_unknown: str = "fail",
        *,
        templates: bool = False,
    ) -> None:
        options = RocketMQSinkOptions.model_validate(
            {
                "name_servers": ("memory:1",),
                "topic": topic,
                "queues": queues,
                "order": order,
                "on_replaced": on_replaced,
                "on_unknown": on_unknown,
                "max_message_bytes": 1024,
                "send_timeout_s": SEND_TIMEOUT_S,
                **(_TEMPLATES if templates else {}),
            }
        )
        super().__init__(options)
        vars(self._connecting)["client"] = _client_of(broker, holder)


def _client_of(broker: Broker, holder: Holder) -> Callable[[], object]:
    @contextmanager
    def client() -> Iterator[SimulatedClient]:
        yield SimulatedClient(broker, holder)

    return client


class SimulatedClient:
    """The part of `connect_core.rocketmq.Client` that the sink uses."""

    def __init__(self, broker: Broker, holder: Holder) -> None:
        self._broker, self._holder = broker, holder
        self.topics = self.offsets = self.brokers = self

    def exists(self, topic: str) -> bool:
        self._broker.ask(f"asks for topic {topic}")
        return bool(self._broker.topic(topic))

    def create(self, topic: str, queues: int) -> None:
        self._broker.ask(f"creates topic {topic}")
        self._broker.create(topic, queues)

    def write_queues(self, topic: str) -> list[Queue]:
        return self._broker.topic(topic)

    def masters(self) -> dict[str, str]:
        return {BROKER: "memory:1"}

    def cluster(self) -> Cluster:
        return Cluster(clusters={"memory": (BROKER,)})

    def settings(self, broker: str) -> dict[str, str]:
        return {}

    def begin(self, queue: Queue) -> int:
        self._broker.ask(f"asks for the begin of {queue}")
        return self._broker.oldest.get(queue, 0)

    def end(self, queue: Queue) -> int:
        self._broker.ask(f"asks for the end of {queue}")
        return self._broker.end(queue)

    def barrier(self, broker: str, *, deadline: float) -> None:
        self._broker.ask("sends a barrier")
        scheduler = self._broker.scheduler
        scheduler.wait((self._broker.visible_from_ns() - scheduler.now_ns) / 1e9)

    def pull(self, queue: Queue, offset: int, *, max_messages: int) -> PullResult:
        self._broker.ask(f"pulls {queue} at {offset}")
        oldest, end = self._broker.oldest.get(queue, 0), self._broker.end(queue)
        if not oldest <= offset < end:
            status = PullStatus.REMOVED if offset < oldest else PullStatus.CAUGHT_UP
            return PullResult(queue, offset, status, max(offset, oldest), oldest, end, [])
        found = [one.message for one in self._broker.queues[queue][offset : min(end, offset + max_messages)]]
        return PullResult(queue, offset, PullStatus.FOUND, offset + len(found), oldest, end, found)

    def with_id(self, broker: str, message_id: str) -> StoredMessage | None:
        self._broker.ask(f"asks for {message_id}")
        return self._broker.with_id(message_id)

    def read(self, queue: Queue, begin: int, end: int, *, deadline: float) -> SimulatedReader:
        for partition_id in self._holder.partition_ids:
            self._broker.begins(partition_id, self._holder.writer)
        return SimulatedReader(self._broker, queue, begin, end, deadline)

    def sender(self, queue: Queue) -> SimulatedSender:
        return SimulatedSender(self._broker, queue, self._holder.writer)


@dataclass
class SimulatedReader:
    """Slices of what is visible of [position, end), until the deadline."""

    broker: Broker
    queue: Queue
    position: int
    end: int
    deadline: float

    def __iter__(self) -> Iterator[QueueSlice]:
        while self.position < self.end and self.broker.scheduler.monotonic() < self.deadline:
            self.broker.ask(f"reads {self.queue} from {self.position}")
            begin = self.position
            oldest = self.broker.oldest.get(self.queue, 0)
            if begin < oldest:
                self.position = min(oldest, self.end)
                yield QueueSlice(begin, self.position, [], (MissingRange(begin, self.position, "deleted"),))
                continue
            last = min(begin + _PULL, self.end, self.broker.end(self.queue))
            if last <= begin:
                return
            self.position = last
            yield QueueSlice(begin, last, [one.message for one in self.broker.queues[self.queue][begin:last]])

    def stored(self) -> Iterator[StoredSlice]:
        for part in self:
            yield StoredSlice(part.begin, part.end, memoryview(b"".join(map(encode_message, part.messages))))


class SimulatedSender:
    """At most one batch is outstanding; one whose answer does not come is unknown, and the sender is over."""

    def __init__(self, broker: Broker, queue: Queue, writer: int) -> None:
        self._broker, self._queue, self._writer = broker, queue, writer
        self._scheduler = broker.scheduler
        self._outstanding: _Send | None = None
        self._over = False

    def submit(self, batch: Batch, *, deadline: float, sys_flag: int = 0) -> Acknowledged | None:
        acknowledged = self.finish(deadline=deadline)
        self._broker.step("is about to send")
        if self._scheduler.monotonic() >= deadline:
            raise NoAnswer("the deadline passed before the batch was sent; it is not stored")
        me = self._scheduler.current
        assert me is not None
        fault = self._broker.faults.strikes(
            SEND_LOST, SEND_UNANSWERED, SEND_ORPHANED, SEND_HELD, SEND_TORN, BROKER_AWAY, weight=2
        )
        if fault == BROKER_AWAY:
            raise Unreachable("the broker does not answer", where=BROKER)
        answer_by = min(deadline, self._scheduler.monotonic() + SEND_TIMEOUT_S)
        self._outstanding = _Send(batch, me, self._writer, fault, int(answer_by * 1e9) + 1)
        if fault == SEND_ORPHANED:
            dies_s = self._scheduler.chance.uniform(0, 0.02)
            self._scheduler.after(dies_s, lambda: self._scheduler.kill(me, "with a send under way"))
        self._scheduler.tell(f"hands {batch.count} records over", mark=STEP)
        if fault != SEND_LOST:
            send = self._outstanding
            self._scheduler.after(self._transit_s(fault), lambda: self._arrives(send))
        self._broker.step("has sent")
        return acknowledged

    def finish(self, *, deadline: float) -> Acknowledged | None:
        if self._over:
            raise SendUnknown("an earlier batch has an unknown outcome")
        if self._outstanding is None:
            return None
        send = self._outstanding
        self._scheduler.at(send.answer_by_ns, lambda: self._scheduler.wake(send.sender))
        while send.answer is None and self._scheduler.now_ns < send.answer_by_ns:
            self._scheduler.block()
        self._outstanding = None
        if send.answer is None:
            self._over = True
            raise SendUnknown("a batch was sent and nobody knows whether it is stored")
        return send.answer

    def _transit_s(self, fault: str | None) -> float:
        """Longer than its send queue only under the stated condition: `scan` waits that long before it looks."""
        chance = self._scheduler.chance
        if fault == SEND_HELD:
            return chance.uniform(0.3, 8)
        return chance.uniform(0.05, 0.24) if fault == SEND_ORPHANED else chance.uniform(0.0002, 0.004)

    def _arrives(self, send: _Send) -> None:
        if send.fault == SEND_TORN:
            self._broker.store_torn(self._queue, send)
            return
        first = self._broker.store(self._queue, send)
        if send.fault == SEND_UNANSWERED:
            return
        last = self._broker.queues[self._queue][first + send.batch.count - 1].message.offset_message_id
        answer = Acknowledged(self._queue, first, send.batch.count, StoreStatus.OK, last)
        self._scheduler.after(self._scheduler.chance.uniform(0.0002, 0.002), lambda: self._answers(send, answer))

    def _answers(self, send: _Send, answer: Acknowledged) -> None:
        send.answer = answer
        self._scheduler.wake(send.sender)


def message(
    queue: Queue, offset: int, place: int, properties: bytes, body: bytes, *, stored_ms: int = 0
) -> StoredMessage:
    """As a broker answers it. `place` is that in its log."""
    return StoredMessage(
        total_size=0,
        magic=MAGIC_V1,
        body_crc=zlib.crc32(body) & 0x7FFFFFFF,
        queue_id=queue.queue_id,
        flag=0,
        queue_offset=offset,
        physical_offset=place,
        sys_flag=0,
        born_timestamp_ms=0,
        born_host=_HOST,
        store_timestamp_ms=stored_ms,
        store_host=_HOST,
        reconsume_times=0,
        prepared_transaction_offset=0,
        body_length=len(body),
        topic=queue.topic,
        body=body,
        properties=properties,
    )
