"""Offsets of queues: what can be read, and which offset a moment in time means."""

from __future__ import annotations

from collections.abc import Collection

from connect_core.errors import WaybillError
from connect_core.rocketmq.errors import TopicMissing
from connect_core.rocketmq.network import Network, accepted, answered, command
from connect_core.rocketmq.queues import Queue, QueueBounds
from connect_core.rocketmq.topics import Topics
from connect_core.rocketmq.wire.commands import (
    OffsetByTimeRequest,
    OffsetResponse,
    QueueRequest,
    RequestCode,
    TopicRequest,
)
from connect_core.rocketmq.wire.route import decode_queue_table

_FIGURES = ("minOffset", "maxOffset", "lastUpdateTimestamp")


class QueueOffsets:
    """Part of `Client`. Brokers answer 0 for a queue that does not exist: take queues from `Topics.read_queues`."""

    def __init__(self, network: Network, topics: Topics) -> None:
        self._network = network
        self._topics = topics

    def begin(self, queue: Queue) -> int:
        """The oldest offset that can be read."""
        return self._ask(RequestCode.GET_MIN_OFFSET, queue, QueueRequest(queue.topic, queue.queue_id))

    def end(self, queue: Queue) -> int:
        """The offset the next message will get. May lag an acknowledged send by milliseconds: see `Client.barrier`."""
        return self._ask(RequestCode.GET_MAX_OFFSET, queue, QueueRequest(queue.topic, queue.queue_id))

    def at_or_after(self, queue: Queue, timestamp_ms: int) -> int:
        """First offset stored at or after that moment; the queue's end when there is none.

        Brokers before 5.1.1 answer with the nearest offset instead.
        """
        request = OffsetByTimeRequest(queue.topic, queue.queue_id, timestamp_ms)
        return self._ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, queue, request)

    def bounds(self, topic: str) -> dict[Queue, QueueBounds]:
        """Every queue that can be read, one call a broker, as of now. Raises `TopicMissing`."""
        found, failed = self.reachable_bounds(topic)
        for error in failed.values():
            raise error
        return found

    def reachable_bounds(
        self, topic: str, without: Collection[str] = ()
    ) -> tuple[dict[Queue, QueueBounds], dict[str, WaybillError]]:
        """As `bounds`, of the brokers that say it; and by name of the others why they do not: `Unreachable` is of the
        broker, anything else of this topic. The brokers `without` are not asked. Raises `TopicMissing`."""
        named = self._readable(topic, without)
        found: dict[Queue, QueueBounds] = {}
        failed: dict[str, WaybillError] = {}
        for broker in sorted({queue.broker for queue in named}):
            try:
                found |= self._bounds_on(topic, broker)
            except TopicMissing:
                raise
            except WaybillError as error:
                failed[broker] = error
        silent = {*without, *failed}
        if not {queue for queue in named if queue.broker not in silent} <= found.keys():
            self._network.forget_route(topic)  # the topic may have fewer queues since that route was fetched
        # What only the newer route names was not asked for.
        readable = [queue for queue in self._readable(topic, silent) if queue in named]
        missing = [str(queue) for queue in readable if queue not in found]
        if missing:
            raise TopicMissing("The broker does not know a queue of the route", where=", ".join(missing))
        return {queue: found[queue] for queue in readable}, failed

    def _readable(self, topic: str, without: Collection[str]) -> list[Queue]:
        return [queue for queue in self._topics.read_queues(topic) if queue.broker not in without]

    def _bounds_on(self, topic: str, broker: str) -> dict[Queue, QueueBounds]:
        reply = self._network.ask_broker(broker, command(RequestCode.GET_TOPIC_STATS_INFO, TopicRequest(topic)))
        if reply.code != 0:
            self._network.forget_route(topic)
        table = decode_queue_table(accepted(reply, f"{topic} on {broker}").body, _FIGURES)
        return {
            Queue(topic, broker, row.queue_id): QueueBounds(*(row.numbers[name] for name in _FIGURES)) for row in table
        }

    def _ask(self, code: RequestCode, queue: Queue, request: object) -> int:
        reply = self._network.ask_broker(queue.broker, command(code, request))
        return answered(OffsetResponse, reply, str(queue)).offset
