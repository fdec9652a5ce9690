"""Which queues are there: a topic may be deleted, have fewer queues than it had, or its broker may be away.

Asked by the driver before each plan. What is deleted for good is told from what comes back by the topic's configuration
on the queue's own broker: a name server forgets what a broker that is away has, and routes are older than brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from connect_core.errors import PartitionUnreachable, Refused, Unreachable, WaybillError
from connect_core.rocketmq import Client, Queue, QueueBounds, TopicMissing
from connect_core.systems.rocketmq.connecting import check_route
from connect_core.systems.rocketmq.reach import Reach


class Presence:
    """Remembers what it has found deleted, so that it costs one question for all of it the next time."""

    def __init__(self, is_named: Callable[[str], bool], reach: Reach) -> None:
        """`is_named` tells topics that have to be there from those that a pattern means; `reach` learns which brokers
        do not answer."""
        self._is_named = is_named
        self._reach = reach
        self._deleted: set[tuple[str, str]] = set()
        self._hidden: dict[tuple[str, str], WaybillError] = {}
        """By topic and broker, why the last look has not seen it, though the broker may answer for other topics."""

    def bounds(self, client: Client, queues: Iterable[Queue]) -> dict[Queue, QueueBounds]:
        """Of all queues there are of the topics of these, on brokers that say so. Raises TopicMissing for a topic that
        is named and is not there, though all brokers are there that had it."""
        seen: dict[Queue, QueueBounds] = {}
        self._hidden = {}
        brokers: dict[str, set[str]] = {}
        for queue in queues:
            brokers.setdefault(queue.topic, set()).add(queue.broker)
        listed = set(client.topics.all_names()) if self._deleted else set()
        for topic in sorted(brokers):
            places = {place for place in self._deleted if place[0] == topic}
            if places and topic not in listed:
                continue
            self._deleted -= places
            seen |= self._bounds_in(client, topic, brokers[topic])
        return seen

    def _bounds_in(self, client: Client, topic: str, brokers: Collection[str]) -> dict[Queue, QueueBounds]:
        try:
            seen, failed = client.offsets.reachable_bounds(topic, self._reach.away())
        except TopicMissing as error:
            if not self._is_named(topic):
                return {}
            try:
                check_route(client, topic, brokers)
            except Unreachable as away:
                self._hide(topic, dict.fromkeys(brokers, away))
                return {}
            raise missing(error) from None
        except Refused as error:
            self._hide(topic, dict.fromkeys(brokers, error))
            return {}
        for broker, why in failed.items():
            if isinstance(why, Unreachable):
                self._reach.lost(broker, why)
            else:
                self._hide(topic, {broker: why})
        return seen

    def _hide(self, topic: str, reasons: Mapping[str, WaybillError]) -> None:
        """By broker, why nothing was seen of a topic there. It concerns no other topic."""
        for broker, why in reasons.items():
            self._hidden[topic, broker] = why if self._is_named(topic) else left_out(why)

    def why_not(self, queue: Queue) -> WaybillError | None:
        """Why nobody can look at a queue for now; None when nothing is known to be in the way."""
        return self._reach.why(queue.broker) or self._hidden.get((queue.topic, queue.broker))

    def is_deleted(self, client: Client, queue: Queue) -> bool:
        """Whether the topic of a queue that `bounds` did not see is gone from its broker. False when the topic has
        fewer queues now. Raises why it was not seen when there is another reason: what it is in may come back."""
        place = (queue.topic, queue.broker)
        if place in self._deleted:
            return True
        if (hidden := self._hidden.get(place)) is not None:
            raise PartitionUnreachable.of(hidden) if isinstance(hidden, Unreachable) else hidden
        config = client.topics.config_on(*place)
        if config is None:
            self._deleted.add(place)
            return True
        if queue.queue_id < config.read_queues:
            raise PartitionUnreachable(
                "The queue is not in the topic's route, though its broker has it: the route is older than the queue",
                where=str(queue),
                next_step="Wait until the broker has registered with the name server (30 s); the next run continues",
            )
        return False


def awaited(error: TopicMissing) -> Unreachable:
    """A topic that was named, and of which nothing was ever read: whoever fills it may not have begun."""
    return Unreachable(
        "The topic is not there yet",
        where=error.where,
        next_step="Each attempt looks again. Create it, let the connector that fills it run once, or correct the name",
    )


def left_out(error: WaybillError) -> WaybillError:
    """What else to do about a topic that a pattern means, and that is refused: others may have made it."""
    if not isinstance(error, Refused):
        return error
    return type(error)(
        error.what,
        where=error.where,
        next_step=f"{error.next_step}; or name the topic in the source's `exclude`, when it shall not be read",
    )


def missing(error: TopicMissing) -> TopicMissing:
    """What to do about a topic that was named, and was there."""
    return TopicMissing(
        error.what,
        where=error.where,
        next_step="Create it again, or take its name out of the source's topics; one that a pattern means may go",
    )
