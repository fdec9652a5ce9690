"""A task's run against a real ledger (SQLite), with source, target and engine in this process: every place where the
driver or the worker can stop, and what the next attempt makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from connect_core.clock import now_ns
from connect_core.errors import ConfigError, EngineFailed, LeaseHeld, OffsetGone, Retriable, TooManyRejects
from connect_core.ledger import target_lease_id
from connect_core.observe import Step
from connect_core.replication.driver.context import Progress, RunListener
from connect_core.replication.driver.task import TaskRun
from connect_core.sdk.values import Bounds, Gap, Limit, Position, Range, SourceBatch
from connect_core.work import Lane, Outcome, ToStop, never
from tests.unit.replication.dying import Killed, Mortal
from tests.unit.replication.memory import MemorySource
from tests.unit.replication.world import BODIES, MEMORY, DirectEngine, World


def test_a_run_moves_what_is_there_and_ends(world: World) -> None:
    summary = world.run()
    world.check()
    assert summary.receipts[-1].end == 200
    assert world.engine.searches == 0


def test_a_run_with_nothing_to_do_asks_nothing_of_the_engine(world: World) -> None:
    world.run()
    lanes = len(world.engine.lanes)
    assert world.run().receipts == []
    assert len(world.engine.lanes) == lanes


def test_what_is_appended_is_moved_by_the_next_run(world: World) -> None:
    world.run()
    world.source.bodies += [b"more"] * 10
    world.run()
    world.check()


@pytest.mark.parametrize("done", [0, 1, 60, 137, 200])
def test_a_killed_worker_is_finished_by_the_next_attempt(world: World, done: int) -> None:
    world.engine.dies_after = done
    with pytest.raises(EngineFailed):
        world.run()
    world.run()
    world.check()
    assert world.engine.searches == 1
    assert sum(receipt.deduplicated for receipt in world.receipts()) == done


def test_the_next_attempt_says_where_it_goes_on_and_how_much_is_there(world: World) -> None:
    world.engine.dies_after = 60
    with pytest.raises(EngineFailed):
        world.run()
    told: list[Progress] = []
    context = replace(world.context(), listener=RunListener(world.said.append, told.append))
    assignment = world.ledger.assign(world.connector.uid, [MEMORY], 1)
    TaskRun(context, assignment, 0, world.source, world.sink).run()
    assert f"{MEMORY.key}: resuming at 0; 60 records already in the target" in world.said
    assert [(now.done, now.planned, now.records) for now in told] == [(200, 200, 200)]


def test_killed_twice_at_different_places(world: World) -> None:
    for done in (100, 20):
        world.engine.dies_after = done
        with pytest.raises(EngineFailed):
            world.run()
    world.run()
    world.check()


def test_an_answer_of_the_engine_that_was_lost(world: World) -> None:
    world.engine.lost_after = True
    with pytest.raises(EngineFailed):
        world.run()
    assert len(world.sink.rows) == 200
    world.run()
    world.check()


@pytest.mark.parametrize(
    "step", [Step.LEASED, Step.BEFORE_PLANNED, Step.PLANNED, Step.EXECUTED, Step.SETTLED, Step.CONFIRMED]
)
def test_a_driver_killed_at_any_step_is_followed_at_once(world: World, step: Step) -> None:
    with pytest.raises(Killed):
        Mortal.run_of(world, step)
    world.run()
    world.check()
    assert any("is gone" in line for line in world.said)


def test_a_run_beside_a_living_one_is_refused(world: World) -> None:
    assignment = world.ledger.assign(world.connector.uid, [MEMORY], 1)
    first = TaskRun(world.context(), assignment, 0, world.source, world.sink)
    first.held = first._acquire()
    alive = iter(range(1000))

    def renewing(line: str) -> None:
        next(alive)
        first.held.renew()

    second = replace(world.context(), holder="second", listener=RunListener(renewing, lambda progress: None))
    with pytest.raises(LeaseHeld):
        TaskRun(second, assignment, 0, world.source, world.sink).run()
    first.held.release()
    world.run()
    world.check()


def test_a_target_for_one_writer_is_that_of_the_connector_that_wrote_it(world: World) -> None:
    """Delivery rule 16, also when the other one is not at work: each would take the other's records for its own."""
    world.sink.alone = True
    world.run()
    other = replace(world, connector=world.ledger.apply("other", {"name": "other"}, who="tests").connector)
    with pytest.raises(ConfigError, match="connector orders writes this target"):
        other.run()
    world.source.bodies.append(b"more")
    world.run()
    world.check()
    world.ledger.delete(world.connector.uid, who="tests")
    other.run()


