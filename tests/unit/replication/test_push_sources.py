"""A source that pushes: when it is acknowledged, what an attempt leaves, and how a run without a window ends."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from connect_core import clock
from connect_core.errors import ConfigError, EngineFailed, OffsetGone, TooManyRejects
from connect_core.replication.driver.lost_ranges import closed_from_target
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import Prefix, ScanResult
from connect_core.sdk.testing.driving import range_of
from connect_core.sdk.testing.memory import Index, MemoryIndex
from connect_core.sdk.values import OPEN_END, Bounds, Gap, Limit, OpenRange
from tests.unit.replication.memory import MemorySink
from tests.unit.replication.memory_push_source import MemoryPushSource
from tests.unit.replication.world import DirectEngine, World


def test_a_batch_is_acknowledged_when_it_is_durable(world: World, pushing: MemoryPushSource) -> None:
    summary = world.run()
    world.check()
    assert pushing.told == [10, 20, 25]
    assert summary.receipts[-1].end == 25
    assert all(item.range.end == OPEN_END for lane in world.engine.lanes for item in lane.ranges)


def test_a_run_without_a_window_ends_when_nothing_comes_and_leaves_nothing_open(
    world: World, pushing: MemoryPushSource
) -> None:
    pushing.bodies.clear()
    assert world.run().receipts == []
    assert world.ledger.open_ranges(world.connector.uid, "live") == []


def test_who_takes_longer_to_connect_than_it_waits_in_silence_moves_all_the_same(
    world: World, pushing: MemoryPushSource
) -> None:
    pushing.connecting_s = 10 * world.times.idle_timeout_s
    world.run()
    assert world.committed() == 25
    world.check()


def test_in_a_window_what_comes_is_moved_and_silence_is_no_fault(world: World, pushing: MemoryPushSource) -> None:
    """A minute's window: it ends because somebody pauses the connector, however busy the machine is."""
    world.window_s = 60
    world.times = replace(world.times, quantum_s=0.1)
    pushing.happenings = [
        *[lambda: clock.sleep(0.03)] * 8,
        lambda: pushing.bodies.append(b"late"),
        lambda: world.ledger.set_target_state(world.connector.uid, "paused", who="tests"),
    ]
    world.run()
    world.check()
    assert pushing.acknowledged == 26


def test_a_window_that_is_over_before_it_begins_moves_what_waits(world: World, pushing: MemoryPushSource) -> None:
    """On a busy machine a start may take longer than a short window."""
    world.window_s = 0.0001
    world.run()
    assert world.committed() == 25
    world.check()


class PunctualSink(MemorySink):
    """Takes nothing when the quantum is over."""

    def write(self, batch: pa.RecordBatch, limit: Limit) -> int:
        return super().write(batch, limit) if limit.quantum_left_s() > 0 else 0


def test_what_comes_when_the_quantum_ends_is_written_all_the_same(world: World, pushing: MemoryPushSource) -> None:
    """Of MQTT's QoS 0 nothing would come again."""
    world.sink = pushing.sink = PunctualSink()
    world.engine = DirectEngine(pushing, world.sink)
    world.times = replace(world.times, quantum_s=0.5)
    pushing.holds_back = 10
    world.run()
    world.check()
    assert pushing.given == 25, "none of them twice"


def test_into_a_sink_that_cannot_tell_its_records_nothing_is_acknowledged_before_it_is_settled(
    world: World, pushing: MemoryPushSource
) -> None:
    world.sink.scan_tells_records = False
    world.run()
    world.check()
    assert ({*pushing.told}, pushing.acknowledged) == ({0}, 25)
    pushing.told, pushing.bodies = [], [*pushing.bodies, b"more"]
    world.run()
    world.check()
    assert ({*pushing.told}, pushing.acknowledged) == ({25}, 26)


class SlowSink(MemorySink):
    """It takes nothing for a while: so many quanta."""

    quanta = 2

    def write(self, batch: pa.RecordBatch, limit: Limit) -> int:
        self.quanta -= 1
        return super().write(batch, limit) if self.quanta < 0 else 0


def test_where_nothing_is_taken_nothing_is_acknowledged(world: World, pushing: MemoryPushSource) -> None:
    """Not even what was settled before: nothing that is settled would tell of it."""
    world.sink = pushing.sink = SlowSink()
    world.engine = DirectEngine(pushing, world.sink)
    for _ in range(SlowSink.quanta):
        world.run()
        assert (pushing.told, world.receipts()) == ([], [])
    world.run()
    world.check()
    assert pushing.told == [10, 20, 25]


