"""What follows from the progress that a target keeps: which records of a range are there, and which are counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connect_core.sdk.kits.progress import TargetProgress, begun, covered, elsewhere
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import NO_PREFIX, Prefix
from connect_core.sdk.testing.driving import range_of
from connect_core.sdk.values import ORIGIN, Bounds, Range

KEPT = TargetProgress(incarnation=0, since=0, position=100, count=100)


def wanted(begin: int, incarnation: int = 0, origin: str = "") -> Range:
    planned = range_of(Partition("all"), Bounds(incarnation, begin, 0, begin + 100))
    return replace(planned, evidence={ORIGIN: origin})


def test_records_behind_the_settled_ones_are_there() -> None:
    assert covered(KEPT, wanted(80), 80) == Prefix(100, 20)
    assert covered(KEPT, wanted(100), 100) == NO_PREFIX
    assert covered(None, wanted(0), 0) == NO_PREFIX


@pytest.mark.parametrize("other", [wanted(80, incarnation=1), wanted(80, origin="b")])
def test_records_of_another_file_say_nothing_of_this_one_and_are_counted(other: Range) -> None:
    kept = replace(KEPT, origin="a")
    assert covered(kept, other, 80) == NO_PREFIX
    assert elsewhere(kept, other, 80) == 20
    assert covered(kept, wanted(80), 80) == Prefix(100, 20), "a range of before files had names"


def test_a_range_that_goes_on_keeps_where_its_records_begin() -> None:
    assert begun(KEPT, wanted(120), 100).since == 0
    assert begun(KEPT, wanted(80), 80) == replace(KEPT, begin=80, settled=80, highest=100)


def test_a_range_of_which_nothing_is_kept_begins_anew() -> None:
    first = TargetProgress(1, 5, 5, count=3, origin="o", begin=5, settled=3)
    assert begun(None, wanted(5, 1, "o"), 3) == first
    older = replace(KEPT, count=2)
    assert begun(older, wanted(5), 3) == replace(first, incarnation=0, origin="", highest=100)


def test_a_ledger_of_before_ranges_that_came_to_nothing_finds_what_was_written_behind_them() -> None:
    """As where rules leave most records out: nobody has set anything back."""
    first = begun(None, wanted(0), 0).advanced(10, 100)
    kept = begun(begun(first, wanted(100), 10), wanted(200), 10).advanced(5, 300)
    for begin in (100, 200):
        assert covered(kept, wanted(begin), 10) == Prefix(300, 5)
    assert covered(kept, wanted(50), 10) == NO_PREFIX, "a person has"


def test_a_ledger_of_before_a_range_that_closed_short_with_nothing_finds_what_was_written_behind_its_end() -> None:
    """As where all before that end was refused: what an attempt that died wrote behind it is not settled."""
    dead = begun(None, wanted(0), 0).advanced(10, 20)
    kept = begun(dead, wanted(5), 0)
    assert covered(kept, wanted(5), 0) == covered(kept, wanted(0), 0) == Prefix(20, 10)


def test_behind_an_offset_that_was_set_back_nothing_is_there_yet() -> None:
    now = begun(KEPT, wanted(50), 100)
    assert (now.since, now.position, now.count) == (50, 50, 100)
    dead = now.advanced(10, 60)
    assert covered(dead, wanted(50), 100) == Prefix(60, 10)


def test_records_of_a_range_that_was_given_up_are_not_those_of_an_offset_that_was_set_back() -> None:
    """All before that range was settled, and is wanted again: also what stands behind it is written again, and told."""
    given_up = begun(KEPT, wanted(100), 100).advanced(30, 130)
    assert given_up.since == 0
    assert covered(given_up, wanted(100), 100) == Prefix(130, 30), "it is gone on with"
    assert covered(given_up, wanted(50), 100) == NO_PREFIX
    assert elsewhere(given_up, wanted(50), 100) == 30
    now = begun(given_up, wanted(50), 100)
    assert (now.since, now.position, now.count, now.elsewhere) == (50, 50, 130, 30)
    assert covered(given_up, wanted(50), 50) == Prefix(130, 80), "a ledger that was restored settles less"


def test_records_from_before_an_offset_was_set_back_are_counted_when_the_ledger_has_forgotten_that() -> None:
    again = begun(KEPT, wanted(20), 100)
    dead = again.advanced(30, 50)
    assert covered(dead, wanted(40), 40) == NO_PREFIX, "those from 50 to 100 would be taken for new ones"
    assert elsewhere(dead, wanted(40), 40) == 90
    assert covered(again.advanced(80, 100), wanted(40), 40) == Prefix(100, 140), "all are there again"
    assert covered(dead, wanted(20), 100) == Prefix(50, 30), "a ledger that knows of it goes on"


def test_what_comes_again_is_counted_until_a_receipt_has_counted_it() -> None:
    """An attempt that has seen it may have died. The receipt settles it, too, also one of a part of the range."""
    dead = begun(replace(KEPT, origin="a"), wanted(80, origin="b"), 80).advanced(15, 95)
    for kept in (dead, begun(dead, wanted(80, origin="b"), 80)):
        assert covered(kept, wanted(80, origin="b"), 80) == Prefix(95, 15)
        assert elsewhere(kept, wanted(80, origin="b"), 80) == 20
    assert covered(dead, wanted(85, origin="b"), 105) == Prefix(95, 10), "settled: 80, 20 and 5"
    assert elsewhere(dead, wanted(85, origin="b"), 105) == 0
    assert begun(dead, wanted(85, origin="b"), 105).elsewhere == 0
    assert elsewhere(dead, wanted(80, origin="a"), 80) == 35, "none of it is of the former file"
