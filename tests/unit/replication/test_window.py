"""Runs that stay: a task's run in a window, against a real ledger, with source, target and engine in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from connect_core import clock
from connect_core.engine.workers import WithWorkers
from connect_core.errors import EngineFailed, OffsetGone, Retriable, Unreachable
from connect_core.observe import Step
from connect_core.replication.driver import run_workers
from connect_core.replication.driver.leases import LeaseTimes
from connect_core.replication.driver.run_workers import RunWorkers
from connect_core.replication.driver.task import TaskRun
from connect_core.sdk.values import OPEN_END
from connect_core.work import Engine, Lane, Outcome, ToStop, never
from tests.unit.replication.dying import Killed, Mortal
from tests.unit.replication.world import BODIES, MEMORY, DirectEngine, World

LONG_S = 60.0


@pytest.fixture
def world(world: World) -> World:
    """A window of a minute: a test that does not end it takes too long."""
    world.window_s = LONG_S
    world.times = LeaseTimes(ttl_s=2, margin_s=0.5, quantum_s=0.5, idle_timeout_s=0.02)
    return world


def comes(world: World, *bodies: bytes) -> Callable[[], None]:
    return lambda: world.source.bodies.extend(bodies)


def paused(world: World) -> Callable[[], None]:
    """Ends the window, like anything that somebody does to a connector."""
    return lambda: _set(world, "paused")


def _set(world: World, state: str) -> None:
    world.ledger.set_target_state(world.connector.uid, state, who="tests")  # type: ignore[arg-type]


def silence() -> None:
    """Longer than a quantum waits for more."""
    clock.sleep(0.03)


def goes_on(world: World) -> None:
    _set(world, "running")
    world.window_s = 0


def test_a_run_stays_and_follows_its_source(world: World) -> None:
    world.source.happenings = [comes(world, b"one"), comes(world, b"two", b"three"), paused(world)]
    summary = world.run()
    world.check()
    assert len(world.source.bodies) == 203
    assert [(lane.ranges[0].range.live, lane.idle_timeout_s) for lane in world.engine.lanes] == [
        (False, 0.02),
        (True, 0.02),
    ]
    assert summary.receipts[-1].end == 203


def test_what_comes_within_a_quantum_is_written_at_once(world: World) -> None:
    written: list[int] = []
    world.source.happenings = [
        comes(world, b"one"),
        comes(world, b"two"),
        lambda: written.append(len(world.sink.rows)),
        comes(world, b"three"),
        lambda: written.append(len(world.sink.rows)),
        paused(world),
    ]
    world.run()
    assert written == [202, 203]
    assert len(world.engine.lanes) == 2


def test_a_window_ends_by_itself(world: World) -> None:
    world.window_s = 1.0
    world.source.happenings = [comes(world, b"one")]
    world.run()
    world.check()


def test_an_idle_window_asks_nothing_of_the_engine_and_leaves_one_row(world: World) -> None:
    world.run_closed()
    for _ in range(3):
        world.window_s = 0.05
        assert world.run().receipts == []
    assert len(world.engine.lanes) == 1
    assert [run.summary["ranges"] for run in world.ledger.runs(world.connector.uid) if run.summary] == [0, 1]


@dataclass
class StayingEngine(DirectEngine):
    """Its workers stay. `to_stop` is what they would ask now and then."""

    started_with: list[int] = field(default_factory=list)
    to_stop: ToStop = never

    @contextmanager
    def started(self, lanes: int, to_stop: ToStop = never) -> Iterator[Engine]:
        self.started_with.append(lanes)
        self.to_stop = to_stop
        yield WithWorkers(self, self)  # type: ignore[arg-type]  it executes as workers do
        self.started_with.append(-lanes)


def test_workers_that_stay_wait_at_the_source_themselves(world: World) -> None:
    """For whole quanta, with the ranges into which nothing has come: none of them leaves anything behind."""
    engine = world.engine = StayingEngine(world.source, world.sink)
    world.times = replace(world.times, quantum_s=0.05)
    silences = [lambda: None] * 4
    world.source.happenings = [comes(world, b"one"), *silences, comes(world, b"two"), *silences, paused(world)]
    world.run()
    world.check()
    assert engine.started_with == [1, -1]
    live = [lane for lane in engine.lanes if lane.ranges[0].range.live]
    assert all(0 < lane.quantum_s <= lane.idle_timeout_s == 0.05 for lane in live[1:])
    assert world.ledger.open_ranges(world.connector.uid, "live") == []


def test_where_nothing_grows_the_driver_waits_and_workers_that_stay_are_given_what_has_come(world: World) -> None:
    """A source that cannot be followed, such as a table: its ranges have an end."""
    engine = world.engine = StayingEngine(world.source, world.sink)
    world.source.grows = False
    world.source.happenings = [comes(world, b"one"), lambda: None, comes(world, b"two"), paused(world)]
    world.run()
    world.check()
    assert world.source.happenings == []
    assert [body for _, body in world.sink.rows[-2:]] == [b"one", b"two"]
    assert not [lane for lane in engine.lanes if not lane.ranges or lane.ranges[0].range.live]


def test_workers_are_started_again_when_more_lanes_are_needed_or_their_time_is_over(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = StayingEngine(world.source, world.sink)
    with RunWorkers(engine, never) as workers:
        assert not workers.stay
        first = workers.ready(1)
        assert workers.stay
        assert workers.ready(1) is first
        assert workers.ready(2) is workers.ready(1) is not first
        monkeypatch.setattr(run_workers, "LIFE_S", 0.0)
        workers.ready(3)
        workers.ready(1)
    assert engine.started_with == [1, -1, 2, -2, 3, -3, 1, -1]
    with RunWorkers(world.engine, never) as workers:
        assert (workers.ready(2), workers.stay) == (world.engine, False)


def test_lanes_at_work_end_when_the_run_is_to_end(world: World) -> None:
    engine = world.engine = StayingEngine(world.source, world.sink)
    asked: list[bool] = []
    world.source.happenings = [
        comes(world, b"one"),
        lambda: asked.append(engine.to_stop()),
        paused(world),
        lambda: asked.append(engine.to_stop()),
    ]
    world.run()
    assert asked == [False, True]


def test_a_quantum_into_which_nothing_comes_leaves_nothing_behind(world: World) -> None:
    """The source says that there is something, and the worker sees nothing of it."""
    world.run_closed()
    world.source.happenings = [comes(world, b"late")]
    taken_back: list[bytes] = []
    execute = world.engine.execute

    def nothing_there(lanes: Sequence[Lane]) -> list[Outcome]:
        if len(world.engine.lanes) == 1:
            taken_back.append(world.source.bodies.pop())
            world.source.happenings = [paused(world)]
        return execute(lanes)

    world.engine.execute = nothing_there  # type: ignore[method-assign]
    world.run()
    assert taken_back == [b"late"]
    assert len(world.engine.lanes) == 2
    world.check()


def test_the_receipts_of_a_window_become_one_and_the_newest(world: World) -> None:
    world.source.bodies = []
    for number in range(5):
        world.source.happenings += [comes(world, b"%d" % number), silence]
    world.source.happenings.append(paused(world))
    world.run()
    assert len(world.engine.lanes) == 5
    assert [(receipt.begin, receipt.end, receipt.read) for receipt in world.receipts()] == [(0, 4, 4), (4, 5, 1)]
    world.check()


def test_a_source_that_has_something_and_gives_nothing_is_reported(world: World) -> None:
    world.run_closed()
    world.source.happenings = [comes(world, b"one")]
    world.sink.room = 0
    with pytest.raises(Retriable, match="No record moved"):
        world.run()
    assert len(world.engine.lanes) < 10


def test_a_source_that_does_not_answer_leaves_no_range_open(world: World) -> None:
    """Who turns to another server would have to finish it at this one."""

    def gone() -> None:
        raise Unreachable("The server is gone")

    world.run_closed()
    world.source.happenings = [comes(world, b"late")]
    execute = world.engine.execute

    def nothing_there(lanes: Sequence[Lane]) -> list[Outcome]:
        world.source.bodies.pop()
        outcomes = execute(lanes)
        world.source.happenings = [gone]
        return outcomes

    world.engine.execute = nothing_there  # type: ignore[method-assign]
    with pytest.raises(Unreachable, match="The server is gone"):
        world.run()
    assert not world.ledger.open_ranges(world.connector.uid, "live")
    world.check()


@pytest.mark.parametrize("happens", ["document", "deleted", "rebalanced", "halted", "paused"])
def test_a_window_ends_at_the_next_range_boundary(world: World, happens: str) -> None:
    why: list[str] = []
    uid, ledger = world.connector.uid, world.ledger
    ways: dict[str, Callable[[], object]] = {
        "document": lambda: ledger.apply("orders", {"name": "orders", "more": 1}, who="tests"),
        "deleted": lambda: ledger.delete(uid, who="tests"),
        "rebalanced": lambda: ledger.assign(uid, [MEMORY], 2),
        "halted": lambda: why.append("paused in Airflow"),
        "paused": lambda: _set(world, "paused"),
    }
    world.source.happenings = [lambda: None, comes(world, b"one"), lambda: ways[happens]() and None]
    assignment = ledger.assign(uid, [MEMORY], 1)
    context = replace(world.context(), halted=lambda: "".join(why))
    TaskRun(context, assignment, 0, world.source, world.sink).run()
    assert world.said[-1].endswith("ends at a range boundary")
    world.check()


def test_a_run_that_stays_follows_partitions_that_appear(world: World) -> None:
    """Of one that is not its own it only learns that it is there."""
    seen = []
    world.times = replace(world.times, quantum_s=0.01)
    partitions = world.source.partitions
    world.source.partitions = lambda known: [*partitions(known), *new]  # type: ignore[method-assign]
    new = [MEMORY.__class__("memory-2")]
    world.source.available_offsets = _of_both(world, seen)  # type: ignore[method-assign]
    world.source.happenings = [lambda: None, silence, silence, paused(world)]
    world.run()
    assert seen[0] == {"memory"}
    assert seen[-1] == {"memory", "memory-2"}
    assert set(world.ledger.partitions(world.connector.uid)) == {MEMORY, *new}


def _of_both(world: World, seen: list[set[str]]):  # type: ignore[no-untyped-def]
    bounds = type(world.source).available_offsets

    def looked(known):  # type: ignore[no-untyped-def]
        seen.append({partition.key for partition in known})
        found = bounds(world.source, {part: at for part, at in known.items() if part == MEMORY})
        return found | {part: replace(found[MEMORY], begin=0, end=0) for part in known if part != MEMORY}

    return looked


# ------------------------------------------------------------------------------------------- what is left open


@pytest.mark.parametrize("step", [Step.BEFORE_PLANNED, Step.PLANNED, Step.EXECUTED, Step.SETTLED, Step.CONFIRMED])
@pytest.mark.parametrize("then", ["closed", "window"])
def test_a_driver_killed_in_a_window_is_followed(world: World, step: Step, then: str) -> None:
    world.run_closed()
    world.source.happenings = [comes(world, b"one", b"two")]
    with pytest.raises(Killed):
        Mortal.run_of(world, step)
    world.source.happenings = [comes(world, b"three"), paused(world)]
    if then == "closed":
        goes_on(world)
        world.source.bodies.append(b"three")
    world.run()
    world.check()
    assert len(world.sink.rows) == 203


@pytest.mark.parametrize("done", [0, 1, 2])
def test_a_worker_killed_in_a_window_is_followed(world: World, done: int) -> None:
    world.run_closed()
    world.source.happenings = [comes(world, b"one", b"two")]
    world.engine.dies_after = done
    with pytest.raises(EngineFailed):
        world.run()
    [left] = world.ledger.open_ranges(world.connector.uid, "live")
    assert (left.range.begin, left.range.end) == (200, OPEN_END)
    goes_on(world)
    world.run()
    world.check()
    assert world.engine.searches == 1
    assert sum(receipt.deduplicated for receipt in world.receipts()) == done


def test_a_live_range_into_which_nothing_came_is_taken_back_by_the_next_attempt(world: World) -> None:
    world.run_closed()
    world.source.happenings = [comes(world, b"late")]
    with pytest.raises(Killed):
        Mortal.run_of(world, Step.PLANNED)
    world.source.bodies.pop()
    goes_on(world)
    lanes, searches = len(world.engine.lanes), world.engine.searches
    assert world.run().receipts == []
    assert len(world.engine.lanes) == lanes
    world.check()
    assert world.engine.searches == searches, "a target that has forgotten what stood there cannot tell"


def test_what_the_source_has_lost_of_a_live_range_is_settled_from_the_target(world: World) -> None:
    """Delivery rule 9 with an end that nobody knew: 205 of 210 had arrived, and the source keeps from 207 on."""
    world.run_closed()
    world.source.happenings = [comes(world, *BODIES[:10])]
    world.engine.dies_after = 5
    with pytest.raises(EngineFailed):
        world.run()
    world.source.oldest = 207
    goes_on(world)
    with pytest.raises(OffsetGone, match="expired: from 205 to 207"):
        world.run()
    world.accept_gaps = True
    world.run()
    assert [offset for offset, _ in world.sink.rows] == [*range(205), *range(207, 210)]
    assert not world.ledger.open_ranges(world.connector.uid, "live")


def test_an_attempt_that_gets_less_far_than_the_one_before_it_in_a_window(world: World) -> None:
    """Delivery rule 6: 205 of 210 had arrived; the next attempt accounts for 202, the one after it must not send 203
    again."""
    world.run_closed()
    world.source.happenings = [comes(world, *BODIES[:10])]
    world.engine.dies_after = 5
    with pytest.raises(EngineFailed):
        world.run()
    goes_on(world)
    world.sink.room, world.source.gone, world.source.batch = 0, 202, 1
    with pytest.raises(OffsetGone):
        world.run()
    assert world.committed() == 202
    world.sink.room, world.source.gone = 1 << 30, None
    world.run()
    world.check()
