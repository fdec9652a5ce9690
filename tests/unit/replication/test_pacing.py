"""Records a second, in virtual time: never more than set, hardly less, in small portions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from connect_core import clock
from connect_core.replication.driver.rate import MOST_SAVED_S, Budget
from connect_core.replication.worker.lane import move
from connect_core.replication.worker.pacer import PIECE_S, Pacer
from connect_core.sdk.values import Limit, Range, SourceBatch
from connect_core.work import UNPACED, Lane, Outcome, Pace
from tests.unit.replication.memory import MemorySink, MemorySource, lane_of, open_range, records
from tests.unit.replication.world import World
from tests.unit.sleeping import SleepingClock


@pytest.fixture
def time() -> Iterator[SleepingClock]:
    virtual = SleepingClock(1000.0)
    with clock.replaced_by(virtual):
        yield virtual


def batch(rows: int, begin: int = 0) -> SourceBatch:
    return SourceBatch(records({begin + n: b"x" for n in range(rows)}), begin + rows)


def limit(seconds: float) -> Limit:
    end = clock.now_ns() + int(seconds * 1e9)
    return Limit(end, end + 1_000_000_000)


@dataclass
class Passed:
    """What a pacer has let pass, and when."""

    time: SleepingClock
    at: list[tuple[float, int]] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)

    def take(self, pacer: Pacer, whole: SourceBatch, *, takes_s: float = 0.0) -> None:
        for piece in pacer.pieces(whole):
            self.at.append((self.time.seconds, len(piece.records)))
            self.offsets += piece.records.column("offset").to_pylist()
            self.time.seconds += takes_s

    def most_within(self, seconds: float) -> int:
        return max(sum(n for at, n in self.at if begin <= at < begin + seconds) for begin, _ in self.at)


@pytest.mark.parametrize("rate", [1, 7, 100, 1_000, 40_000])
def test_a_lane_moves_what_it_may_and_no_more(time: SleepingClock, rate: int) -> None:
    pacer, passed = Pacer(Pace(rate), limit(10)), Passed(time)
    while not pacer.over:
        passed.take(pacer, batch(4_000, len(passed.offsets)))
    assert passed.offsets == list(range(len(passed.offsets)))
    assert rate * 10 <= len(passed.offsets) <= rate * 10 + max(rate * PIECE_S, 1)
    assert passed.most_within(0.5) <= max(rate * 0.6, 1)


def test_the_time_that_writing_takes_counts(time: SleepingClock) -> None:
    pacer, passed = Pacer(Pace(1_000), limit(10)), Passed(time)
    while not pacer.over:
        passed.take(pacer, batch(500, len(passed.offsets)), takes_s=0.04)
    assert len(passed.offsets) >= 9_900


def test_a_standstill_is_not_made_good_by_a_burst(time: SleepingClock) -> None:
    pacer, passed = Pacer(Pace(1_000), limit(60)), Passed(time)
    passed.take(pacer, batch(100))
    time.seconds += 20
    passed.take(pacer, batch(3_000, 100))
    assert passed.most_within(1.0) <= 1_200


def test_what_did_not_pass_is_not_skipped(time: SleepingClock) -> None:
    """The range ends before the first record that had to wait too long."""
    source, sink = MemorySource([b"x"] * 1_000, batch=100), MemorySink()
    lane = replace(lane_of(open_range(0, 1_000), quantum_s=2), pace=Pace(100), deadline_ns=clock.now_ns() + 10**10)
    (outcome,) = move(lane, source, sink)
    assert outcome.receipt is not None
    assert 200 <= outcome.receipt.end <= 205
    assert [offset for offset, _ in sink.rows] == list(range(outcome.receipt.end))


def test_without_a_rate_nothing_is_held_back(time: SleepingClock) -> None:
    whole = batch(4_000)
    assert list(Pacer(UNPACED, limit(1)).pieces(whole)) == [whole]
    assert Budget(0, 2).lanes(8) == 8
    assert Budget(0, 2).pace(3) == UNPACED
    assert time.seconds == 1000


@pytest.mark.parametrize(("rate", "tasks", "lanes"), [(1_000, 1, 1), (1_000, 4, 1), (120_000, 1, 3), (900_000, 2, 4)])
def test_a_task_shares_its_part_among_as_few_lanes_as_can_carry_it(
    time: SleepingClock, rate: int, tasks: int, lanes: int
) -> None:
    budget = Budget(rate, tasks)
    assert budget.lanes(4) == lanes
    assert budget.pace(lanes).records_per_second * lanes * tasks == pytest.approx(rate)


def test_time_between_quanta_is_made_good_up_to_a_limit(time: SleepingClock) -> None:
    budget = Budget(1_000, 1)
    time.seconds += 0.2
    assert budget.pace(1).saved_s == pytest.approx(0.2)
    time.seconds += 100
    assert budget.pace(1).saved_s == pytest.approx(MOST_SAVED_S)


def with_gaps(world: World, time: SleepingClock, gap_s: float) -> None:
    """Each execution is followed by a pause, as settling and planning take time."""
    execute = world.engine.execute

    def then_a_gap(lanes: Sequence[Lane]) -> list[Outcome]:
        outcomes = execute(lanes)
        time.seconds += gap_s
        return outcomes

    world.engine.execute = then_a_gap  # type: ignore[method-assign]


def ended_when_moved(world: World, count: int) -> None:
    """Whoever looks whether the connector is to run finds it paused when all is in the target."""
    follow = world.source.follow

    def followed(*given: Any) -> Iterator[tuple[Range, SourceBatch]]:
        yield from follow(*given)
        if len(world.sink.rows) == count:
            world.ledger.set_target_state(world.connector.uid, "paused", who="tests")

    world.source.follow = followed  # type: ignore[method-assign]


@pytest.mark.parametrize("rate", [2, 50, 1_000])
@pytest.mark.parametrize("live", [False, True])
def test_a_run_keeps_to_its_rate_over_many_quanta(world: World, time: SleepingClock, rate: int, live: bool) -> None:
    count = rate * 10
    world.records_per_second = rate
    world.source.bodies = [b"x"] * count
    with_gaps(world, time, 0.01)
    if live:
        world.window_s = 1_000
        world.source.bodies, later = world.source.bodies[:1], world.source.bodies[1:]
        world.source.happenings = [lambda: world.source.bodies.extend(later)]
        ended_when_moved(world, count)
    begun = time.seconds
    world.run()
    assert len(world.sink.rows) == count
    assert rate * 0.95 <= count / (time.seconds - begun) <= rate * 1.03 + 1
