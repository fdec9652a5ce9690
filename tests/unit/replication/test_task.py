"""A task's run against a real ledger (SQLite), with source, target and engine in this process: every place where the
driver or the worker can stop, and what the next attempt makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from connect_core.config.resolving import Resolved
from connect_core.contracts import Lane, Outcome, Receipt, Search, Side
from connect_core.errors import EngineFailed, LeaseHeld, OffsetGone, Retriable
from connect_core.found import Found
from connect_core.ledger import Connector, Ledger, upgrade
from connect_core.observe import Step
from connect_core.records import Partition
from connect_core.replication.lane import move
from connect_core.replication.leasing import Times
from connect_core.replication.locks import shared
from connect_core.replication.task import Listener, Setting, TaskRun, TaskSummary
from tests.unit.replication.memory import MemorySink, MemorySource

BODIES = [b"line %d" % n for n in range(200)]
MEMORY = Partition("memory")


class Killed(BaseException):
    """Stands for SIGKILL of the driver: nothing of it runs any more but what the kernel does."""


@dataclass
class DirectEngine:
    """Runs lanes in this process. `before` and `after` an execution may raise; `limit` rows is what a worker manages
    before it dies, without a receipt."""

    source: MemorySource
    sink: MemorySink
    dies_after: int | None = None
    lost_after: bool = False
    searches: int = 0
    lanes: list[Lane] = field(default_factory=list)
    kind: str = "direct"

    def execute(self, lanes: Sequence[Lane]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for lane in lanes:
            self.lanes.append(lane)
            with shared(lane.lock_paths):
                if self.dies_after is not None:
                    self.sink.room = self.dies_after
                    move(lane, self.source, self.sink)
                    self.sink.room, self.dies_after = 1 << 30, None
                    raise EngineFailed("a worker was killed")
                outcomes += move(lane, self.source, self.sink)
        if self.lost_after:
            self.lost_after = False
            raise EngineFailed("the answer of the engine was lost")
        return outcomes

    def find(self, search: Search) -> dict[int, Found]:
        self.searches += 1
        seen = {}
        for item in search.ranges:
            begin = min(floor.position for floor in item.floors)
            rows = [
                (offset, 0, "memory", position)
                for position, (offset, _) in enumerate(self.sink.rows)
                if position >= begin and offset >= item.range.begin
            ]
            seen[item.id] = Found().merged(rows, {"memory": len(self.sink.rows)}, True)
        return seen


@dataclass
class World:
    """One connector, its ledger, its source and its target; `run` is one attempt."""

    ledger: Ledger
    connector: Connector
    home: Path
    source: MemorySource
    sink: MemorySink
    engine: DirectEngine
    said: list[str] = field(default_factory=list)
    on_gap: str = "fail"
    tolerance: int = 0
    times: Times = Times(ttl_s=0.5, margin_s=0.1, quantum_s=0.3)  # noqa: RUF009  frozen

    def setting(self) -> Setting:
        side = Side("memory", {})
        resolved = Resolved(
            name=self.connector.name,
            uid=self.connector.uid,
            source=side,
            sink=side,
            pipeline={"transforms": []},
            tasks=1,
            range_records=1000,
            range_bytes=1 << 20,
            tolerance=self.tolerance,
            on_gap=self.on_gap,
        )
        return Setting(
            ledger=self.ledger,
            connector=self.connector,
            resolved=resolved,
            resolve=lambda revision: resolved,
            engine=self.engine,
            home=self.home,
            times=self.times,
            lanes=2,
            find_slice_s=1,
            holder=f"holder {len(self.said)}",
            listener=Listener(self.said.append, lambda progress: None),
        )

    def run(self) -> TaskSummary:
        self.said.append("new attempt")
        assignment = self.ledger.assign(self.connector.uid, [MEMORY], 1)
        return TaskRun(self.setting(), assignment, 0, self.source, self.sink).run()

    def receipts(self) -> list[Receipt]:
        return sorted((row.receipt for row in self.ledger.receipts(self.connector.uid)), key=lambda r: r.begin)

    def committed(self) -> int:
        (offset,) = self.ledger.positions(self.connector.uid, "live", [MEMORY]).values()
        assert offset is not None
        return offset.offset

    def check(self) -> None:
        """Nothing lost, nothing twice, in order; receipts join without a gap and their identities hold."""
        assert [offset for offset, _ in self.sink.rows] == list(range(len(self.source.bodies)))
        position = 0
        for settled in self.receipts():
            assert settled.begin == position
            assert settled.read == settled.filtered + settled.rejected + settled.passed
            assert settled.emitted == settled.delivered + settled.already
            assert settled.surplus == 0
            position = settled.end
        assert position == len(self.source.bodies)
        assert not self.ledger.open_ranges(self.connector.uid, "live", [MEMORY])


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    url = f"sqlite:///{tmp_path}/ledger.db"
    upgrade(url)
    with Ledger.open(url) as ledger:
        connector = ledger.apply("orders", {"name": "orders"}, who="tests").connector
        source, sink = MemorySource(list(BODIES)), MemorySink()
        yield World(ledger, connector, tmp_path / "home", source, sink, DirectEngine(source, sink))


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
    assert sum(receipt.already for receipt in world.receipts()) == done


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


class Mortal(TaskRun):
    """A driver that is killed at a step: its lock goes as with its process, its lease stays as it is."""

    dies_at: Step

    def _reached(self, step: Step) -> None:
        if step is self.dies_at:
            self.held.leases, locks = [], self.held.locks
            self.held.locks = []
            for lock in locks:
                lock.close()
            raise Killed


@pytest.mark.parametrize(
    "step", [Step.LEASED, Step.BEFORE_PLANNED, Step.PLANNED, Step.EXECUTED, Step.SETTLED, Step.CONFIRMED]
)
def test_a_driver_killed_at_any_step_is_followed_at_once(world: World, step: Step) -> None:
    assignment = world.ledger.assign(world.connector.uid, [MEMORY], 1)
    driver = Mortal(world.setting(), assignment, 0, world.source, world.sink)
    driver.dies_at = step
    with pytest.raises(Killed):
        driver.run()
    world.run()
    world.check()
    assert any("is gone" in line for line in world.said)


def test_a_run_beside_a_living_one_is_refused(world: World) -> None:
    assignment = world.ledger.assign(world.connector.uid, [MEMORY], 1)
    first = TaskRun(world.setting(), assignment, 0, world.source, world.sink)
    first.held = first._acquire()
    alive = iter(range(1000))

    def renewing(line: str) -> None:
        next(alive)
        first.held.renew()

    second = replace(world.setting(), holder="second", listener=Listener(renewing, lambda progress: None))
    with pytest.raises(LeaseHeld):
        TaskRun(second, assignment, 0, world.source, world.sink).run()
    first.held.release()
    world.run()
    world.check()


def test_a_silent_holder_whose_lock_proves_nothing_is_waited_for(world: World) -> None:
    """Its lock is held (it may be stopped, not dead): only a whole time to live without a sign ends it."""
    assignment = world.ledger.assign(world.connector.uid, [MEMORY], 1)
    stopped = TaskRun(world.setting(), assignment, 0, world.source, world.sink)
    stopped.held = stopped._acquire()
    world.run()
    world.check()
    assert any("gave no sign of life" in line for line in world.said)
    stopped.held.release()  # it wakes up: it is fenced and changes nothing


def test_an_attempt_that_gets_less_far_than_the_one_before(world: World) -> None:
    """Rule 6: attempt 1 delivers 150 and dies, attempt 2 finds them but ends its range at 60, attempt 3 must not send
    60 to 150 again."""
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
    with pytest.raises(Retriable, match="no record moved"):
        world.run()


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


def test_paused_in_mid_run(world: World) -> None:
    execute = world.engine.execute

    def pause(lanes: Sequence[Lane]) -> list[Outcome]:
        world.ledger.set_target_state(world.connector.uid, "paused", who="tests")
        return execute(lanes)

    world.engine.execute = pause  # type: ignore[method-assign]
    world.sink.room = 50
    world.run()
    assert world.committed() == 50
