"""Records that the source has lost: told as gaps, in the transaction that moves the offset behind them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from connect_core.errors import EngineFailed, OffsetGone
from connect_core.observe import Step
from connect_core.replication.driver.lost_ranges import lost_ranges
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.values import OPEN_END, Bounds, Gap, OpenRange, Position
from connect_core.systems.rocketmq.continuity import closed_bounds
from connect_core.work import Receipt, ScanTask
from tests.unit.replication.dying import Killed, Mortal
from tests.unit.replication.memory import MemorySource
from tests.unit.replication.world import BODIES, MEMORY, World
from tests.unit.systems.driving import range_of


@pytest.fixture
def expired(world: World) -> World:
    """100 records are settled; of the 100 that came since, the source has lost the first 50."""
    world.source.bodies = BODIES[:100]
    world.run()
    world.source.bodies = list(BODIES)
    world.source.oldest = 150
    return world


@pytest.fixture
def nothing_left(expired: World) -> World:
    """All of them are lost."""
    expired.source.oldest = len(BODIES)
    return expired


def told(world: World) -> list[Gap]:
    return [stored.gap for stored in world.ledger.gaps(world.connector.uid)]


def test_a_gap_stops_the_run_and_the_error_says_how_to_go_on(expired: World) -> None:
    with pytest.raises(OffsetGone, match=r"expired: from 100 to 150.*waybill run orders --accept-gaps"):
        expired.run()
    assert (expired.committed(), told(expired)) == (100, [])


@pytest.mark.parametrize("how", ["document", "command"])
def test_a_gap_is_told_and_the_run_goes_on_where_somebody_wants_that(expired: World, how: str) -> None:
    expired.on_data_loss, expired.accept_gaps = ("skip", False) if how == "document" else ("fail", True)
    expired.run()
    assert [offset for offset, _ in expired.sink.rows] == [*range(100), *range(150, 200)]
    assert told(expired) == [Gap(0, 100, 150, "expired")]


def test_a_gap_with_nothing_behind_it_is_settled(nothing_left: World) -> None:
    nothing_left.accept_gaps = True
    nothing_left.run()
    assert (nothing_left.committed(), told(nothing_left)) == (200, [Gap(0, 100, 200, "expired")])
    empty = nothing_left.receipts()[-1]
    assert (empty.begin, empty.end, empty.read, empty.gaps) == (200, 200, 0, tuple(told(nothing_left)))
    assert len(nothing_left.engine.lanes) == 1
    nothing_left.accept_gaps = False
    assert nothing_left.run().receipts == []


def test_a_gap_with_nothing_behind_it_is_settled_by_the_attempt_after_a_kill(nothing_left: World) -> None:
    nothing_left.accept_gaps = True
    with pytest.raises(Killed):
        Mortal.run_of(nothing_left, Step.PLANNED)
    nothing_left.run()
    assert (nothing_left.committed(), told(nothing_left)) == (200, [Gap(0, 100, 200, "expired")])


class Ended(MemorySource):
    """A partition that is not there any more, and was read to its end."""

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        at = known[MEMORY]
        if at is None or at.incarnation:
            return {MEMORY: Bounds(1, 0, 0, 0, grows=False)}
        return {MEMORY: Bounds(1, 0, 0, 0, gaps=(Gap(0, at.offset, at.offset, "ended"),), grows=False)}


@pytest.mark.parametrize("window_s", [0.0, 0.3], ids=["closed", "window"])
def test_a_partition_that_has_ended_is_told_once_and_stops_nothing(world: World, window_s: float) -> None:
    world.run()
    world.source = Ended(list(BODIES))
    world.window_s = window_s
    for _ in range(2):
        world.run()
    assert told(world) == [Gap(0, 200, 200, "ended")]
    assert [line for line in world.said if "is gone" in line] == [
        "memory is gone; it was read to its last known end, 200; whether more came later cannot be known"
    ]
    assert world.ledger.positions(world.connector.uid, "live", [MEMORY])[MEMORY] == Position(1, 0)


# ----------------------------------------------------------------------- ranges that an earlier attempt left open


def left_open(world: World, delivered: int, oldest: int) -> World:
    """An attempt delivered some records and died; then the source lost what is before `oldest`."""
    world.engine.dies_after = delivered
    with pytest.raises(EngineFailed):
        world.run()
    world.source.oldest = oldest
    return world


def offsets(world: World) -> list[int]:
    return [offset for offset, _ in world.sink.rows]


def test_what_the_target_has_is_no_gap(world: World) -> None:
    """Delivery rule 9: find before bounds."""
    left_open(world, delivered=150, oldest=120)
    world.run()
    assert offsets(world) == list(range(200))
    assert told(world) == []
    first, second = world.receipts()
    assert (first.begin, first.end, first.deduplicated, first.delivered) == (0, 120, 120, 0)
    assert (first.read, first.absent, first.filtered, first.rejected, first.bytes_read) == (None,) * 5
    assert first.reconstructed
    assert (second.begin, second.end, second.deduplicated, second.delivered) == (120, 200, 30, 50)
    assert not second.reconstructed


def test_fewer_records_are_readable_than_the_attempt_before_delivered(world: World) -> None:
    """All of the range is gone from the source, and all but its end is in the target."""
    left_open(world, delivered=150, oldest=200)
    with pytest.raises(OffsetGone, match=r"expired: from 150 to 200\)"):
        world.run()
    assert len(world.ledger.open_ranges(world.connector.uid, "live")) == 1
    world.accept_gaps = True
    world.run()
    assert offsets(world) == list(range(150))
    assert told(world) == [Gap(0, 150, 200, "expired")]
    assert [(r.begin, r.end, r.reconstructed) for r in world.receipts()] == [(0, 150, True), (200, 200, False)]


@pytest.mark.parametrize("delivered", [0, 60])
def test_a_gap_begins_behind_the_last_record_that_is_there(world: World, delivered: int) -> None:
    left_open(world, delivered=delivered, oldest=100)
    world.on_data_loss = "skip"
    world.run()
    assert offsets(world) == [*range(delivered), *range(100, 200)]
    assert told(world) == [Gap(0, delivered, 100, "expired")]
    assert sum(_known(receipt) for receipt in world.receipts()) == 200 - (100 - delivered)


def _known(receipt: Receipt) -> int:
    return receipt.deduplicated + receipt.delivered


def test_a_killed_driver_leaves_a_reconstructed_receipt_to_be_gone_on_from(world: World) -> None:
    left_open(world, delivered=150, oldest=120)
    with pytest.raises(Killed):
        Mortal.run_of(world, Step.SETTLED)
    world.run()
    assert offsets(world) == list(range(200))
    assert told(world) == []


@pytest.mark.parametrize("delivered", [0, 60])
def test_a_range_of_which_a_source_that_ends_before_it_has_nothing_left_is_a_gap(world: World, delivered: int) -> None:
    """A broker was restarted without what it had not stored yet. What comes next at these offsets is read."""
    left_open(world, delivered=delivered, oldest=0)
    world.source.bodies = []
    with pytest.raises(OffsetGone, match=rf"rewound: from {delivered} to 200.*--accept-gaps"):
        world.run()
    assert told(world) == []
    world.accept_gaps = True
    world.run()
    assert (world.committed(), told(world)) == (delivered, [Gap(0, delivered, 200, "rewound")])
    world.accept_gaps = False
    assert world.run().receipts == []
    world.source.bodies = list(BODIES[:100])
    world.run()
    assert offsets(world) == list(range(100))


@pytest.mark.parametrize("delivered", [0, 60])
def test_a_range_of_a_partition_that_has_ended_before_it_is_a_gap(
    world: World, delivered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic was made anew with fewer queues: the broker refuses each attempt to read of the others."""
    left_open(world, delivered=delivered, oldest=0)

    def ended(known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        places = {one: at or Position(0, 0) for one, at in known.items()}
        return {one: closed_bounds(at, 0) for one, at in places.items()}

    monkeypatch.setattr(world.source, "available_offsets", ended)
    with pytest.raises(OffsetGone, match=rf"closed: from {delivered} to 200.*--accept-gaps"):
        world.run()
    world.accept_gaps = True
    world.run()
    assert (world.committed(), told(world)) == (delivered, [Gap(0, delivered, 200, "closed")])
    world.accept_gaps = False
    assert world.run().receipts == []


def test_what_a_source_has_lost_while_it_was_read_is_a_gap_in_the_next_run(world: World) -> None:
    """A range that was taken back would leave nobody who knows what had been there."""
    world.source.gone = 0
    with pytest.raises(OffsetGone):
        world.run()
    world.source.bodies = []
    world.accept_gaps = True
    world.run()
    assert told(world) == [Gap(0, 0, 200, "rewound")]


def test_what_a_target_has_to_the_end_is_no_gap_though_the_source_has_lost_it(world: World) -> None:
    left_open(world, delivered=200, oldest=0)
    world.source.bodies = []
    world.run()
    assert (world.committed(), told(world)) == (200, [])


def spread(world: World, there: dict[str, list[int]], oldest: int) -> World:
    """An attempt died that had delivered these to several targets; then the source lost what is before `oldest`."""
    left_open(world, delivered=0, oldest=oldest)
    rows = [(offset, 0, target, place) for target, several in there.items() for place, offset in enumerate(several)]

    def scan(task: ScanTask) -> dict[int, ScanResult]:
        found = ScanResult(spread=tuple(there)).merged(rows, {}, True)
        return dict.fromkeys((item.id for item in task.scan.ranges), found)

    world.engine.scan = scan  # type: ignore[method-assign]
    return world


def test_what_one_of_several_targets_did_not_get_is_a_gap(world: World) -> None:
    """Delivery rule 9: of a range that is spread, a record below the highest one that is there may have been lost."""
    spread(world, {"a": list(range(0, 60, 2)), "b": [1, 3, 5]}, oldest=100)
    with pytest.raises(OffsetGone, match="expired: from 7 to 59; expired: from 59 to 100"):
        world.run()
    world.accept_gaps = True
    world.run()
    assert told(world) == [Gap(0, 7, 59, "expired"), Gap(0, 59, 100, "expired")]
    first = world.receipts()[0]
    assert (first.begin, first.end, first.deduplicated, first.reconstructed) == (0, 59, 33, True)


def test_several_targets_that_have_it_all_together_leave_no_gap(world: World) -> None:
    spread(world, {"a": list(range(0, 60, 2)), "b": list(range(1, 59, 2)), "c": []}, oldest=59)
    world.run()
    assert told(world) == []
    assert world.receipts()[0].end == 59


def test_bytes_that_nobody_can_place_are_a_persons_to_decide_on(world: World) -> None:
    """Delivery rule 16: not even a document that lets gaps pass moves them, for the source cannot give them again."""
    left_open(world, delivered=60, oldest=100)
    world.on_data_loss = "skip"

    def scan(task: ScanTask) -> dict[int, ScanResult]:
        return {item.id: ScanResult(complete=True, unplaced=900) for item in task.scan.ranges}

    world.engine.scan = scan  # type: ignore[method-assign]
    with pytest.raises(OffsetGone, match=r"last 900 bytes of memory.*--accept-gaps"):
        world.run()
    assert offsets(world) == list(range(60))
    world.accept_gaps = True
    world.run()
    assert told(world) == [Gap(0, 0, 100, "expired")]


def test_the_attempt_that_left_a_range_open_may_have_seen_more_than_its_plan() -> None:
    """All that was there when it was planned was settled; what came into it since nobody knows."""
    left = OpenRange(1, range_of(Partition("p"), Bounds(0, 50, 0, OPEN_END)), (), inherited=True)
    ended = Bounds(1, 0, 0, 0, gaps=(Gap(0, 50, 50, "ended"),))
    [loss] = lost_ranges([left], {Partition("p"): ended})
    assert loss.gaps() == (Gap(0, 50, None, "deleted"),)


class Latest(MemorySource):
    """Begins behind what it has; who looks keeps that."""

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        if known[MEMORY] is not None:
            return super().available_offsets(known)
        return {MEMORY: Bounds(0, len(self.bodies), 0, len(self.bodies), chosen=True)}


@pytest.mark.parametrize("came", [0, 50])
def test_what_an_undo_to_never_read_passes_over_is_told(world: World, came: int) -> None:
    """The partition begins at the newest record again: nobody reads what came since it was read last."""
    world.source = world.engine.source = Latest(BODIES[:100])
    lease = world.ledger.take("a person's", None, "tests", uid=world.connector.uid)
    hand = ([lease], world.connector.uid, "live", MEMORY)
    world.ledger.set_offset(*hand, Position(0, 40), who="ann", why="")
    world.run()
    world.ledger.undo_offset(*hand, who="ann")
    world.source.bodies = list(BODIES[: 100 + came])
    if came:
        with pytest.raises(Killed):
            Mortal.run_of(world, Step.BEFORE_PLANNED)
    world.run()
    assert [(gap.begin, gap.end) for gap in told(world)] == ([(100, 150)] if came else [])
    world.source.bodies = list(BODIES)
    world.run()
    assert offsets(world) == [*range(40, 100), *range(100 + came, 200)]
    assert len(told(world)) == (1 if came else 0), "once"
