"""Attempts of a backfill against a real ledger (SQLite): its own stream, its own records, beside the live run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest

from connect_core.errors import ConfigError, EngineFailed, OffsetGone
from connect_core.ledger import Backfill
from connect_core.observe import Step
from connect_core.planning.backfill_plan import BackfillPlan
from connect_core.replication.driver.backfill_task import is_done, require_resumable, run_backfill_task
from connect_core.replication.driver.context import Progress, RunContext, RunListener
from connect_core.replication.driver.run import run_task
from connect_core.replication.driver.summary import TaskSummary
from connect_core.replication.driver.task import TaskRun
from connect_core.sdk.records import Partition
from connect_core.sdk.values import LIVE, Part, Position
from tests.unit.replication.dying import Killed, Mortal
from tests.unit.replication.memory import MemorySink, MemorySource
from tests.unit.replication.world import MEMORY, DirectEngine, World

STREAM = "backfill-1"
Run = TypeVar("Run", bound=TaskRun)


@dataclass
class Again:
    """A backfill of the connector of `world` into a target of its own; `run` is one attempt."""

    world: World
    sink: MemorySink
    engine: DirectEngine
    stored: Backfill

    def context(self) -> RunContext:
        return replace(
            self.world.context(),
            engine=self.engine,
            stream=self.stored.stream,
            backfill_plan=BackfillPlan(self.stored.parts),
            holder=f"backfill {len(self.world.said)}",
        )

    def run(self, **changes: object) -> TaskSummary:
        context = replace(self.context(), **changes)  # type: ignore[arg-type]
        return run_backfill_task(context, self.driver(TaskRun, context))

    def driver(self, kind: type[Run], context: RunContext) -> Run:
        self.world.said.append("new attempt of the backfill")
        require_resumable(context)
        assignment = self.world.ledger.assign(self.world.connector.uid, [MEMORY], 1)
        return kind(context, assignment, 0, self.world.source, self.sink)

    def offsets(self) -> list[int]:
        return [offset for offset, _ in self.sink.rows]

    def state(self) -> str:
        stored = self.world.ledger.backfill(self.stored.uid, self.stored.stream)
        assert stored is not None
        return stored.state


def begin(world: World, *spans: tuple[int, int], stream: str = STREAM, alone: bool = False) -> Again:
    world.ledger.assign(world.connector.uid, [MEMORY], 1)
    parts = tuple(Part(MEMORY, 0, first, end) for first, end in spans)
    wanted = Backfill(world.connector.uid, stream, "backfill", 1, {}, parts, {}, who="ann")
    sink = MemorySink(alone=alone)
    return Again(world, sink, DirectEngine(world.source, sink), world.ledger.begin_backfill(wanted))


def test_a_backfill_moves_its_parts_and_nothing_else(world: World) -> None:
    again = begin(world, (20, 50), (120, 130))
    summary = again.run()
    assert again.offsets() == [*range(20, 50), *range(120, 130)]
    assert [(receipt.begin, receipt.end) for receipt in summary.receipts] == [(20, 50), (120, 130)]
    assert again.state() == "done"
    assert is_done(again.context())


def test_the_live_stream_knows_nothing_of_a_backfill(world: World) -> None:
    world.engine.dies_after = 30
    with pytest.raises(EngineFailed):
        world.run()
    begin(world, (0, 200)).run()
    assert len(world.sink.rows) == 30
    world.run()
    world.check()
    assert sum(receipt.deduplicated for receipt in world.receipts()) == 30


def test_a_backfill_knows_nothing_of_the_live_stream(world: World) -> None:
    """Open ranges of the live stream are not its own to finish, and live records are not its own to find."""
    world.engine.dies_after = 30
    with pytest.raises(EngineFailed):
        world.run()
    [opened] = world.ledger.open_ranges(world.connector.uid, LIVE)
    again = begin(world, (0, 40))
    again.run()
    assert again.offsets() == list(range(40))
    assert world.ledger.open_ranges(world.connector.uid, LIVE) == [opened]
    assert again.engine.searches == 0


@pytest.mark.parametrize("done", [0, 1, 29, 30])
def test_a_killed_backfill_goes_on_where_it_was(world: World, done: int) -> None:
    again = begin(world, (20, 50), (120, 130))
    again.engine.dies_after = done
    with pytest.raises(EngineFailed):
        again.run()
    assert again.state() == "running"
    again.run()
    assert again.offsets() == [*range(20, 50), *range(120, 130)]
    assert again.state() == "done"


@pytest.mark.parametrize("step", [Step.LEASED, Step.BEFORE_PLANNED, Step.PLANNED, Step.EXECUTED, Step.SETTLED])
def test_a_driver_killed_at_any_step_is_followed_at_once(world: World, step: Step) -> None:
    again = begin(world, (20, 50), (120, 130))
    driver = again.driver(Mortal, again.context())
    driver.dies_at = step
    with pytest.raises(Killed):
        run_backfill_task(again.context(), driver)
    again.run()
    assert again.offsets() == [*range(20, 50), *range(120, 130)]
    assert again.state() == "done"


def test_two_backfills_at_once_are_apart(world: World) -> None:
    first, second = begin(world, (0, 60)), begin(world, (40, 100), stream="backfill-2")
    first.engine.dies_after = 30
    with pytest.raises(EngineFailed):
        first.run()
    second.run()
    first.run()
    assert (first.offsets(), second.offsets()) == (list(range(60)), list(range(40, 100)))


@pytest.mark.parametrize("finished", [False, True])
def test_a_target_for_one_writer_is_that_of_one_stream(world: World, finished: bool) -> None:
    """Whatever is settled in it would be unsettled bytes to the other one. A backfill that is over writes no more."""
    first, second = begin(world, (0, 60), alone=True), begin(world, (40, 100), stream="backfill-2", alone=True)
    if not finished:
        first.engine.dies_after = 30
        with pytest.raises(EngineFailed):
            first.run()
        with pytest.raises(ConfigError, match=r"backfill-1 of connector orders writes this target.*backfills cancel"):
            second.run()
    else:
        first.run()
        second.run()
        assert second.offsets() == list(range(40, 100))


def test_a_backfill_into_the_target_of_the_live_stream_is_refused(world: World) -> None:
    world.sink.alone = True
    world.run()
    with pytest.raises(ConfigError, match="connector orders writes this target"):
        begin(world, (0, 60), alone=True).run()


def cancel(world: World) -> None:
    world.ledger.cancel_backfill(world.connector.uid, STREAM, who="ann")


def delete(world: World) -> None:
    world.ledger.delete(world.connector.uid, who="ann")


def share_out(world: World) -> None:
    world.ledger.assign(world.connector.uid, [MEMORY], 2)


@pytest.mark.parametrize("change", [cancel, delete, share_out])
def test_what_happens_in_the_middle_ends_it_at_a_range_boundary(world: World, change: Callable[[World], None]) -> None:
    again = begin(world, (0, 20), (40, 60), (80, 100))
    uid = world.connector.uid

    def then(progress: Progress) -> None:
        if progress.done == 20:
            change(world)

    def called_off() -> str:
        stored = world.ledger.backfill(uid, STREAM)
        return "cancelled" if stored and stored.state == "cancelled" else ""

    again.run(listener=RunListener(world.said.append, then), halted=called_off)
    assert again.offsets() == list(range(20))
    assert not world.ledger.open_ranges(uid, STREAM)
    assert again.state() == ("cancelled" if change is cancel else "running")
    if change is not share_out:
        with pytest.raises(ConfigError, match=r"backfill-1 (was cancelled|no longer exists)"):
            again.run()


def test_a_stopped_connector_stops_its_backfills(world: World) -> None:
    world.range_records = 20
    again = begin(world, (0, 40))
    world.ledger.set_target_state(world.connector.uid, "stopped", who="ann")
    again.run()
    assert (again.offsets(), again.state()) == (list(range(20)), "running"), "it ends at a range boundary"
    stopped = replace(again.context(), connector=world.ledger.connector(world.connector.name))
    with pytest.raises(ConfigError, match="is stopped"):
        run_task(stopped, 0)


def test_a_backfill_keeps_to_the_document_that_it_began_with(world: World) -> None:
    again = begin(world, (0, 20), (40, 60))

    def then(progress: Progress) -> None:
        world.ledger.apply("orders", {"name": "orders", "more": progress.done}, who="ann")

    again.run(listener=RunListener(world.said.append, then))
    assert (again.offsets(), again.state()) == ([*range(20), *range(40, 60)], "done")


def test_a_part_whose_end_the_source_has_lost_says_so(world: World) -> None:
    again = begin(world, (100, 200))
    del world.source.bodies[150:]
    with pytest.raises(OffsetGone, match="from 150 to 200"):
        again.run()
    assert again.offsets() == list(range(100, 150))
    again.run(accept_gaps=True)
    assert (again.offsets(), again.state()) == (list(range(100, 150)), "done")


def test_a_paused_connector_does_not_pause_its_backfills(world: World) -> None:
    world.ledger.set_target_state(world.connector.uid, "paused", who="ann")
    again = begin(world, (0, 20), (40, 60))
    again.run()
    assert again.offsets() == [*range(20), *range(40, 60)]


def test_records_that_expire_before_it_gets_there_stop_it_until_somebody_accepts_that(world: World) -> None:
    again = begin(world, (0, 60), (100, 110))
    world.source.oldest = 80
    with pytest.raises(OffsetGone, match=r"expired: from 0 to 60.*waybill backfills resume orders backfill-1 --accept"):
        again.run()
    assert again.state() == "failed"
    again.run(accept_gaps=True)
    assert again.offsets() == list(range(100, 110))
    [gap] = world.ledger.gaps(world.connector.uid)
    assert (gap.stream, gap.gap.begin, gap.gap.end) == (STREAM, 0, 60)
    assert again.state() == "done"


@dataclass
class Told(MemorySource):
    """Keeps what it is told to be settled."""

    told: list[int] = field(default_factory=list)

    def commit_offsets(self, positions: Mapping[Partition, Position]) -> None:
        self.told += [position.offset for position in positions.values()]


def test_only_the_live_stream_tells_the_source_what_is_settled(world: World) -> None:
    world.source = source = Told(world.source.bodies)
    begin(world, (20, 50)).run()
    assert source.told == []
    world.run()
    assert source.told == [200]


def test_progress_is_the_share_of_the_planned_parts(world: World) -> None:
    again = begin(world, (0, 20), (40, 60), (80, 100))
    told: list[tuple[int, int]] = []
    halt = iter(["", "enough"])
    listener = RunListener(world.said.append, lambda now: told.append((now.done, now.planned)))
    again.run(listener=listener, halted=lambda: next(halt))
    assert told == [(20, 60), (40, 60)]
    again.run(listener=listener)
    assert told == [(20, 60), (40, 60), (60, 60)]


def test_the_position_of_the_next_part_is_in_the_history(world: World) -> None:
    begin(world, (0, 20), (40, 60)).run()
    steps = world.ledger.offset_history(world.connector.uid)
    assert [(step.kind, step.before, step.after) for step in steps if step.kind != "settled"] == [
        ("import", Position(0, 20, {"before": 19}), Position(0, 40))
    ]