def test_a_silent_holder_whose_lock_proves_nothing_is_waited_for(world: World) -> None:
    """Its lock is held (it may be stopped, not dead): only a whole time to live without a sign ends it."""
    assignment = world.ledger.assign(world.connector.uid, [MEMORY], 1)
    stopped = TaskRun(world.context(), assignment, 0, world.source, world.sink)
    stopped.held = stopped._acquire()
    world.run()
    world.check()
    assert any("gave no sign of life" in line for line in world.said)
    stopped.held.release()  # it wakes up: it is fenced and changes nothing


def test_an_attempt_that_gets_less_far_than_the_one_before(world: World) -> None:
    """Delivery rule 6: attempt 1 delivers 150 and dies, attempt 2 finds them but ends its range at 60, attempt 3 must
    not send 60 to 150 again."""
    world.engine.dies_after = 150
    with pytest.raises(EngineFailed):
        world.run()
    world.sink.room = 0  # attempt 2 can write nothing: it only accounts for what is there, up to the first new record
    world.source.gone = 70
    with pytest.raises(OffsetGone):
        world.run()
    assert world.committed() == 70
    world.sink.room, world.source.gone = 1 << 30, None
    world.run()
    world.check()


def test_a_target_that_takes_nothing_is_reported(world: World) -> None:
    world.sink.room = 0
    with pytest.raises(Retriable, match="No record moved"):
        world.run()


@dataclass
class FarBack(MemorySource):
    """Each read comes one step nearer to its range, and gives nothing before it is there."""

    steps: list[int] = field(default_factory=list)

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        self.came = self.steps.pop(0) if self.steps else 0
        if not self.came:
            yield from super().read(wanted, limit)

    def reached(self, wanted: Range) -> int:
        return self.came


@pytest.mark.parametrize(("steps", "fine"), [([10, 20, 30, 40], True), ([10, 20, 20, 40], False)])
def test_a_run_goes_on_as_long_as_its_worker_comes_nearer(world: World, steps: list[int], fine: bool) -> None:
    """To a place that it can only reach by reading all before it (`sdk.source.Seeking`)."""
    world.source = FarBack(world.source.bodies, steps=steps)
    world.engine.source = world.source
    if fine:
        world.run()
        world.check()
        return
    with pytest.raises(Retriable, match="No record moved"):
        world.run()


def test_lanes_that_are_told_to_stop_before_they_have_moved_a_record_end_the_run(world: World) -> None:
    execute = world.engine.execute

    def paused_meanwhile(lanes: Sequence[Lane]) -> list[Outcome]:
        world.ledger.set_target_state(world.connector.uid, "paused", who="tests")
        return execute(lanes)

    world.engine.execute = paused_meanwhile  # type: ignore[method-assign]
    world.sink.room = 0
    assert world.run().receipts == []
    world.sink.room = 1 << 30
    world.ledger.set_target_state(world.connector.uid, "running", who="tests")
    world.run()
    world.check()


def test_a_lost_answer_to_a_send_is_looked_for(world: World) -> None:
    world.sink.broken = True
    with pytest.raises(Retriable):
        world.run()
    world.sink.broken = False
    world.run()
    world.check()
    assert world.engine.searches == 1


def test_rejects_become_dead_letters_with_the_offset(world: World) -> None:
    world.tolerance = -1
    world.sink.hated = frozenset({BODIES[7]})
    world.run()
    (letter,) = world.ledger.dead_letters(world.connector.uid, limit=10)
    assert (letter.offset, letter.original, letter.stage) == (7, BODIES[7], "encode")


def test_a_range_that_begins_with_a_reject_is_finished_once_the_document_tolerates_it(world: World) -> None:
    world.sink.hated = frozenset({BODIES[0]})
    with pytest.raises(TooManyRejects):
        world.run()
    strict = world.context().resolved
    world.connector = world.ledger.apply("orders", {"name": "orders", "tolerance": "all"}, who="tests").connector
    world.tolerance = -1
    assignment = world.ledger.assign(world.connector.uid, [MEMORY], 1)
    context = replace(world.context(), resolve=lambda revision: strict)
    TaskRun(context, assignment, 0, world.source, world.sink).run()
    assert [letter.offset for letter in world.ledger.dead_letters(world.connector.uid)] == [0]
    assert world.committed() == 200


