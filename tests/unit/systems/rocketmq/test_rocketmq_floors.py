"""Floors of a range that can write to several queues: one for each of them, and none that stays behind for ever."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from connect_core import clock
from connect_core.rocketmq import Client, Queue
from connect_core.sdk.records import Partition
from connect_core.sdk.sink import Scan
from connect_core.sdk.testing.driving import range_of
from connect_core.sdk.values import Attempt, Bounds, Floor, OpenRange, Range
from connect_core.systems.rocketmq.floors import KNOWN_S, LOOK_BACK
from connect_core.systems.rocketmq.options import RocketMQSinkOptions
from connect_core.systems.rocketmq.routing import pins_of
from connect_core.systems.rocketmq.sink import RocketMQSink
from tests.unit.systems.rocketmq.cluster import MemoryCluster, MemoryQueue
from tests.unit.systems.rocketmq.test_rocketmq_decoding import stored

QUEUES = [Queue("out", "broker-a", number) for number in range(3)]
SOURCE = Partition("in/b/0")


class Sink(RocketMQSink):
    """Over a cluster in memory."""

    def __init__(self, cluster: MemoryCluster, on_replaced: str = "fail") -> None:
        options = {"name_servers": "a:1", "topic": "out", "on_replaced": on_replaced}
        super().__init__(RocketMQSinkOptions.model_validate(options))

        @contextmanager
        def client() -> Iterator[Client]:
            yield cluster.client

        self._connecting.client = client  # type: ignore[method-assign]


class Whole(MemoryQueue):
    """So many messages of others, of which none was deleted."""

    def __init__(self, end: int) -> None:
        super().__init__([])
        self._end = end

    @property
    def end(self) -> int:
        return self._end


@pytest.fixture
def cluster() -> MemoryCluster:
    """Queues that end at 5, 70 and 20,000; nothing was deleted."""
    return MemoryCluster({queue: Whole(end) for queue, end in zip(QUEUES, (5, 70, 20_000), strict=True)})


@pytest.fixture
def emptied() -> MemoryCluster:
    """Queues that end at 5, 70 and 20,000; all was deleted."""
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
    assert Sink(cluster).floors(wanted(), [*others, floor(2, far)])[2].position == 20_000
    assert Sink(cluster).floors(wanted(), [*others, floor(2, near)])[2] == floor(2, near)
    assert Sink(cluster).floors(wanted(), [*others, floor(2, far, ahead=True)])[2] == floor(2, far, ahead=True)


@pytest.mark.parametrize("order", ["partition", "key"])
def test_a_floor_that_stands_near_the_end_stays_without_a_barrier(cluster: MemoryCluster, order: str) -> None:
    known = [floor(0, 0), floor(1, 70), floor(2, 20_000)]
    assert Sink(cluster).floors(wanted(order), known)[0] == floor(0, 0)
    assert cluster.barriers == []


@pytest.mark.parametrize(
    ("stands", "begins", "ends", "moved_to"),
    [
        (10, 50, 90, 90),  # retention has passed it
        (50, 50, 90, 90),  # it is about to
        (70, 50, 90, 90),
        (71, 50, 90, 71),
        (90, 50, 90, 90),
        (10, 0, 90, 10),  # nothing was deleted yet
        (10, 90, 90, 90),
    ],
)
def test_a_floor_that_retention_passes_soon_is_moved_to_the_end(
    stands: int, begins: int, ends: int, moved_to: int
) -> None:
    """Else nobody could say, when the run is killed, what of its range is there: no run would ever get on."""
    queue = MemoryQueue([stored(n, b"of others") for n in range(begins, ends)], begins)
    there = Sink(MemoryCluster({QUEUES[0]: queue}))
    item = range_of(SOURCE, Bounds(0, 100, 0, 200), pins=pins_of("out", QUEUES[:1], "partition"))
    [moved] = there.floors(item, [floor(0, stands)])
    assert (moved.position, moved.ahead) == (moved_to, False)
    assert there.floors(item, [floor(0, stands, ahead=True)]) == (floor(0, stands, ahead=True),)
    find = OpenRange(1, item, (floor(0, moved_to),), inherited=True)
    assert there.scan(Scan(Attempt("uid", 1), (find,), 5.0))[1].complete


def test_a_floor_is_moved_also_when_retention_comes_near_while_a_window_is_open(
    monkeypatch: pytest.MonkeyPatch, cluster: MemoryCluster
) -> None:
    sink, known = Sink(cluster), [floor(number, 5) for number in range(3)]
    assert sink.floors(wanted(), known)[1] == floor(1, 5)
    cluster.queues[QUEUES[1]].begin = 60
    now = clock.monotonic() + KNOWN_S
    monkeypatch.setattr(clock, "monotonic", lambda: now)
    assert sink.floors(wanted(), known)[1].position == 70


def test_of_what_is_given_up_nobody_looks_for_what_retention_has_deleted(emptied: MemoryCluster) -> None:
    """A queue that is not there, or another system's target, stays as it is."""
    gone = Floor(SOURCE.id, "out/broker-z/0", 3, ahead=True)
    file = Floor(SOURCE.id, "/data/out.txt", 3)
    known = [floor(0, 2), floor(1, 80, ahead=True), gone, file]
    assert Sink(emptied).within(known) == [floor(0, 5), floor(1, 80, ahead=True), gone, file]


def test_a_restored_ledger_looks_through_the_queues_that_it_does_not_know(emptied: MemoryCluster) -> None:
    known = [floor(0, 5, ahead=True)]
    found = Sink(emptied).floors(wanted(), known, restored=True)
    assert found == (*known, floor(1, 70, ahead=True), floor(2, 20_000, ahead=True)), "from the oldest message on"
