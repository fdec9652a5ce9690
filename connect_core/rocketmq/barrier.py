"""A visibility barrier: an acknowledged message becomes visible a moment later, and this waits for that moment.

A broker makes messages visible in the order of its log, over all topics. So a message sent now to a topic of our own on
the same master, and read back, proves that everything acknowledged before can be seen. The topic has one queue on each
master and is created when it is missing.
"""

from __future__ import annotations

import time

from connect_core.rocketmq.errors import GroupMissing, NoAnswer, TopicMissing
from connect_core.rocketmq.groups import Groups
from connect_core.rocketmq.network import Network
from connect_core.rocketmq.pulling import DEFAULT_GROUP, PullStatus, pull
from connect_core.rocketmq.queues import Queue
from connect_core.rocketmq.sending import BatchSender
from connect_core.rocketmq.system_names import BARRIER_TOPIC
from connect_core.rocketmq.topics import TopicConfig, Topics
from connect_core.rocketmq.wire.batch_entries import encode_batch

_POLL_S = 0.001
_BODY = b"barrier"


class Barrier:
    """Part of `Client`."""

    def __init__(self, network: Network, topics: Topics, groups: Groups) -> None:
        self._network = network
        self._topics = topics
        self._groups = groups

    def wait(self, broker: str, *, deadline: float) -> None:
        """Returns when everything that this master acknowledged before the call is visible.

        Raises `NoAnswer` at the deadline, `PermissionRefused` where the topic may not be created or written.
        """
        queue = Queue(BARRIER_TOPIC, broker, 0)
        offset = self._send(queue, deadline)
        while not self._visible(queue, offset):
            if time.monotonic() >= deadline:
                raise NoAnswer(
                    "The barrier message was stored but does not become visible",
                    where=str(queue),
                    next_step="Check the broker's load and its log",
                )
            time.sleep(_POLL_S)

    def _send(self, queue: Queue, deadline: float) -> int:
        try:
            return self._send_once(queue, deadline)
        except TopicMissing:
            self._topics.ensure(TopicConfig(BARRIER_TOPIC, 1, 1), queue.broker)
        return self._send_once(queue, deadline)

    def _send_once(self, queue: Queue, deadline: float) -> int:
        sender = BatchSender(self._network, queue)
        sender.submit(encode_batch([_BODY], [b""]), deadline=deadline)
        acknowledged = sender.finish(deadline=deadline)
        assert acknowledged is not None  # one batch was outstanding
        return acknowledged.first_offset

    def _visible(self, queue: Queue, offset: int) -> bool:
        try:
            result = pull(self._network, queue, offset, group=DEFAULT_GROUP, max_messages=1)
        except GroupMissing:
            self._groups.create_on(DEFAULT_GROUP, queue.broker)
            return False
        return result.status is PullStatus.FOUND
