"""Which queues are there: what was deleted is told from what may come back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from connect_core.errors import PartitionUnreachable, Unreachable, WaybillError
from connect_core.rocketmq import (
    BrokerBusy,
    BrokerFault,
    Client,
    NoAnswer,
    NotSupported,
    PermissionRefused,
    Queue,
    QueueBounds,
    TopicConfig,
    TopicMissing,
)
from connect_core.systems.rocketmq.presence import Presence
from connect_core.systems.rocketmq.reach import Reach

ORDERS, PAY = (Queue(topic, "broker-a", 0) for topic in ("orders", "pay-1"))


@dataclass
class Names:
    """A name server's routes, and what brokers have; give `client` where a `Client` is wanted. Counts what is asked."""

    routes: set[str]
    configs: dict[tuple[str, str], TopicConfig]
    asked: Counter[str] = field(default_factory=Counter)
    silent: set[str] = field(default_factory=set)
    refused: dict[str, Exception] = field(default_factory=dict)
    """By topic, what is raised instead of an answer."""
    failing: dict[str, WaybillError] = field(default_factory=dict)
    """By topic, what broker-a says of it."""

    @property
    def client(self) -> Client:
        return cast(Client, self)

    @property
    def offsets(self) -> Any:
        return self

    @property
    def topics(self) -> Any:
        return self

    @property
    def brokers(self) -> Any:
        return self

    def masters(self) -> dict[str, str]:
        return {"broker-a": "127.0.0.1:1"}

    def reachable_bounds(
        self, topic: str, without: Collection[str] = ()
    ) -> tuple[dict[Queue, QueueBounds], dict[str, WaybillError]]:
        self.asked["bounds"] += 1
        if topic not in self.routes:
            raise TopicMissing("No topic route info", where=topic)
        if topic in self.refused:
            raise self.refused[topic]
        if topic in self.failing:
            return {}, {"broker-a": self.failing[topic]}
        seen = {Queue(topic, broker, 0): QueueBounds(0, 5, 0) for broker in ("broker-a",) if broker not in without}
        silent = {broker: NoAnswer(f"{broker} does not answer") for broker in self.silent - set(without)}
        return seen, {**silent}

    def all_names(self) -> Sequence[str]:
        self.asked["names"] += 1
        return sorted(self.routes)

    def config_on(self, topic: str, broker: str) -> TopicConfig | None:
        self.asked["config"] += 1
        return self.configs.get((topic, broker))


@pytest.fixture
def presence() -> Presence:
    """`orders` is named, others are meant by a pattern."""
    return Presence(lambda topic: topic == "orders", Reach())


def there(*queues: Queue) -> Names:
    return Names({q.topic for q in queues}, {(q.topic, q.broker): TopicConfig(q.topic, 1, 1) for q in queues})


def test_a_named_topic_has_to_be_there(presence: Presence) -> None:
    with pytest.raises(TopicMissing, match=r"orders.*Create it again, or take its name out"):
        presence.bounds(there(PAY).client, [ORDERS, PAY])


def test_a_named_topic_whose_broker_registers_between_two_questions_is_there(presence: Presence) -> None:
    """When the route is asked for the broker is away, when the brokers are asked for it is back."""
    names = there(ORDERS, PAY)
    names.routes = {"pay-1"}
    assert list(presence.bounds(names.client, [ORDERS, PAY])) == [PAY]
    assert "registered a moment ago" in str(presence.why_not(ORDERS))


def test_a_topic_that_a_pattern_means_may_go(presence: Presence) -> None:
    names = there(ORDERS)
    assert list(presence.bounds(names.client, [ORDERS, PAY, PAY])) == [ORDERS]
    assert presence.is_deleted(names.client, PAY)


