"""Which part of a backfill is next, how far it has come, and that nothing outside its parts is moved."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from connect_core.planning.backfill_plan import BackfillPlan, merged, within
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Bounds, Gap, Part, Position

A, B = Partition("a"), Partition("b")
PLAN = BackfillPlan((Part(A, 0, 10, 20), Part(A, 0, 30, 35), Part(A, 1, 0, 5, {"file": 2}), Part(B, 0, 0, 7)))
BEGIN = {A: Position(0, 10), B: Position(0, 0)}


def test_the_first_part_that_is_not_done_is_next() -> None:
    assert PLAN.ahead(BEGIN) == {A: PLAN.parts[0], B: PLAN.parts[3]}
    assert PLAN.ahead({A: Position(0, 20)}) == {A: PLAN.parts[1]}
    assert PLAN.ahead({A: Position(0, 35), B: Position(0, 7)}) == {A: PLAN.parts[2]}
    assert PLAN.ahead({A: Position(1, 5)}) == {}


def test_where_a_part_is_done_the_position_moves_to_the_next_one() -> None:
    assert PLAN.jumps(BEGIN) == {}
    assert PLAN.jumps({A: Position(0, 15)}) == {}
    assert PLAN.jumps({A: Position(0, 20)}) == {A: Position(0, 30)}
    assert PLAN.jumps({A: Position(0, 35)}) == {A: Position(1, 0, {"file": 2})}
    assert PLAN.jumps({A: None}) == {A: Position(0, 10)}
    assert PLAN.jumps({A: Position(1, 5), B: Position(0, 7)}) == {}


def test_what_is_done_is_counted_by_part() -> None:
    assert PLAN.length([A, B]) == 10 + 5 + 5 + 7
    assert PLAN.length([B]) == 7
    assert PLAN.done(BEGIN) == 0
    assert PLAN.done({A: Position(0, 32), B: Position(0, 7)}) == 10 + 2 + 7
    assert PLAN.done({A: Position(1, 1)}) == 10 + 5 + 1
    assert PLAN.is_done({A: Position(1, 5), B: Position(0, 7)})
    assert not PLAN.is_done({A: Position(1, 5), B: Position(0, 6)})


def test_nothing_behind_the_end_of_a_part_is_seen() -> None:
    part = Part(A, 0, 10, 20)
    assert within(part, Bounds(0, 12, 0, 50)) == Bounds(0, 12, 0, 20)
    assert within(part, Bounds(0, 12, 0, 15)) == Bounds(0, 12, 0, 15)


def test_what_was_chosen_is_moved_whenever_it_came() -> None:
    assert within(Part(A, 0, 10, 20), Bounds(0, 12, 0, 50, later=True)) == Bounds(0, 12, 0, 20)


def test_what_the_source_has_lost_at_the_end_of_a_part_is_a_gap() -> None:
    """All of the part was there when it was chosen."""
    lost = Gap(0, 15, 20, "rewound")
    assert within(Part(A, 0, 10, 20), Bounds(0, 15, 0, 15)) == Bounds(0, 20, 0, 20, gaps=(lost,))
    assert within(Part(A, 0, 10, 15), Bounds(0, 15, 0, 15)) == Bounds(0, 15, 0, 15)


def test_what_the_source_does_not_see_yet_is_not_lost() -> None:
    seen = Bounds(0, 15, 0, 15, partial=True)
    assert within(Part(A, 0, 10, 20), seen) == seen


def test_a_part_that_the_source_has_lost_is_a_gap_up_to_its_end() -> None:
    part = Part(A, 0, 10, 20)
    front = (Gap(0, 10, 14, "expired"),)
    assert within(part, Bounds(0, 14, 14, 50, gaps=front)) == Bounds(0, 14, 14, 20, gaps=front)
    all_of_it = Bounds(0, 40, 40, 50, gaps=(Gap(0, 10, 40, "expired"),))
    assert within(part, all_of_it) == Bounds(0, 20, 40, 20, gaps=(Gap(0, 10, 20, "expired"),))


def test_what_took_the_place_of_the_partition_is_left_alone() -> None:
    gaps = (Gap(0, 12, None, "recreated"),)
    assert within(Part(A, 0, 10, 20), Bounds(1, 0, 0, 50, gaps=gaps)) == Bounds(1, 0, 0, 0, gaps=gaps)


OF_B, OF_C = {"origin": "file b", "offset": 0}, {"origin": "file c", "offset": 0}
TWO = BackfillPlan((Part(A, 0, 10, 20, {"origin": "file a"}), Part(A, 1, 0, 5, OF_B)))


def test_what_took_the_place_of_a_part_is_not_the_next_one() -> None:
    """The first file is gone, and the one at its path now, which would be counted as the second, is a third."""
    told = within(TWO.parts[0], Bounds(1, 7, 0, 50, OF_C, gaps=(Gap(0, 12, None, "replaced"),)))
    assert (told.incarnation, told.begin, told.end, told.evidence) == (1, 0, 0, {})
    after = {A: Position(told.incarnation, told.begin, told.evidence)}
    assert TWO.jumps(after) == {A: Position(1, 0, OF_B)}


def test_a_position_that_was_stored_with_another_file_moves_to_that_of_its_part() -> None:
    assert TWO.jumps({A: Position(1, 0, OF_C)}) == {A: Position(1, 0, OF_B)}
    assert TWO.jumps({A: Position(1, 0, OF_B | {"size": 5})}) == {}
    assert TWO.jumps({A: Position(1, 0, {"offset": 0})}) == {}, "of a file without a name nothing is known"


def test_another_file_under_the_number_of_a_part_is_a_gap_and_not_read() -> None:
    part = TWO.parts[1]
    told = within(part, Bounds(1, 2, 0, 50, OF_C))
    assert told == Bounds(2, 0, 0, 0, gaps=(Gap(1, 2, 5, "replaced"),), grows=False)
    assert TWO.is_done({A: Position(told.incarnation, told.begin)})
    assert within(part, Bounds(1, 2, 0, 50, OF_B)) == Bounds(1, 2, 0, 5, OF_B)
    assert within(part, Bounds(1, 2, 0, 50, {"origin": ""})).end == 5


PARTS = st.lists(
    st.builds(
        lambda partition, incarnation, begin, length: Part(partition, incarnation, begin, begin + length),
        st.sampled_from([A, B]),
        st.integers(0, 1),
        st.integers(0, 20),
        st.integers(0, 6),
    ),
    max_size=8,
)


def covered(parts: tuple[Part, ...] | list[Part]) -> set[tuple[Partition, int, int]]:
    return {(part.partition, part.incarnation, n) for part in parts for n in range(part.begin, part.end)}


@given(PARTS)
def test_merged_parts_are_the_same_records_each_once_and_in_order(parts: list[Part]) -> None:
    found = merged(parts)
    assert covered(found) == covered(parts)
    assert BackfillPlan(found).length([A, B]) == len(covered(parts))
    assert list(found) == sorted(found, key=lambda part: (part.partition, part.incarnation, part.begin))


@given(PARTS)
def test_following_a_course_moves_every_record_of_it_once(parts: list[Part]) -> None:
    plan = BackfillPlan(merged(parts))
    positions: dict[Partition, Position | None] = dict.fromkeys(plan.partitions())
    moved: list[tuple[Partition, int, int]] = []
    while not plan.is_done(positions):
        positions |= plan.jumps(positions)
        partition, part = next(iter(plan.ahead(positions).items()))
        position = positions[partition]
        assert position is not None
        moved.append((partition, position.incarnation, position.offset))
        positions[partition] = Position(position.incarnation, position.offset + 1)
        assert plan.done(positions) == len(moved)
        assert part.begin <= moved[-1][2] < part.end
    assert len(moved) == len(set(moved))
    assert set(moved) == covered(parts)
