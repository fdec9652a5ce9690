"""What a position that moves back repeats, by the receipts. No database."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from connect_core.ledger.repeats import Repeats, SettledCounts, repeated


def settled(begin: int, end: int, incarnation: int = 0) -> SettledCounts:
    return SettledCounts((incarnation, begin), (incarnation, end), end - begin, 10 * (end - begin))


def test_receipts_that_lie_between_count_whole() -> None:
    newest_first = [settled(700, 1400), settled(0, 700)]
    assert repeated(newest_first, (0, 1400), (0, 700)) == Repeats(1, 700, 7000)
    assert repeated(newest_first, (0, 1400), (0, 0)) == Repeats(2, 1400, 14000)
    assert repeated(newest_first, (0, 700), (0, 1400)) == Repeats()


def test_a_part_of_a_receipt_is_told_as_the_most_that_it_can_be() -> None:
    assert repeated([settled(0, 1400)], (0, 1400), (0, 700)) == Repeats(1, 1400, 14000, at_most=True)


def test_what_was_repeated_before_counts_once() -> None:
    """0 to 100, back to 0 and again to 20; somebody has put the position to 100 since."""
    newest_first = [settled(0, 20), settled(50, 100), settled(0, 50)]
    assert repeated(newest_first, (0, 100), (0, 0)) == Repeats(3, 120, 1200, at_most=True)
    assert repeated([settled(0, 100), settled(50, 100), settled(0, 50)], (0, 100), (0, 0)).records == 100


def test_an_earlier_incarnation_is_repeated_too() -> None:
    newest_first = [settled(0, 30, 1), settled(0, 100, 0)]
    assert repeated(newest_first, (1, 30), (0, 40)) == Repeats(2, 130, 1300, at_most=True)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30))), st.integers(0, 90), st.integers(0, 90))
def test_never_less_than_the_places_that_were_settled(
    stretches: list[tuple[int, int]], before: int, after: int
) -> None:
    found = repeated([settled(begin, begin + length) for begin, length in stretches], (0, before), (0, after))
    covered = {place for begin, length in stretches for place in range(begin, begin + length)}
    assert found.records >= len(covered & set(range(after, before)))
    assert found.at_most or found.records == len(covered & set(range(after, before)))
