"""A source topic: a RocketMQ cluster of one broker in memory, behind the product's own RocketMQ source.

The source, its decoding and what it keeps as evidence are the real ones; only the client is replaced. Each partition of
the journey's logs is a queue; what is unreadable there is a message whose body has a line feed, which no file can hold.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any
from unittest.mock import patch

from connect_core.errors import OffsetGone, Retriable, Unreachable
from connect_core.rocketmq import PullResult, PullStatus, Queue, QueueBounds, StoredMessage, StoredSlice, TopicMissing
from connect_core.rocketmq.wire.stored_message import encode_message
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Json
from connect_core.systems.rocketmq import following as following_module
from connect_core.systems.rocketmq import source as source_module
from connect_core.systems.rocketmq.connecting import queue_of
from connect_core.systems.rocketmq.options import RocketMQSourceOptions
from connect_core.systems.rocketmq.source import RocketMQSource
from tests.simulator.broker import BROKER, message
from tests.simulator.faults import CONFIRM_FAILED, SOURCE_AWAY, Faults
from tests.simulator.logfiles import STARTED_S
from tests.simulator.scheduler import Scheduler
from tests.simulator.source import PLAIN, Entry, Log

TOPIC_NAME = "in"
_ANSWER = 6
"""So many messages are at most in an answer."""
_LOOK_S, _LEAST_S = 0.05, 0.0001
_LATER_MS = 1_000_000


def queue_key(number: int) -> str:
    """Of the partition that a queue is."""
    return f"{TOPIC_NAME}/{BROKER}/{number}"


@dataclass
class SourceBroker:
    """`committed` is what consumer groups were told."""

    scheduler: Scheduler
    faults: Faults
    step: Callable[[str], None]
    logs: Mapping[Partition, Log]
    committed: dict[tuple[str, Queue], int] = field(default_factory=dict)

    def log(self, queue: Queue) -> Log:
        return self.logs[Partition(str(queue))]

    def queues(self) -> list[Queue]:
        return [queue_of(partition.key) for partition in sorted(self.logs)]

    def ask(self, what: str) -> None:
        self.step(what)
        if self.faults.strikes(SOURCE_AWAY):
            raise Unreachable("the source's broker does not answer", where=BROKER)


class SimulatedTopicSource(RocketMQSource):
    """The product's source with another client."""

    def __init__(self, broker: SourceBroker, options: Json) -> None:
        super().__init__(RocketMQSourceOptions.model_validate({"name_servers": ("memory:1",), **options}))
        vars(self._connecting)["client"] = _client_of(broker)


def _client_of(broker: SourceBroker) -> Callable[[], object]:
    @contextmanager
    def client() -> Iterator[SourceClient]:
        yield SourceClient(broker)

    return client


class SourceClient:
    """The part of `connect_core.rocketmq.Client` that the source uses."""

    def __init__(self, broker: SourceBroker) -> None:
        self._broker = broker
        self.topics = self.offsets = self.groups = self

    def names(self) -> list[str]:
        return [TOPIC_NAME]

    def listed_queues(self, topic: str) -> list[Queue]:
        self._broker.ask(f"asks for the queues of {topic}")
        if topic != TOPIC_NAME:
            raise TopicMissing("there is no such topic", where=topic)
        return self._broker.queues()

    def bounds(self, topic: str) -> dict[Queue, QueueBounds]:
        self._broker.ask(f"asks for the ends of {topic}")
        return {queue: QueueBounds(log.oldest, log.end, 0) for queue, log in self._logs()}

    def reachable_bounds(
        self, topic: str, without: Collection[str] = ()
    ) -> tuple[dict[Queue, QueueBounds], dict[str, Retriable]]:
        if BROKER in without:
            return {}, {}
        try:
            return self.bounds(topic), {}
        except Unreachable as error:
            return {}, {BROKER: error}

    def _logs(self) -> Iterator[tuple[Queue, Log]]:
        return ((queue, self._broker.log(queue)) for queue in self._broker.queues())

    def begin(self, queue: Queue) -> int:
        return self._broker.log(queue).oldest

    def end(self, queue: Queue) -> int:
        return self._broker.log(queue).end

    def create(self, group: str, brokers: Collection[str] | None = None) -> None:
        self._broker.step(f"makes the group {group}")

    def committed(self, group: str, queue: Queue) -> int | None:
        self._broker.ask("asks where the group is")
        return self._broker.committed.get((group, queue))

    def commit(self, group: str, queue: Queue, offset: int) -> bool:
        self._broker.step("tells the source")
        if self._broker.faults.strikes(CONFIRM_FAILED):
            raise Unreachable("the source cannot be told")
        self._broker.committed[group, queue] = offset
        return True

    def pull(self, queue: Queue, offset: int, *, max_messages: int = 32) -> PullResult:
        self._broker.ask(f"pulls {queue} at {offset}")
        log = self._broker.log(queue)
        status = _status(log, offset)
        found = _messages(queue, log, offset, offset + max_messages) if status is PullStatus.FOUND else []
        return PullResult(queue, offset, status, offset + len(found), log.oldest, log.end, found)

    def read(self, queue: Queue, begin: int, end: int, *, deadline: float) -> TopicReader:
        return TopicReader(self._broker, queue, begin, end, deadline)

    def follow(self, queue: Queue, begin: int, *, deadline: float, end: int = 1 << 62) -> TopicReader:
        return TopicReader(self._broker, queue, begin, end, deadline)


