"""Lanes hold every range with the first pins once, are balanced and do not depend on the order of the input."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from connect_core.planning import followed, split_lanes
from connect_core.sdk.records import Partition
from connect_core.sdk.values import OPEN_END, OpenRange, Pins, Range

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


def live_range(number: int, begin: int) -> OpenRange:
    wanted = Range("live", Partition(f"p{number}"), number, 0, begin, OPEN_END, 1000, 1000, {}, PINS)
    return OpenRange(number, wanted, ())


@given(st.lists(st.lists(st.integers(0, 1000), min_size=5, max_size=5), min_size=2, max_size=5), st.integers(1, 6))
def test_who_has_followed_a_partition_follows_it_on(quanta: list[list[int]], count: int) -> None:
    """However far each of them has come since."""
    followers: dict[Partition, int] = {}
    for begins in quanta:
        lanes = split_lanes([live_range(number, begin) for number, begin in enumerate(begins)], count, followers)
        assert not followers or followed(lanes) == followers
        followers = followed(lanes)
    sizes = [len(lane) for lane in lanes]
    assert max(sizes) - min(sizes) <= 1


def test_others_follow_on_when_one_is_gone_and_a_new_one_goes_where_the_fewest_are() -> None:
    all_of_them = [live_range(number, 0) for number in range(5)]
    followers = followed(split_lanes(all_of_them, 2))
    left = followed(split_lanes(all_of_them[1:], 2, followers))
    assert left == {partition: lane for partition, lane in followers.items() if partition != Partition("p0")}
    joined = followed(split_lanes([*all_of_them[1:], live_range(5, 0)], 2, followers | left))
    assert joined == left | {Partition("p5"): 0}


def test_live_ranges_and_such_that_end_are_shared_out_beside_each_other() -> None:
    lanes = split_lanes([live_range(0, 0), live_range(1, 7), open_range(2, 10), open_range(3, 10)], 2)
    assert [[item.id for item in lane] for lane in lanes] == [[0, 2], [1, 3]]
    assert len(split_lanes([live_range(0, 0), open_range(1, 10)], 2)) == 2


def test_a_lane_that_nobody_is_left_in_is_none() -> None:
    followers = followed(split_lanes([live_range(number, 0) for number in range(4)], 2))
    assert len(split_lanes([live_range(1, 0), live_range(3, 0)], 2, followers)) == 1


def test_nothing_to_do_is_no_lane() -> None:
    assert split_lanes([], 4) == []
