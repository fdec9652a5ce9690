"""A sink that only writes, under the real driver and ledger: whatever may be in the target twice is counted once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

from connect_core.errors import EngineFailed, OffsetGone, Unreachable
from connect_core.replication.driver.leases import LeaseTimes
from connect_core.sdk.kits.simple import SimpleSink
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.values import LIVE
from connect_core.work import ScanTask
from tests.unit.replication.memory_push_source import MemoryPushSource
from tests.unit.replication.world import DirectEngine, World


class Box(SimpleSink):
    """Takes `room` rows before its connection is lost."""

    def __init__(self) -> None:
        super().__init__("box")
        self.rows: list[int] = []
        self.room = 1 << 30

    @contextmanager
    def connect(self) -> Iterator[Box]:
        yield self

    def write(self, records: pa.RecordBatch) -> None:
        if self.room <= 0:
            raise Unreachable("The connection was lost")
        self.room -= len(records)
        self.rows += records.column("offset").to_pylist()


class BoxEngine(DirectEngine):
    def scan(self, task: ScanTask) -> dict[int, ScanResult]:
        self.sought.append(task)
        return self.sink.scan(task.scan)


@pytest.fixture
def box(world: World) -> Box:
    box = Box()
    world.sink, world.engine = box, BoxEngine(world.source, box)  # type: ignore[assignment, arg-type]
    world.times = LeaseTimes(ttl_s=20, margin_s=1, quantum_s=10, idle_timeout_s=0.02)
    return box


def dies(world: World, after: int) -> None:
    world.engine.dies_after = after
    with pytest.raises(EngineFailed):
        world.run()


def closes_at(world: World, end: int) -> None:
    """An attempt whose source fails there."""
    world.source.gone = end
    with pytest.raises(OffsetGone):
        world.run()
    world.source.gone = None
    assert world.committed() == end


def counted(world: World) -> int:
    return sum(receipt.possible_duplicates for receipt in world.receipts())


def repeated(box: Box) -> int:
    return len(box.rows) - len({*box.rows})


def goes_on(world: World) -> None:
    """Nothing stands ahead any more: what comes next is new, and counts as that."""
    before = counted(world)
    world.source.bodies += [b"more"] * 50
    world.run()
    assert counted(world) == before
    assert [floor.ahead for floor in world.ledger.floors(world.connector.uid, LIVE)] == [False]


def test_what_a_dead_attempt_wrote_behind_the_end_of_a_range_is_counted(world: World, box: Box) -> None:
    """It may have written all of its range, which ended at 200."""
    dies(world, after=100)
    closes_at(world, 30)
    closes_at(world, 60)
    world.run()
    assert (repeated(box), counted(world)) == (100, 200)
    goes_on(world)


def test_the_rest_of_a_range_is_counted_also_when_it_is_taken_over(world: World, box: Box) -> None:
    dies(world, after=100)
    closes_at(world, 30)
    dies(world, after=20)
    world.run()
    assert (repeated(box), counted(world)) == (120, 200)
    goes_on(world)


def test_a_new_revision_starts_behind_what_may_have_been_written(world: World, box: Box) -> None:
    dies(world, after=100)
    closes_at(world, 30)
    world.connector = world.ledger.apply("orders", {"name": "orders", "more": 1}, who="tests").connector
    world.source.bodies += [b"more"] * 50
    world.run()
    assert (repeated(box), counted(world)) == (100, 200)
    revisions = [(row.receipt.end, row.pins.revision) for row in world.ledger.receipts(world.connector.uid)]
    assert sorted(revisions) == [(30, 1), (200, 1), (250, 2)]


def test_a_live_range_that_was_given_an_end_is_counted_to_there(world: World, box: Box) -> None:
    def something_comes() -> None:
        world.engine.dies_after = 20
        world.source.bodies += [b"more"] * 50

    world.source.happenings.append(something_comes)
    world.window_s = 3
    with pytest.raises(EngineFailed):
        world.run()
    assert world.ledger.open_ranges(world.connector.uid, LIVE)[0].range.live
    world.window_s = 0
    closes_at(world, 210)
    world.run()
    assert (repeated(box), counted(world)) == (20, 50)
    goes_on(world)


def test_behind_a_range_that_is_full_nothing_is_counted(world: World, box: Box) -> None:
    """The dead attempt could not write more of it either."""
    world.range_records = 50
    dies(world, after=30)
    closes_at(world, 10)
    world.run()
    assert (repeated(box), counted(world)) == (30, 50)
    goes_on(world)


def test_what_the_source_has_left_of_a_lost_range_is_counted(world: World, box: Box) -> None:
    dies(world, after=100)
    world.source.oldest, world.accept_gaps = 30, True
    world.run()
    assert (repeated(box), counted(world)) == (70, 170)
    goes_on(world)


def test_a_range_of_a_source_that_pushes_is_not_opened_again(world: World, pushing: MemoryPushSource, box: Box) -> None:
    """It has no end: what comes again is counted by the next range."""
    world.engine = BoxEngine(pushing, box)  # type: ignore[arg-type]
    dies(world, after=10)
    world.run()
    assert box.rows.count(0) == 2
    assert [floor.ahead for floor in world.ledger.floors(world.connector.uid, LIVE)] == [False]
    assert len(world.engine.sought) == 1
