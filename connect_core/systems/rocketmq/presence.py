"""Which queues are there: a topic may be deleted, have fewer queues than it had, or its broker may be away.

Asked by the driver before each plan. What is deleted for good is told from what comes back by the topic's configuration
on the queue's own broker: a name server forgets what a broker that is away has, and routes are older than brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from connect_core.errors import Unreachable
from connect_core.rocketmq import Client, Queue, QueueBounds, TopicMissing


class Presence:
    """Remembers what it has found deleted, so that it costs one question for all of it the next time."""

    def __init__(self, is_named: Callable[[str], bool]) -> None:
        """`is_named` tells topics that have to be there from those that a pattern means."""
        self._is_named = is_named
        self._deleted: set[tuple[str, str]] = set()

    def bounds(self, client: Client, topics: Iterable[str]) -> dict[Queue, QueueBounds]:
        """Of all queues there are. Raises TopicMissing for a topic that is named and is not there."""
        seen: dict[Queue, QueueBounds] = {}
        listed = set(client.topics.all_names()) if self._deleted else set()
        for topic in sorted(set(topics)):
            places = {place for place in self._deleted if place[0] == topic}
            if places and topic not in listed:
                continue
            self._deleted -= places
            seen |= self._bounds_in(client, topic)
        return seen

    def _bounds_in(self, client: Client, topic: str) -> dict[Queue, QueueBounds]:
        try:
            return client.offsets.bounds(topic)
        except TopicMissing as error:
            if not self._is_named(topic):
                return {}
            raise missing(error) from None

    def is_deleted(self, client: Client, queue: Queue) -> bool:
        """Whether the topic of a queue that `bounds` did not see is gone from its broker. False when the topic has
        fewer queues now. Raises Unreachable when there is another reason: what it is in may come back."""
        place = (queue.topic, queue.broker)
        if place in self._deleted:
            return True
        config = client.topics.config_on(*place)
        if config is None:
            self._deleted.add(place)
            return True
        if queue.queue_id < config.read_queues:
            raise Unreachable(
                "The queue is not in the topic's route, though its broker has it: the route is older than the queue",
                where=str(queue),
                next_step="Wait until the broker has registered with the name server (30 s); the next run goes on",
            )
        return False


def awaited(error: TopicMissing) -> Unreachable:
    """A topic that was named, and of which nothing was ever read: whoever fills it may not have begun."""
    return Unreachable(
        "The topic is not there yet",
        where=error.where,
        next_step="Waits for it: each attempt looks again. Make it, let the connector that fills it run once, or "
        "correct the name",
    )


def missing(error: TopicMissing) -> TopicMissing:
    """What to do about a topic that was named, and was there."""
    return TopicMissing(
        error.what,
        where=error.where,
        next_step="Create it again, or take its name out of the source's topics; one that a pattern means may go",
    )