def test_what_a_source_has_seen_where_a_partition_stands_is_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later look cannot see it."""
    world.run()
    seen = Bounds(0, 200, 0, 200, {"left": True}, chosen=True)
    monkeypatch.setattr(world.source, "available_offsets", lambda known: dict.fromkeys(known, seen))
    world.run()
    (position,) = world.ledger.positions(world.connector.uid, "live", [MEMORY]).values()
    assert position == Position(0, 200, {"left": True})


def test_a_partition_that_begins_anew_behind_what_was_read_is_kept_there(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.run()
    seen = Bounds(1, 0, 0, 0, {"new": True}, chosen=True)
    monkeypatch.setattr(world.source, "available_offsets", lambda known: dict.fromkeys(known, seen))
    world.run()
    (position,) = world.ledger.positions(world.connector.uid, "live", [MEMORY]).values()
    assert position == Position(1, 0, {"new": True})


def test_what_begins_behind_a_loss_is_not_kept_before_that_is_settled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next look would see no loss."""
    world.run()
    seen = Bounds(1, 0, 0, 0, {"new": True}, (Gap(0, 200, None, "replaced"),), chosen=True)
    monkeypatch.setattr(world.source, "available_offsets", lambda known: dict.fromkeys(known, seen))
    with pytest.raises(OffsetGone):
        world.run()
    assert world.committed() == 200


def _paused(world: World) -> None:
    world.ledger.set_target_state(world.connector.uid, "paused", who="tests")


def _shared_out_anew(world: World) -> None:
    world.ledger.assign(world.connector.uid, [MEMORY], 2)


def _deleted(world: World) -> None:
    world.ledger.delete(world.connector.uid, who="tests")


def _document_changed(world: World) -> None:
    world.ledger.apply("orders", {"name": "orders", "more": 1}, who="tests")


@pytest.mark.parametrize(
    ("happens", "ended_by"),
    [(_paused, "paused"), (_shared_out_anew, ""), (_deleted, "deleted"), (_document_changed, "")],
)
def test_what_happens_to_a_connector_in_mid_run_ends_the_run_at_a_range_boundary(
    world: World, happens: Callable[[World], None], ended_by: str
) -> None:
    execute = world.engine.execute

    def happening(lanes: Sequence[Lane]) -> list[Outcome]:
        happens(world)
        return execute(lanes)

    world.engine.execute = happening  # type: ignore[method-assign]
    world.sink.room = 50
    assert world.run().ended_by == ended_by
    assert world.committed() == 50


def test_who_started_a_run_can_end_it_at_a_range_boundary(world: World) -> None:
    world.sink.room = 50
    assignment = world.ledger.assign(world.connector.uid, [MEMORY], 1)
    context = replace(world.context(), halted=lambda: "paused in Airflow")
    TaskRun(context, assignment, 0, world.source, world.sink).run()
    assert world.committed() == 50
    assert world.said[-1] == "paused in Airflow: ends at a range boundary"


def test_a_range_that_is_finished_in_a_former_target_has_that_for_itself(world: World) -> None:
    """Tasks shared out anew may each have a range to finish in the one file of before."""
    world.sink.alone = True
    world.engine.dies_after = 30
    with pytest.raises(EngineFailed):
        world.run()
    world.sink.name = "new"
    lease_id = target_lease_id("memory")
    other = world.ledger.take(lease_id, world.ledger.lease(lease_id), "another task")
    moved = len(world.sink.rows)
    context = replace(
        world.context(),
        listener=RunListener(
            lambda line: world.ledger.renew(other, boot_id="", deadline_ns=0, ttl_s=1), lambda progress: None
        ),
    )
    assignment = world.ledger.assign(world.connector.uid, [MEMORY], 1)
    with pytest.raises(LeaseHeld) as told:
        TaskRun(context, assignment, 0, world.source, world.sink).run()
    assert told.value.where == lease_id
    assert len(world.sink.rows) == moved
    world.ledger.release(other)
    world.run()
    world.check()


class SlowEngine(DirectEngine):
    """Its processes take long to start."""

    ready_ns = 0

    @contextmanager
    def started(self, lanes: int, to_stop: ToStop = never) -> Iterator[SlowEngine]:
        self.ready_ns = now_ns()
        yield self


def test_the_time_of_a_lane_begins_when_its_process_is_there(world: World) -> None:
    engine = world.engine = SlowEngine(world.source, world.sink)
    world.run()
    [lane] = engine.lanes
    assert lane.deadline_ns >= engine.ready_ns + int((world.times.ttl_s - world.times.margin_s) * 1e9)
    world.check()
