"""Ranges never overlap, leave gaps, exceed limits or depend on the order of the input."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from connect_core.planning import Goal, RangeLimits, plan_ranges
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Bounds, Gap, Pins

PINS = Pins(1, "pipeline", {}, "code")
LIMITS = RangeLimits(1000, 1 << 20)


def _pins(partition: Partition) -> Pins:
    return PINS


@st.composite
def sources(draw: st.DrawFn) -> dict[Partition, Bounds]:
    names = draw(st.lists(st.text("abcxyz/", min_size=1, max_size=4), unique=True, max_size=8))
    bounds = {}
    for name in names:
        begin = draw(st.integers(0, 50))
        end = begin + draw(st.integers(0, 500))
        bounds[Partition(name)] = Bounds(draw(st.integers(0, 2)), begin, draw(st.integers(0, begin)), end)
    return bounds


def _slots(bounds: dict[Partition, Bounds]) -> dict[Partition, int]:
    return {partition: index for index, partition in enumerate(sorted(bounds))}


@given(sources(), st.data())
def test_successive_plans_cover_every_offset_once_and_in_order(
    bounds: dict[Partition, Bounds], data: st.DataObject
) -> None:
    """Whatever part of each range a worker gets done, plan after plan covers [begin, end) without gap or overlap."""
    covered: dict[Partition, list[tuple[int, int]]] = {partition: [] for partition in bounds}
    goals = {partition: Goal(seen.incarnation, seen.end) for partition, seen in bounds.items()}
    now = dict(bounds)
    for _ in range(10_000):
        ranges = plan_ranges("live", now, _slots(bounds), goals, LIMITS, _pins)
        if not ranges:
            break
        assert len({r.partition for r in ranges}) == len(ranges)
        for planned in ranges:
            assert now[planned.partition].begin == planned.begin < planned.end <= now[planned.partition].end
            reached = data.draw(st.integers(planned.begin + 1, planned.end))
            covered[planned.partition].append((planned.begin, reached))
            grown = now[planned.partition].end + data.draw(st.integers(0, 3))  # the source is written to all the time
            now[planned.partition] = Bounds(planned.incarnation, reached, 0, grown)
    for partition, seen in bounds.items():
        pieces = covered[partition]
        assert [begin for begin, _ in pieces[1:]] == [end for _, end in pieces[:-1]]
        assert (pieces[0][0], pieces[-1][1]) == (seen.begin, seen.end) if pieces else seen.begin == seen.end


@given(sources(), st.randoms())
def test_plan_does_not_depend_on_the_order_of_the_input(bounds: dict[Partition, Bounds], random: object) -> None:
    shuffled = list(bounds.items())
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    slots = _slots(bounds)
    assert plan_ranges("live", dict(shuffled), slots, {}, LIMITS, _pins) == plan_ranges(
        "live", bounds, slots, {}, LIMITS, _pins
    )


def test_limits_pins_and_gaps_travel_with_the_range() -> None:
    gap = Gap(0, 5, 9, "expired")
    bounds = {Partition("a"): Bounds(1, 9, 9, 20, {"seen": 1}, (gap,))}
    (planned,) = plan_ranges("live", bounds, {Partition("a"): 3}, {}, LIMITS, _pins)
    assert (planned.slot, planned.incarnation, planned.gaps, planned.evidence) == (3, 1, (gap,), {"seen": 1})
    assert (planned.max_records, planned.max_bytes, planned.pins) == (1000, 1 << 20, PINS)


def test_a_partition_with_nothing_but_a_gap_gets_an_empty_range() -> None:
    gap = Gap(0, 5, None, "deleted")
    bounds = {Partition("a"): Bounds(1, 0, 0, 0, gaps=(gap,)), Partition("b"): Bounds(0, 7, 0, 7)}
    (planned,) = plan_ranges("live", bounds, {Partition("a"): 0, Partition("b"): 1}, {}, LIMITS, _pins)
    assert (planned.partition, planned.begin, planned.end, planned.gaps) == (Partition("a"), 0, 0, (gap,))


def test_a_run_ends_where_it_saw_the_end_when_it_began() -> None:
    partition = Partition("a")
    grown = {partition: Bounds(0, 100, 0, 150)}
    assert plan_ranges("live", grown, {partition: 0}, {partition: Goal(0, 100)}, LIMITS, _pins) == []


def test_a_goal_of_an_older_incarnation_does_not_hold_for_a_newer_one() -> None:
    partition = Partition("a")
    rotated = {partition: Bounds(1, 0, 0, 40)}
    (planned,) = plan_ranges("live", rotated, {partition: 0}, {partition: Goal(0, 10)}, LIMITS, _pins)
    assert (planned.begin, planned.end) == (0, 40)
