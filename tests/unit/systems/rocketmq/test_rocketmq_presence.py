"""Which queues are there: what was deleted is told from what may come back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from connect_core.errors import Unreachable
from connect_core.rocketmq import Client, Queue, QueueBounds, TopicConfig, TopicMissing
from connect_core.systems.rocketmq.presence import Presence

ORDERS, PAY = (Queue(topic, "broker-a", 0) for topic in ("orders", "pay-1"))


@dataclass
class Names:
    """A name server's routes, and what brokers have; give `client` where a `Client` is wanted. Counts what is asked."""

    routes: set[str]
    configs: dict[tuple[str, str], TopicConfig]
    asked: Counter[str] = field(default_factory=Counter)

    @property
    def client(self) -> Client:
        return cast(Client, self)

    @property
    def offsets(self) -> Any:
        return self

    @property
    def topics(self) -> Any:
        return self

    def bounds(self, topic: str) -> dict[Queue, QueueBounds]:
        self.asked["bounds"] += 1
        if topic not in self.routes:
            raise TopicMissing("No topic route info", where=topic)
        return {Queue(topic, "broker-a", 0): QueueBounds(0, 5, 0)}

    def all_names(self) -> Sequence[str]:
        self.asked["names"] += 1
        return sorted(self.routes)

    def config_on(self, topic: str, broker: str) -> TopicConfig | None:
        self.asked["config"] += 1
        return self.configs.get((topic, broker))


@pytest.fixture
def presence() -> Presence:
    """`orders` is named, others are meant by a pattern."""
    return Presence(lambda topic: topic == "orders")


def there(*queues: Queue) -> Names:
    return Names({q.topic for q in queues}, {(q.topic, q.broker): TopicConfig(q.topic, 1, 1) for q in queues})


def test_a_named_topic_has_to_be_there(presence: Presence) -> None:
    with pytest.raises(TopicMissing, match=r"orders.*Create it again, or take its name out"):
        presence.bounds(there(PAY).client, ["orders", "pay-1"])


def test_a_topic_that_a_pattern_means_may_go(presence: Presence) -> None:
    names = there(ORDERS)
    assert list(presence.bounds(names.client, ["orders", "pay-1", "pay-1"])) == [ORDERS]
    assert presence.is_deleted(names.client, PAY)


def test_what_was_deleted_costs_one_question_from_then_on(presence: Presence) -> None:
    names = there(ORDERS)
    queues = [Queue(f"pay-{topic}", "broker-a", number) for topic in range(10) for number in range(4)]
    for _ in range(2):
        names.asked.clear()
        presence.bounds(names.client, ["orders", *(queue.topic for queue in queues)])
        assert all(presence.is_deleted(names.client, queue) for queue in queues)
    assert names.asked == {"names": 1, "bounds": 1}


def test_a_topic_that_is_created_again_is_seen(presence: Presence) -> None:
    names = there(ORDERS)
    presence.bounds(names.client, ["pay-1"])
    assert presence.is_deleted(names.client, PAY)
    assert list(presence.bounds(there(PAY).client, ["pay-1"])) == [PAY]
    names = there(PAY)
    assert not presence.is_deleted(names.client, Queue("pay-1", "broker-a", 1)), (
        "it has one queue: the others are closed"
    )


def test_a_topic_that_only_the_name_server_has_forgotten_comes_back(presence: Presence) -> None:
    """A name server that was started anew learns it when the broker registers."""
    names = there(ORDERS, PAY)
    names.routes = {"orders"}
    presence.bounds(names.client, ["orders", "pay-1"])
    with pytest.raises(Unreachable, match="older than the queue"):
        presence.is_deleted(names.client, PAY)