def test_what_a_dead_worker_wrote_is_settled_from_the_target(world: World, pushing: MemoryPushSource) -> None:
    world.engine.dies_after = 13
    with pytest.raises(EngineFailed):
        world.run()
    assert (pushing.acknowledged, world.receipts()) == (13, [])
    world.run()
    assert [body for _, body in world.sink.rows] == pushing.bodies
    first, second = world.receipts()
    assert (first.begin, first.end, first.reconstructed, first.deduplicated, first.possible_duplicates) == (
        0,
        13,
        True,
        13,
        2,
    )
    assert (second.begin, second.end, second.read) == (13, 25, 12)
    assert first.evidence == {"session": True, "left": 13}


def test_an_attempt_that_wrote_nothing_leaves_evidence_all_the_same(world: World, pushing: MemoryPushSource) -> None:
    world.engine.lost_after = True
    pushing.bodies, bodies = [], pushing.bodies
    with pytest.raises(EngineFailed):
        world.run()
    pushing.bodies = bodies
    world.run()
    first, second = world.receipts()
    assert (first.begin, first.end, first.evidence) == (0, 0, {"session": True, "left": 0})
    assert (second.begin, second.end) == (0, 25)


def test_what_a_dead_worker_wrote_comes_again_where_the_sink_cannot_tell(
    world: World, pushing: MemoryPushSource
) -> None:
    """In the next range, and no longer than that; also where the run that closed what was left dies before it."""
    world.sink.scan_tells_records = False
    for after in (13, 0):
        world.engine.dies_after = after
        with pytest.raises(EngineFailed):
            world.run()
    world.engine.lanes.clear()
    world.run()
    again = [item.comes_again for lane in world.engine.lanes for item in lane.ranges]
    assert (again[0], any(again[1:])) == (True, False)


def test_a_sink_that_tells_records_by_their_offsets_is_refused(world: World, pushing: MemoryPushSource) -> None:
    """Whatever its plugin says: the numbers of arrival are given to other records after a kill."""
    index = Index()
    world.sink = MemoryIndex(index, by_key=True)  # type: ignore[assignment]
    with pytest.raises(ConfigError, match="its source pushes"):
        world.run()
    assert (pushing.acknowledged, index.rows, world.engine.lanes) == (0, {}, [])


def test_nothing_behind_a_rejected_record_is_acknowledged_before_it_is_settled(
    world: World, pushing: MemoryPushSource
) -> None:
    world.sink.hated = frozenset({b"12"})
    world.tolerance = 5
    world.times = replace(world.times, idle_timeout_s=0.2)
    world.run()
    first = world.receipts()[0]
    assert (first.end, first.rejected, pushing.told[:3]) == (25, 1, [10, 12, 12])
    assert [offset for offset, _ in world.sink.rows] == [n for n in range(25) if n != 12]


def test_a_reject_that_is_not_tolerated_ends_the_range_before_it(world: World, pushing: MemoryPushSource) -> None:
    world.sink.hated = frozenset({b"12"})
    with pytest.raises(TooManyRejects):
        world.run()
    assert (pushing.acknowledged, world.committed()) == (12, 12)


def test_a_lost_session_is_a_gap_by_the_policy(world: World, pushing: MemoryPushSource) -> None:
    world.run()
    pushing.lost = True
    with pytest.raises(OffsetGone, match="the session is lost"):
        world.run()
    world.accept_gaps = True
    pushing.bodies += [b"25", b"26"]
    world.run()
    world.check()
    assert [(gap.begin, gap.end, gap.reason) for gap in gaps_of(world)] == [(25, None, "the session is lost")]


def gaps_of(world: World) -> list[Gap]:
    return [row.gap for row in world.ledger.gaps(world.connector.uid)]


def test_what_a_target_only_counts_comes_again_and_is_told(pushing: MemoryPushSource) -> None:
    """Nothing of it was acknowledged: 7 records that are there for certain, and 3 that may be."""
    wanted = replace(range_of(Partition("pushing"), Bounds(0, 0, 0, 0)), end=OPEN_END)
    found = ScanResult({}, True, prefix=Prefix(through=7, records=7, unsure=3))
    [outcome] = closed_from_target(pushing, [OpenRange(1, wanted, (), inherited=True, found=found)])
    assert outcome.receipt is not None
    of_the_inbox = pushing.recovered(wanted, found).possible_duplicates
    assert (outcome.receipt.end, outcome.receipt.deduplicated) == (7, 7)
    assert outcome.receipt.possible_duplicates == of_the_inbox + 10