def test_what_was_deleted_costs_one_question_from_then_on(presence: Presence) -> None:
    names = there(ORDERS)
    queues = [Queue(f"pay-{topic}", "broker-a", number) for topic in range(10) for number in range(4)]
    for _ in range(2):
        names.asked.clear()
        presence.bounds(names.client, [ORDERS, *queues])
        assert all(presence.is_deleted(names.client, queue) for queue in queues)
    assert names.asked == {"names": 1, "bounds": 1}


def test_a_topic_that_is_created_again_is_seen(presence: Presence) -> None:
    names = there(ORDERS)
    presence.bounds(names.client, [PAY])
    assert presence.is_deleted(names.client, PAY)
    assert list(presence.bounds(there(PAY).client, [PAY])) == [PAY]
    names = there(PAY)
    assert not presence.is_deleted(names.client, Queue("pay-1", "broker-a", 1)), (
        "it has one queue: the others are closed"
    )


def test_a_topic_that_only_the_name_server_has_forgotten_comes_back(presence: Presence) -> None:
    """A name server that was started anew learns it when the broker registers."""
    names = there(ORDERS, PAY)
    names.routes = {"orders"}
    presence.bounds(names.client, [ORDERS, PAY])
    with pytest.raises(Unreachable, match="older than the queue"):
        presence.is_deleted(names.client, PAY)


def test_a_broker_that_does_not_answer_hides_its_own_queues_only_and_is_asked_once(presence: Presence) -> None:
    names, there_too = there(ORDERS, PAY), Queue("orders", "broker-b", 0)
    names.silent = {"broker-b"}
    for _ in range(2):
        assert set(presence.bounds(names.client, [ORDERS, there_too, PAY])) == {ORDERS, PAY}
        names.silent.clear()
    assert presence.why_not(ORDERS) is None
    assert "broker-b does not answer" in str(presence.why_not(there_too))


def test_a_topic_that_the_name_server_forgot_with_its_broker_stops_no_other(presence: Presence) -> None:
    names, gone = there(PAY), Queue("orders", "broker-b", 0)
    assert set(presence.bounds(names.client, [gone, PAY])) == {PAY}
    assert "A broker is away: broker-b" in str(presence.why_not(gone))
    with pytest.raises(PartitionUnreachable, match="broker-b"):
        presence.is_deleted(names.client, gone)


@pytest.mark.parametrize("kind", [BrokerBusy, BrokerFault])
def test_a_broker_that_says_of_one_topic_that_it_cannot_answer_is_not_away(
    presence: Presence, kind: type[WaybillError]
) -> None:
    """It is asked for its other topics, and for this one at the next look."""
    names = there(ORDERS, PAY)
    names.failing = {"orders": kind("[TIMEOUT_CLEAN_QUEUE]")}
    assert list(presence.bounds(names.client, [ORDERS, PAY])) == [PAY]
    with pytest.raises(kind, match="TIMEOUT_CLEAN_QUEUE"):
        presence.is_deleted(names.client, ORDERS)
    names.failing.clear()
    assert list(presence.bounds(names.client, [ORDERS, PAY])) == [ORDERS, PAY]


@pytest.mark.parametrize("kind", [PermissionRefused, NotSupported])
@pytest.mark.parametrize("by_one_broker", [True, False])
def test_a_topic_that_is_refused_stops_no_other(
    presence: Presence, kind: type[WaybillError], by_one_broker: bool
) -> None:
    """What a pattern means may be made by anybody, and who reads the others cannot know of it."""
    names = there(ORDERS, PAY)
    for queue in (PAY, ORDERS):
        (names.failing if by_one_broker else names.refused)[queue.topic] = kind("no", next_step="Ask for the right")
        assert set(presence.bounds(names.client, [ORDERS, PAY])) == {ORDERS, PAY} - {queue}
        with pytest.raises(kind) as refused:
            presence.is_deleted(names.client, queue)
        assert refused.value.next_step.startswith("Ask for the right")
        assert ("exclude" in refused.value.next_step) == (queue == PAY), "a topic that is named is not left out so"
        names.failing.clear()
        names.refused.clear()
