"""Where a run means to get, and how far it is."""

from __future__ import annotations

from connect_core.planning import Goal
from connect_core.replication.driver.end_offsets import EndOffsets
from connect_core.sdk.records import Partition
from connect_core.sdk.values import OPEN_END, Bounds, Pins, Position, Range

A, B = Partition("a"), Partition("b")


def left_open(begin: int, end: int, incarnation: int = 0) -> Range:
    return Range("live", A, 0, incarnation, begin, end, 10, 10, {}, Pins(1, "", {}, ""))


def test_what_comes_while_it_runs_is_the_next_runs() -> None:
    end_offsets = EndOffsets()
    end_offsets.saw({A: Bounds(0, 5, 0, 20)})
    end_offsets.saw({A: Bounds(0, 20, 0, 90), B: Bounds(0, 0, 0, 7)})
    assert end_offsets.of == {A: Goal(0, 20), B: Goal(0, 7)}
    assert end_offsets.progress({A: Position(0, 20, {}), B: None}) == (15, 22)


def test_what_was_there_and_not_seen_yet_is_this_runs() -> None:
    """Of a source that looks ahead to a bound."""
    end_offsets = EndOffsets()
    end_offsets.saw({A: Bounds(0, 5, 0, 20, partial=True)})
    end_offsets.saw({A: Bounds(0, 20, 0, 90)})
    end_offsets.saw({A: Bounds(0, 90, 0, 95)})
    assert end_offsets.of == {A: Goal(0, 90)}
    end_offsets.saw({A: Bounds(1, 0, 0, 4, partial=True, later=True)})
    end_offsets.saw({A: Bounds(1, 0, 0, 9, later=True)})
    assert end_offsets.of == {A: Goal(1, 0)}


def test_more_than_it_meant_to_do_is_not_more_than_all() -> None:
    end_offsets = EndOffsets()
    end_offsets.saw({A: Bounds(0, 5, 0, 20)})
    assert end_offsets.progress({A: Position(0, 90, {})}) == (15, 15)


def test_a_partition_that_is_a_new_one_has_a_new_goal() -> None:
    end_offsets = EndOffsets()
    end_offsets.saw({A: Bounds(0, 5, 0, 20)})
    end_offsets.saw({A: Bounds(1, 0, 0, 4)})
    assert end_offsets.of == {A: Goal(1, 4)}
    assert end_offsets.progress({A: Position(0, 20, {})}) == (0, 4)
    assert end_offsets.progress({A: Position(1, 3, {})}) == (3, 4)
    end_offsets.saw({A: Bounds(2, 0, 0, 9, later=True)})
    assert end_offsets.progress({A: Position(1, 4, {})}) == (0, 0)


def test_the_lag_is_what_the_last_look_saw_without_what_was_settled_since() -> None:
    end_offsets = EndOffsets()
    assert end_offsets.lag({}) is None
    end_offsets.saw({A: Bounds(0, 5, 0, 20), B: Bounds(0, 0, 0, 7)})
    assert end_offsets.lag({}) == 22
    assert end_offsets.lag({A: (0, 15)}) == 12
    end_offsets.saw({A: Bounds(0, 15, 0, 90)})
    assert end_offsets.lag({A: (0, 15), B: (0, 7)}) == 75
    end_offsets.saw({A: Bounds(1, 0, 0, 4)})
    assert end_offsets.lag({A: (0, 90), B: (0, 7)}) == 4, "of another incarnation nothing is settled"
    end_offsets.forget([A])
    assert end_offsets.lag({B: (0, 9)}) == 0


def test_what_it_took_over_is_part_of_it() -> None:
    end_offsets = EndOffsets()
    end_offsets.took_over([left_open(2, 8)])
    assert end_offsets.partitions() == [A]
    assert end_offsets.progress({A: Position(0, 5, {})}) == (3, 6)
    end_offsets.saw({A: Bounds(0, 8, 0, 20)})
    assert end_offsets.progress({A: Position(0, 10, {})}) == (8, 18)


def test_what_it_took_over_of_an_older_partition_is_not() -> None:
    end_offsets = EndOffsets()
    end_offsets.took_over([left_open(2, 8)])
    end_offsets.saw({A: Bounds(1, 0, 0, 4)})
    assert end_offsets.progress({A: Position(1, 4, {})}) == (4, 4)


def test_a_live_range_that_it_took_over_has_no_end_to_wait_for() -> None:
    end_offsets = EndOffsets()
    end_offsets.took_over([left_open(2, OPEN_END)])
    assert end_offsets.progress({A: Position(0, 2, {})}) == (0, 0)
