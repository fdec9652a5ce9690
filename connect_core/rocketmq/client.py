"""The client: one object for all calls to a RocketMQ cluster. Thread-safe; senders and readers made by it are not."""

from __future__ import annotations

from connect_core.rocketmq.options import ClientOptions
from connect_core.rocketmq.pulling import PullResult
from connect_core.rocketmq.queues import GroupProgress, Queue, QueueBounds
from connect_core.rocketmq.reading import QueueReader
from connect_core.rocketmq.sending import BatchSender
from connect_core.rocketmq.topics import Topics

DEFAULT_GROUP = "WAYBILL"


class Offsets:
    def begin(self, queue: Queue) -> int:
        """The oldest offset that can be read."""
        raise NotImplementedError

    def end(self, queue: Queue) -> int:
        """The offset the next message will get. May lag an acknowledged send by milliseconds: see `Client.barrier`."""
        raise NotImplementedError

    def at_or_after(self, queue: Queue, timestamp_ms: int) -> int:
        """First offset stored at or after that moment; the queue's end when there is none."""
        raise NotImplementedError

    def bounds(self, topic: str) -> dict[Queue, QueueBounds]:
        """Every queue of the topic, one call a broker. Raises `TopicMissing`."""
        raise NotImplementedError


class Groups:
    def create(self, group: str) -> None:
        """On every master, with the retry topic that lag tools look for. Harmless when it exists."""
        raise NotImplementedError

    def exists(self, group: str) -> bool:
        raise NotImplementedError

    def delete(self, group: str) -> None:
        raise NotImplementedError

    def committed(self, group: str, queue: Queue) -> int | None:
        """The group's next offset to consume; None when nothing is stored."""
        raise NotImplementedError

    def commit(self, group: str, queue: Queue, offset: int) -> bool:
        """False when the broker dropped it because an operator has reset the group and nobody has pulled since."""
        raise NotImplementedError

    def progress(self, group: str, topic: str) -> dict[Queue, GroupProgress]:
        """What lag tools show."""
        raise NotImplementedError


class Brokers:
    def masters(self) -> dict[str, str]:
        """Broker name to address of its master, over all clusters the name server knows."""
        raise NotImplementedError

    def settings(self, broker: str) -> dict[str, str]:
        raise NotImplementedError

    def change_settings(self, broker: str, settings: dict[str, str]) -> None:
        """At run time; the broker also writes them to its file."""
        raise NotImplementedError


class Client:
    topics: Topics
    offsets: Offsets
    groups: Groups
    brokers: Brokers

    def __init__(self, options: ClientOptions) -> None:
        """Connects nowhere: connections are made when they are needed."""
        raise NotImplementedError

    def pull(self, queue: Queue, offset: int, *, max_messages: int = 1024, group: str = DEFAULT_GROUP) -> PullResult:
        raise NotImplementedError

    def read(self, queue: Queue, begin: int, end: int, *, deadline: float, group: str = DEFAULT_GROUP) -> QueueReader:
        """A reader of [begin, end) that ends early at the end of the queue or at the deadline."""
        raise NotImplementedError

    def follow(self, queue: Queue, begin: int, *, deadline: float, group: str = DEFAULT_GROUP) -> QueueReader:
        """A reader from `begin` on that waits at the end of the queue for more (long poll) until the deadline."""
        raise NotImplementedError

    def sender(self, queue: Queue) -> BatchSender:
        """Raises `TopicMissing`, or `PermissionRefused` when the topic may not be written."""
        raise NotImplementedError

    def barrier(self, broker: str, *, deadline: float) -> None:
        """When it returns, everything the broker has acknowledged before is visible to `offsets.end` and to pulls."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
