"""Lanes hold every range with the first pins once, are balanced and do not depend on the order of the input."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from connect_core.planning import split_lanes
from connect_core.sdk.records import Partition
from connect_core.sdk.values import OpenRange, Pins, Range

PINS = Pins(1, "pipeline", {}, "code")


def open_range(number: int, length: int, pins: Pins = PINS) -> OpenRange:
    wanted = Range("live", Partition(f"p{number}"), number, 0, 0, length, 1000, 1000, {}, pins)
    return OpenRange(number, wanted, ())


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20), st.integers(1, 6))
def test_every_range_is_in_exactly_one_lane(lengths: list[int], count: int) -> None:
    ranges = [open_range(number, length) for number, length in enumerate(lengths)]
    lanes = split_lanes(ranges, count)
    assert 1 <= len(lanes) <= count
    assert all(lanes)
    assert sorted(item.id for lane in lanes for item in lane) == [item.id for item in ranges]
    assert all([item.id for item in lane] == sorted(item.id for item in lane) for lane in lanes)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20), st.integers(1, 6))
def test_no_lane_is_longer_than_the_fair_share_and_the_longest_range(lengths: list[int], count: int) -> None:
    lanes = split_lanes([open_range(number, length) for number, length in enumerate(lengths)], count)
    loads = [sum(item.range.end for item in lane) for lane in lanes]
    assert max(loads) <= sum(lengths) / count + max(lengths)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20), st.integers(1, 6), st.randoms())
def test_lanes_do_not_depend_on_the_order_of_ranges_with_one_plan(
    lengths: list[int], count: int, random: object
) -> None:
    ranges = [open_range(number, length) for number, length in enumerate(lengths)]
    shuffled = list(ranges)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert split_lanes(shuffled, count) == split_lanes(ranges, count)


def test_ranges_of_another_revision_wait() -> None:
    old, new = open_range(1, 10), open_range(2, 10, replace(PINS, revision=2))
    assert split_lanes([old, new], 2) == [(old,)]


def test_nothing_to_do_is_no_lane() -> None:
    assert split_lanes([], 4) == []
