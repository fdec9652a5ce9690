"""The client: one object for all calls to a RocketMQ cluster. Thread-safe; the senders and readers it makes are not.

Starts no thread and connects only when it has to. Deadlines are moments of `time.monotonic()`; calls without one take
at most `request_timeout_s` for each request.
"""

from __future__ import annotations

from connect_core.rocketmq.barrier import Barrier
from connect_core.rocketmq.brokers import Brokers
from connect_core.rocketmq.errors import PermissionRefused
from connect_core.rocketmq.groups import Groups
from connect_core.rocketmq.network import Network
from connect_core.rocketmq.offsets import QueueOffsets
from connect_core.rocketmq.options import ClientOptions
from connect_core.rocketmq.pulling import DEFAULT_GROUP, MAX_MESSAGES, PullResult, pull
from connect_core.rocketmq.queues import Queue
from connect_core.rocketmq.reading import UNBOUNDED, QueueReader
from connect_core.rocketmq.searching import with_id, with_key
from connect_core.rocketmq.sending import BatchSender
from connect_core.rocketmq.topics import Topics
from connect_core.rocketmq.wire.stored_message import StoredMessage


class Client:
    topics: Topics
    offsets: QueueOffsets
    groups: Groups
    brokers: Brokers

    def __init__(self, options: ClientOptions) -> None:
        """Connects nowhere: connections are made when they are needed."""
        self._network = Network(options)
        self.topics = Topics(self._network)
        self.offsets = QueueOffsets(self._network, self.topics)
        self.groups = Groups(self._network, self.topics)
        self.brokers = Brokers(self._network)
        self._barrier = Barrier(self._network, self.topics, self.groups)

    def pull(
        self, queue: Queue, offset: int, *, max_messages: int = MAX_MESSAGES, group: str = DEFAULT_GROUP
    ) -> PullResult:
        """One pull from one queue. The group has to exist where brokers do not create groups by themselves."""
        return pull(self._network, queue, offset, group=group, max_messages=max_messages)

    def read(self, queue: Queue, begin: int, end: int, *, deadline: float, group: str = DEFAULT_GROUP) -> QueueReader:
        """A reader of [begin, end) that ends early at the end of the queue or at the deadline."""
        return QueueReader(self._network, queue, begin, end, deadline=deadline, group=group)

    def follow(
        self,
        queue: Queue,
        begin: int,
        *,
        deadline: float,
        end: int = UNBOUNDED,
        idle_timeout_s: float = 1.0,
        group: str = DEFAULT_GROUP,
    ) -> QueueReader:
        """A reader from `begin` on that waits at the end of the queue for more (long poll) until the deadline. After
        `idle_timeout_s` without messages it gives an empty slice."""
        return QueueReader(
            self._network, queue, begin, end, deadline=deadline, group=group, idle_timeout_s=idle_timeout_s
        )

    def with_key(self, topic: str, key: str, *, most: int = 64) -> list[tuple[Queue, StoredMessage]]:
        """Messages with this key or id, where they stand: at most so many of each broker."""
        return with_key(self._network, self.topics, topic, key, most)

    def with_id(self, broker: str, message_id: str) -> StoredMessage | None:
        """The message that this broker has stored under the id of its answer, whatever became of its topic; None when
        it has expired."""
        return with_id(self._network, broker, message_id)

    def sender(self, queue: Queue) -> BatchSender:
        """Raises `TopicMissing`, or `PermissionRefused` when the queue may not be written."""
        if queue not in self.topics.write_queues(queue.topic):
            raise PermissionRefused(
                "The topic's permission does not allow to write this queue, or it has no such queue",
                where=str(queue),
                next_step="Check the topic's permission and its number of write queues",
            )
        return BatchSender(self._network, queue)

    def barrier(self, broker: str, *, deadline: float) -> None:
        """When it returns, everything the broker has acknowledged before is visible to `offsets.end` and to pulls."""
        self._barrier.wait(broker, deadline=deadline)

    def close(self) -> None:
        """Closes all connections; what is under way fails."""
        self._network.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
