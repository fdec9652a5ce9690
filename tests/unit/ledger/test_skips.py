"""What people left out by setting offsets, by their changes alone. No database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from connect_core.ledger.skips import HandMove, skips_of
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Gap, Position

Places = tuple[int | None, int | None]


def move(number: int, before: Position | None, after: Position | None, key: str = "p") -> HandMove:
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number)
    return HandMove("live", Partition(key), before, after, "ann", "bad message", at)


def left_out(*moves: Places) -> list[tuple[int, int | None]]:
    placed = [[None if one is None else Position(0, one) for one in places] for places in moves]
    return [(one.gap.begin, one.gap.end) for one in skips_of(move(n, *places) for n, places in enumerate(placed))]


def test_what_an_offset_that_is_set_forward_passes_over_is_left_out() -> None:
    [skip] = skips_of([move(1, Position(0, 10), Position(0, 11))])
    assert skip.gap == Gap(0, 10, 11, "left out by ann, who set the offset: bad message")
    assert left_out((10, 11), (40, 60)) == [(10, 11), (40, 60)]


def test_what_is_read_after_all_is_not_left_out() -> None:
    assert left_out((10, 20), (30, 10)) == []
    assert left_out((10, 20), (30, 15)) == [(10, 15)]
    assert left_out((10, 20), (20, 10), (14, 30)) == [(14, 20), (20, 30)]


def test_what_was_read_before_is_not_left_out() -> None:
    assert left_out((100, 40), (40, 100)) == [], "undone"
    assert left_out((100, 40), (60, 120)) == [(100, 120)]
    assert left_out((100, 120), (120, 40), (40, 120)) == [(100, 120)], "once"


def test_where_a_partition_that_was_never_read_begins_leaves_nothing_out() -> None:
    assert left_out((None, 40)) == []
    assert left_out((None, 40), (70, None)) == []
    assert left_out((40, 40)) == []


def test_of_a_former_incarnation_nobody_knows_the_end() -> None:
    passed = skips_of([move(1, Position(0, 10), Position(2, 5)), move(2, Position(0, 3), Position(0, 4), "q")])
    assert [(one.gap.incarnation, one.gap.begin, one.gap.end) for one in passed] == [
        (0, 10, None),
        (2, 0, 5),
        (0, 3, 4),
    ]
