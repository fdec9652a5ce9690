"""A target that keeps progress instead of coordinates: what its word is worth in receipts and floors."""

from __future__ import annotations

from dataclasses import replace

from connect_core.replication.driver.lost_ranges import lost_ranges
from connect_core.sdk.floors import next_floors
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import Prefix, ScanResult
from connect_core.sdk.testing.driving import range_of
from connect_core.sdk.values import Bounds, Delivered, Floor, OpenRange

PARTITION = Partition("p")
FOUND = ScanResult({"broker": 130}, True, prefix=Prefix(through=60, records=30, unsure=8), possible_duplicates=4)
ITEM = OpenRange(
    1, range_of(PARTITION, Bounds(0, 20, 0, 100)), (Floor(PARTITION.id, "broker", 100),), inherited=True, found=FOUND
)
NOTHING = Delivered(0, 0, {}, {})


def test_a_range_that_closes_before_what_is_there_leaves_its_floor_ahead() -> None:
    [(_, floor)] = next_floors(ITEM, NOTHING, 40, deduplicated=12)
    assert (floor.position, floor.ahead) == (112, True)


def test_a_range_that_closes_behind_it_has_settled_all_of_it() -> None:
    [(_, floor)] = next_floors(ITEM, replace(NOTHING, behind={"broker": 150}), 80, deduplicated=30)
    assert (floor.position, floor.ahead) == (150, False)
    [(_, floor)] = next_floors(ITEM, NOTHING, 60, deduplicated=30)
    assert (floor.position, floor.ahead) == (130, False)


def test_what_the_source_has_lost_is_settled_from_the_target() -> None:
    """Lost up to 50, there up to 60: no gap, and nothing to deliver before 60."""
    [loss] = lost_ranges([ITEM], {PARTITION: Bounds(0, 50, 50, 100)})
    assert loss.gaps() == ()
    receipt = loss.receipt()
    assert (receipt.end, receipt.deduplicated, receipt.possible_duplicates, receipt.reconstructed) == (60, 30, 4, True)
    assert [(move.floor.position, move.floor.ahead) for move in receipt.floors] == [(130, False)]


def test_what_neither_has_is_a_gap_behind_what_is_there() -> None:
    [loss] = lost_ranges([ITEM], {PARTITION: Bounds(0, 70, 70, 100)})
    assert [(gap.begin, gap.end) for gap in loss.gaps()] == [(60, 70)]
    assert loss.receipt().end == 60


def test_what_the_target_refused_is_a_gap_where_the_source_has_lost_it() -> None:
    """Its dead letter was of an attempt that left no receipt."""
    found = replace(FOUND, prefix=FOUND.prefix._replace(refused=((30, 31), (58, 65))))
    [loss] = lost_ranges([replace(ITEM, found=found)], {PARTITION: Bounds(0, 50, 50, 100)})
    assert [(gap.begin, gap.end) for gap in loss.gaps()] == [(30, 31), (58, 60)]
    assert [(gap.begin, gap.end) for gap in loss.receipt().gaps] == [(30, 31), (58, 60)]
    assert loss.receipt().deduplicated == 30


def test_what_was_refused_and_is_delivered_now_is_settled_where_the_target_is_ahead() -> None:
    found = replace(FOUND, prefix=FOUND.prefix._replace(refused=((30, 33),)))
    now = replace(NOTHING, records=2, behind={"broker": 132})
    [(_, floor)] = next_floors(replace(ITEM, found=found), now, 40, deduplicated=12)
    assert (floor.position, floor.ahead) == (114, True)