@dataclass
class TopicReader:
    """As `QueueReader`: of [position, end), until the deadline or the end of the queue."""

    broker: SourceBroker
    queue: Queue
    position: int
    end: int
    deadline: float
    queue_end: int = -1

    def stored(self) -> Iterator[StoredSlice]:
        while self.position < self.end and self.broker.scheduler.monotonic() < self.deadline:
            self.broker.ask(f"reads {self.queue} from {self.position}")
            part = self._part()
            if part is None:
                return
            yield part

    def arrived(self) -> StoredSlice | None:
        if not self.is_there():
            return None
        self.broker.ask(f"hears of {self.queue} from {self.position}")
        return self._part()

    def is_there(self) -> bool:
        there = _status(self.broker.log(self.queue), self.position) is not PullStatus.CAUGHT_UP
        return there and self.position < self.end

    def pull(self) -> None:
        """Every answer comes when it is asked for."""

    give_up = pull

    def _part(self) -> StoredSlice | None:
        log = self.broker.log(self.queue)
        begin, status, self.queue_end = self.position, _status(log, self.position), log.end
        if status is PullStatus.TOO_LARGE:
            raise OffsetGone("The queue ends before the offset that is to be read", where=str(self.queue))
        if status is PullStatus.CAUGHT_UP:
            return None
        if status is not PullStatus.FOUND:
            self.position = min(log.oldest, self.end)
            return StoredSlice(begin, self.position, memoryview(b""), status.value)
        self.position = min(begin + _ANSWER, self.end, log.end)
        data = b"".join(map(encode_message, _messages(self.queue, log, begin, self.position)))
        return StoredSlice(begin, self.position, memoryview(data))


def _status(log: Log, offset: int) -> PullStatus:
    if offset < log.oldest:
        return PullStatus.TOO_SMALL
    if offset > log.end:
        return PullStatus.TOO_LARGE
    return PullStatus.CAUGHT_UP if offset == log.end else PullStatus.FOUND


def _messages(queue: Queue, log: Log, begin: int, end: int) -> list[StoredMessage]:
    return [_message(queue, offset, log.entries[offset]) for offset in range(begin, min(end, log.end))]


def _message(queue: Queue, offset: int, entry: Entry) -> StoredMessage:
    body = entry.body if entry.kind == PLAIN else entry.body + b"\n"
    properties = f"KEYS\x01{entry.key}\x02".encode() if entry.key else b""
    stored_ms = STARTED_S * 1000 + offset + entry.stored_after * _LATER_MS
    return message(queue, offset, offset, properties, body, stored_ms=stored_ms)


@contextmanager
def waiting(scheduler: Scheduler) -> Iterator[None]:
    """In place of a wait for sockets."""

    def wait_for_any(readers: Sequence[Any], until: float) -> None:
        """Takes a moment, however near `until` is."""
        while not any(isinstance(reader, TopicReader) and reader.is_there() for reader in readers):
            left_s = until - scheduler.monotonic()
            scheduler.sleep(min(_LOOK_S, max(left_s, _LEAST_S)))
            if left_s <= 0:
                return

    modules: tuple[ModuleType, ...] = (source_module, following_module)
    with ExitStack() as patches:
        for module in modules:
            patches.enter_context(patch.object(module, "wait_for_any", wait_for_any))
        yield
