"""A lane that follows many partitions leaves itself the time to end all that it has begun."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from connect_core.clock import now_ns
from connect_core.replication.worker.end_times import EndTimes
from connect_core.replication.worker.lane import move
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.source import Recovered
from connect_core.sdk.values import Range
from connect_core.work import Pace
from tests.unit.replication.memory import MemorySource
from tests.unit.replication.several import SeveralSink, SeveralSources, SeveralWorld
from tests.unit.replication.world import World

MANY = [Partition(f"p{number}") for number in range(10)]


@pytest.fixture
def world(world: World) -> SeveralWorld:
    sources = SeveralSources({one: MemorySource([b"a", b"b"]) for one in MANY}, set(MANY))
    return SeveralWorld(world.ledger, world.connector, world.home, sources, SeveralSink(), world.engine)  # type: ignore[arg-type]


def moved(
    world: SeveralWorld,
    end_times: EndTimes,
    idle_timeout_s: float = 0.1,
    *,
    each: int = 1000,
    pace: float = 0,
    lives_s: float = 100,
) -> list[int]:
    """The numbers of the ranges that have receipts, after a lane with so long to live. A range holds so many records;
    `pace` lets so many pass in a second."""
    lane = replace(world.lane(*MANY), idle_timeout_s=idle_timeout_s, pace=Pace(pace))
    lane = replace(lane, deadline_ns=now_ns() + int(lives_s * 1e9))
    lane = replace(lane, ranges=[replace(one, range=replace(one.range, max_records=each)) for one in lane.ranges])
    outcomes = move(lane, world.several, world.target, end_times=end_times)
    assert all(one.clean and one.failure is None for one in outcomes)
    return [one.range_id for one in outcomes if one.receipt]


def test_what_cannot_be_ended_in_time_is_left_to_the_next_quantum(world: SeveralWorld) -> None:
    assert moved(world, EndTimes(each_s=7)) == [0, 1, 2, 3]
    assert world.moved() == {one.key: 2 if one in MANY[:4] else 0 for one in MANY}


def test_who_was_left_out_comes_first_in_the_next_quantum(world: SeveralWorld) -> None:
    """Also where all of them are planned anew, in the order as before."""
    end_times = EndTimes(each_s=7)
    turns = [moved(world, end_times)]
    for _ in range(3):
        end_times.took(10, 70)  # as slow as before
        turns.append(moved(world, end_times))
    assert turns == [[0, 1, 2, 3], [4, 5, 6, 7], [0, 1, 8, 9], [2, 3, 4, 5]]


def test_where_a_range_is_full_the_others_come_first_in_the_next_quantum(world: SeveralWorld) -> None:
    """Each of them has more than its range may hold, always."""
    end_times = EndTimes()
    assert [moved(world, end_times, each=1) for _ in range(12)] == [[n % 10] for n in range(12)]


def test_where_a_rate_ends_a_quantum_the_others_come_first_in_the_next_one(world: SeveralWorld) -> None:
    end_times = EndTimes()
    turns = [moved(world, end_times, pace=0.1) for _ in range(3)]
    assert turns == [[0], [1], [2]]


class Pushing(SeveralSources):
    def acknowledge(self, wanted: Range, end: int) -> None:
        """It is kept in no broker."""

    def recovered(self, wanted: Range, found: ScanResult) -> Recovered:
        raise NotImplementedError


def test_of_a_source_that_pushes_all_is_taken(world: SeveralWorld) -> None:
    """It could not give it again."""
    world.source = Pushing(world.parts, world.several.named)  # type: ignore[assignment]
    assert moved(world, EndTimes(each_s=12)) == [*range(len(MANY))]


def test_one_partition_is_always_followed(world: SeveralWorld) -> None:
    assert moved(world, EndTimes(each_s=600)) == [0]


def test_a_quantum_leaves_three_times_what_the_lane_before_took(world: SeveralWorld) -> None:
    end_times = EndTimes()
    end_times.took(1000, 3.2)
    began = time.monotonic()
    assert len(moved(world, end_times, idle_timeout_s=60, lives_s=10)) == len(MANY)
    assert time.monotonic() - began < 4, "its quantum of five seconds was shorter"


@pytest.mark.parametrize(("partitions", "seconds"), [(100, 5.0), (1, 0.05)])
def test_what_took_long_is_forgotten_by_and_by(partitions: int, seconds: float) -> None:
    end_times = EndTimes(each_s=0.001)
    end_times.took(partitions, seconds)
    assert end_times.to_leave_s() == 3 * seconds
    assert end_times.allow(6, 1.0)
    assert not end_times.allow(7, 1.0)
    for _ in range(6):
        end_times.took(100, 0.0)
    assert end_times.to_leave_s() < seconds / 8
    assert end_times.allow(200, 1.0)


def test_a_lane_into_which_nothing_came_says_nothing() -> None:
    end_times = EndTimes(each_s=0.05)
    end_times.took(0, 7.0)
    assert end_times.to_leave_s() == 0
    assert not end_times.allow(7, 1.0)


def test_many_partitions_are_taken_in_growing_numbers() -> None:
    end_times = EndTimes(each_s=0.001)
    end_times.took(10, 0.01)
    assert end_times.allow(36, 10.0)
    assert not end_times.allow(37, 10.0)
    end_times.took(36, 0.036)
    assert end_times.allow(88, 10.0)
