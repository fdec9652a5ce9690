"""Floors of a range that can write to several queues: one for each of them, and none that stays behind for ever."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from connect_core.contracts import Bounds, Floor, Range
from connect_core.records import Partition
from connect_core.rocketmq import Client, Queue
from connect_core.systems.rocketmq.options import RocketMQSinkOptions
from connect_core.systems.rocketmq.routing import pins_of
from connect_core.systems.rocketmq.sink import LOOK_BACK, RocketMQSink
from tests.unit.systems.driving import range_of
from tests.unit.systems.rocketmq.cluster import MemoryCluster, MemoryQueue

QUEUES = [Queue("out", "broker-a", number) for number in range(3)]
SOURCE = Partition("in/b/0")


class Sink(RocketMQSink):
    """Over a cluster in memory."""

    def __init__(self, cluster: MemoryCluster) -> None:
        super().__init__(RocketMQSinkOptions.model_validate({"name_servers": "a:1", "topic": "out"}))

        @contextmanager
        def client() -> Iterator[Client]:
            yield cluster.client

        self._connecting.client = client  # type: ignore[method-assign]


@pytest.fixture
def cluster() -> MemoryCluster:
    """Queues that end at 5, 70 and 20,000; the oldest messages are gone."""
    return MemoryCluster({queue: MemoryQueue([], end) for queue, end in zip(QUEUES, (5, 70, 20_000), strict=True)})


def wanted(order: str = "key") -> Range:
    return range_of(SOURCE, Bounds(0, 100, 0, 200), pins=pins_of("out", QUEUES, order))


def floor(queue: int, position: int, *, ahead: bool = False) -> Floor:
    return Floor(SOURCE.id, str(QUEUES[queue]), position, ahead)


def test_every_queue_has_a_floor_and_all_ends_are_looked_at_behind_one_barrier(cluster: MemoryCluster) -> None:
    assert Sink(cluster).floors(wanted(), ()) == (floor(0, 5), floor(1, 70), floor(2, 20_000))
    assert cluster.barriers == ["broker-a"]


def test_a_queue_that_came_to_it_begins_at_its_end_and_the_others_stand(cluster: MemoryCluster) -> None:
    known = [floor(0, 2), floor(1, 60, ahead=True)]
    assert Sink(cluster).floors(wanted(), known) == (*known, floor(2, 20_000))


def test_a_floor_far_behind_what_others_wrote_is_moved_unless_records_are_ahead(cluster: MemoryCluster) -> None:
    far, near = 20_000 - LOOK_BACK - 1, 20_000 - LOOK_BACK
    others = [floor(0, 5), floor(1, 70)]
    assert Sink(cluster).floors(wanted(), [*others, floor(2, far)])[2] == floor(2, 20_000)
    assert Sink(cluster).floors(wanted(), [*others, floor(2, near)])[2] == floor(2, near)
    assert Sink(cluster).floors(wanted(), [*others, floor(2, far, ahead=True)])[2] == floor(2, far, ahead=True)


def test_by_partition_a_floor_stands_whatever_others_wrote(cluster: MemoryCluster) -> None:
    assert Sink(cluster).floors(wanted("partition"), [floor(0, 0)]) == (floor(0, 0),)
    assert cluster.barriers == []


def test_a_restored_ledger_looks_through_the_queues_that_it_does_not_know(cluster: MemoryCluster) -> None:
    known = [floor(0, 5, ahead=True)]
    found = Sink(cluster).floors(wanted(), known, restored=True)
    assert found == (*known, floor(1, 70, ahead=True), floor(2, 20_000, ahead=True)), "from the oldest message on"
