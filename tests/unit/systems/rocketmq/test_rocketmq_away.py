"""A source whose topics lie on two brokers, of which one does not answer: what it says of each queue."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from connect_core.errors import Retriable, Unreachable
from connect_core.rocketmq import (
    NoAnswer,
    NoMaster,
    NotSupported,
    PermissionRefused,
    PullResult,
    PullStatus,
    Queue,
    QueueBounds,
    TopicMissing,
)
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Position
from connect_core.systems.rocketmq.options import RocketMQSourceOptions
from connect_core.systems.rocketmq.source import RocketMQSource

HERE, AWAY = Queue("orders", "broker-a", 0), Queue("orders", "broker-b", 0)


@dataclass
class TwoBrokers:
    """As much of a client as a look needs. `silent` do not answer, `forgotten` are not registered either."""

    silent: set[str] = field(default_factory=set)
    forgotten: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    refuses: set[str] = field(default_factory=set)
    """Brokers that let nobody wait at a queue, though they say where it ends."""
    dropped: set[str] = field(default_factory=set)
    """Brokers that drop what is committed."""
    committed_at: dict[Queue, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.topics = self.offsets = self.brokers = self.groups = self

    def listed_queues(self, topic: str) -> list[Queue]:
        there = [queue for queue in (HERE, AWAY) if queue.broker not in self.forgotten]
        if not there:
            raise TopicMissing("no route", where=topic)
        return there

    def masters(self) -> dict[str, str]:
        return {queue.broker: "127.0.0.1:1" for queue in (HERE, AWAY) if queue.broker not in self.forgotten}

    def reachable_bounds(self, topic: str, without: Collection[str] = ()) -> Any:
        queues = [queue for queue in self.listed_queues(topic) if queue.broker not in without]
        self.asked += [queue.broker for queue in queues]
        failed = {queue.broker: NoAnswer("no answer in time") for queue in queues if queue.broker in self.silent}
        return {queue: QueueBounds(0, 5, 0) for queue in queues if queue.broker not in failed}, failed

    def config_on(self, topic: str, broker: str) -> None:
        self.asked.append(broker)
        if broker in self.forgotten:
            raise NoMaster("No master of that name is registered", where=broker)

    def pull(self, queue: Queue, offset: int, *, max_messages: int = 32) -> PullResult:
        return PullResult(queue, offset, PullStatus.CAUGHT_UP, offset, 0, 5, [])

    def follow(self, queue: Queue, begin: int, *, deadline: float, end: int) -> Waiting:
        return Waiting(PermissionRefused("no permission", where=str(queue)) if queue.broker in self.refuses else None)

    def create(self, group: str, brokers: Collection[str]) -> None:
        pass

    def committed(self, group: str, queue: Queue) -> int | None:
        return self.committed_at.get(queue)

    def commit(self, group: str, queue: Queue, offset: int) -> bool:
        if queue.broker not in self.dropped:
            self.committed_at[queue] = offset
        return queue.broker not in self.dropped


@dataclass
class Waiting:
    """A pull that is suspended, or what the broker says instead."""

    error: Exception | None

    def arrived(self) -> None:
        if self.error:
            raise self.error


def source_on(cluster: TwoBrokers, topic: str = "orders", group: str = "") -> RocketMQSource:
    @contextmanager
    def client() -> Iterator[TwoBrokers]:
        yield cluster

    options = {"name_servers": ["a:1"], "topics": [topic]} | ({"group": group} if group else {})
    made = RocketMQSource(RocketMQSourceOptions.model_validate(options))
    vars(made._connecting)["client"] = client
    return made


POSITIONS = {Partition(str(queue)): Position(0, 3) for queue in (HERE, AWAY)}


@pytest.mark.parametrize("cluster", [TwoBrokers({"broker-b"}), TwoBrokers(forgotten={"broker-b"})])
def test_the_queues_of_a_broker_that_is_away_are_told_of_and_the_others_looked_at(cluster: TwoBrokers) -> None:
    source = source_on(cluster)
    assert set(source.partitions([*POSITIONS])) == POSITIONS.keys()
    for _ in range(2):
        seen = {partition.key: bounds for partition, bounds in source.available_offsets(POSITIONS).items()}
        assert (seen[str(HERE)].failure, seen[str(HERE)].begin, seen[str(HERE)].end) == (None, 3, 5)
        failure = seen[str(AWAY)].failure
        assert failure is not None
        assert failure.family == "PartitionUnreachable"
        assert seen[str(AWAY)].begin == seen[str(AWAY)].end == 3
    assert cluster.asked.count("broker-b") == 1, "nobody waits for it twice"


@pytest.mark.parametrize(
    "cluster", [TwoBrokers({"broker-a", "broker-b"}), TwoBrokers(forgotten={"broker-a", "broker-b"})]
)
def test_where_no_broker_answers_the_run_ends(cluster: TwoBrokers) -> None:
    source = source_on(cluster)
    assert set(source.partitions([*POSITIONS])) == POSITIONS.keys()
    with pytest.raises(Unreachable):
        source.available_offsets(POSITIONS)


def test_a_queue_at_which_nobody_may_wait_is_told_of_and_stops_no_other() -> None:
    source = source_on(TwoBrokers(refuses={"broker-b"}))
    seen = source.available_offsets(POSITIONS)
    assert not any(bounds.failure for bounds in seen.values())
    source.wait(seen, 5.0)
    for _ in range(2):
        failures = {one.key: bounds.failure for one, bounds in source.available_offsets(POSITIONS).items()}
        refused = failures.pop(str(AWAY))
        assert refused is not None
        assert (refused.kind, refused.where) == ("PermissionRefused", str(AWAY))
        assert failures == {str(HERE): None}


def test_offsets_that_a_broker_drops_are_told_and_committed_again() -> None:
    cluster = TwoBrokers(dropped={"broker-b"})
    source = source_on(cluster, group="ours")
    with pytest.raises(Retriable, match=r"reset our group.*orders/broker-b/0"):
        source.commit_offsets(POSITIONS)
    cluster.dropped.clear()
    source.commit_offsets(POSITIONS)
    assert cluster.committed_at == {HERE: 3, AWAY: 3}


class WithStaticTopic(TwoBrokers):
    """`logic` is a static topic: nobody can read it, and a pattern means it."""

    def names(self) -> list[str]:
        return ["logic", "orders"]

    def listed_queues(self, topic: str) -> list[Queue]:
        return [Queue("logic", "broker-a", 0)] if topic == "logic" else super().listed_queues(topic)

    def read_queues(self, topic: str) -> list[Queue]:
        if topic == "logic":
            raise NotSupported("Static topics cannot be read", where=topic, next_step="Use an ordinary topic")
        return super().listed_queues(topic)

    def reachable_bounds(self, topic: str, without: Collection[str] = ()) -> Any:
        self.read_queues(topic)
        return super().reachable_bounds(topic, without)


def test_a_static_topic_that_a_pattern_means_stops_no_other() -> None:
    source = source_on(WithStaticTopic(), "*")
    there = source.partitions([])
    seen = {one.key: bounds for one, bounds in source.available_offsets(dict.fromkeys(there)).items()}
    failure = seen.pop("logic/broker-a/0").failure
    assert failure is not None
    assert (failure.kind, failure.where) == ("NotSupported", "logic")
    assert "exclude" in failure.next_step
    assert {key: (bounds.begin, bounds.end, bounds.failure) for key, bounds in seen.items()} == {
        str(queue): (0, 5, None) for queue in (HERE, AWAY)
    }


class Deleting(TwoBrokers):
    """The topic is deleted right after its queues were seen."""

    def names(self) -> list[str]:
        return ["orders"]

    def all_names(self) -> list[str]:
        return []

    def config_on(self, topic: str, broker: str) -> None:
        return None

    def pull(self, queue: Queue, offset: int, *, max_messages: int = 32) -> PullResult:
        raise TopicMissing("topic[orders] not exist", where=str(queue))


READ = Position(0, 5, {"offset": 4, "id": "a", "stored": 1})


def test_a_topic_that_a_pattern_means_and_that_is_deleted_while_it_is_looked_at_has_ended() -> None:
    source = source_on(Deleting(), "ord*")
    for _ in range(2):
        (seen,) = source.available_offsets({Partition(str(HERE)): READ}).values()
        assert (seen.failure, seen.grows) == (None, False)
        assert [(gap.begin, gap.end, gap.reason) for gap in seen.gaps] == [(5, None, "deleted")]


def test_a_topic_that_is_named_and_is_deleted_while_it_is_looked_at_has_not_ended() -> None:
    """It has to be there."""
    (seen,) = source_on(Deleting(), "orders").available_offsets({Partition(str(HERE)): READ}).values()
    assert seen.failure is not None
    assert (seen.failure.kind, seen.gaps) == ("TopicMissing", ())
