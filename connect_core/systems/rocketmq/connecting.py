"""Clients of a cluster for the source and the sink: one for each block, or one kept in the caller's resources."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager

from connect_core.errors import ConfigError, Unreachable
from connect_core.rocketmq import Client, Queue, TopicConfig, TopicMissing
from connect_core.systems.rocketmq.clusters import ClusterOptions


class Connecting:
    """With `resources` the first block connects, and the client stays open until the caller closes them."""

    def __init__(
        self, cluster: ClusterOptions, resources: ExitStack | None, send_timeout_s: float | None = None
    ) -> None:
        self.options = cluster.client_options(send_timeout_s)
        self._resources = resources
        self._kept: Client | None = None

    @property
    def keeps(self) -> bool:
        """Whether the client of one block is that of the next."""
        return self._resources is not None

    @contextmanager
    def client(self) -> Iterator[Client]:
        if self._resources is None:
            with Client(self.options) as client:
                yield client
            return
        if self._kept is None:
            self._kept = self._resources.enter_context(Client(self.options))
        yield self._kept


def is_queue(key: str) -> bool:
    """Whether a partition or target is one of RocketMQ, by its key: a sink is told the floors of the sink before it."""
    topic, _, rest = key.partition("/")
    broker, _, number = rest.rpartition("/")
    return bool(topic and broker) and number.isdecimal()


def queue_of(key: str) -> Queue:
    """The queue that `topic/broker/queueId` names: a source partition's key, a sink's target. Raises ConfigError for
    anything else: the connector has read, or written, another system under its name."""
    topic, _, rest = key.partition("/")
    broker, _, number = rest.rpartition("/")
    if not is_queue(key):
        raise ConfigError(
            f"{key} is no queue of RocketMQ",
            next_step="Its connector had another system before. Give this document another name, or delete the "
            "connector and apply it again",
        )
    return Queue(topic, broker, int(number))


@contextmanager
def telling_who_is_away(client: Client, queues: Collection[Queue]) -> Iterator[None]:
    """Raises Unreachable instead of TopicMissing when a broker that had the topic is away: the topic may come back."""
    try:
        yield
    except TopicMissing as error:
        check_registered(client, {queue.broker for queue in queues}, error.where)
        check_route(client, error.where, {queue.broker for queue in queues if queue.topic == error.where})
        raise


def check_route(
    client: Client, topic: str, brokers: Collection[str], has: Callable[[TopicConfig], bool] = lambda config: True
) -> None:
    """For whoever misses what these brokers had of a topic in an answer of the name server. Raises Unreachable when one
    of them is unknown to it, or `has` it by its own account: a broker may register between two questions."""
    check_registered(client, brokers, topic)
    for broker in sorted(brokers):
        config = client.topics.config_on(topic, broker)
        if config is not None and has(config):
            raise Unreachable(
                "The name server did not know yet what the broker has of this topic",
                where=f"{topic} on {broker}",
                next_step="The broker has registered a moment ago, or does within 30 s; the next run continues",
            )


def with_writable(queue: Queue) -> Callable[[TopicConfig], bool]:
    """For `check_route`."""
    return lambda config: queue.queue_id in config.writable


def check_registered(client: Client, brokers: Collection[str], where: str) -> None:
    """Raises Unreachable when one of the brokers, or every one there is, is unknown to the name server.

    It forgets a broker that does not answer, and then every topic that only this broker has.
    """
    masters = client.brokers.masters()
    away = sorted(set(brokers) - masters.keys())
    if away or not masters:
        raise Unreachable(
            f"A broker is away: {', '.join(away)}" if away else "No broker is registered",
            where=where,
            next_step="Start it again; the next run continues where this one stopped",
        )
