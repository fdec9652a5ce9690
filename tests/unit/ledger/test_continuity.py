"""Where a planned range may begin."""

from __future__ import annotations

import pytest

from connect_core.ledger.continuity import continues
from connect_core.sdk.records import Partition
from connect_core.sdk.values import LIVE, Gap, Pins, Position, Range

COMMITTED = Position(1, 100)


def planned(begin: int, *gaps: Gap, incarnation: int = 1, end: int = 1000) -> Range:
    return Range(LIVE, Partition("q"), 0, incarnation, begin, end, 10, 10, {}, Pins(1, "", {}, ""), gaps)


@pytest.mark.parametrize(
    "good",
    [
        planned(100),
        planned(150, Gap(1, 100, 150, "retention")),
        planned(170, Gap(1, 100, 150, "retention"), Gap(1, 150, 170, "damaged")),
        planned(180, Gap(1, 100, None, "truncated")),
        planned(0, Gap(1, 100, None, "recreated"), incarnation=2),
        planned(50, Gap(1, 100, None, "recreated"), Gap(2, 0, 50, "retention"), incarnation=2),
        planned(0, incarnation=2),
        planned(100, Gap(0, 300, 350, "written after rotation")),
        planned(150, Gap(0, 300, 350, "written after rotation"), Gap(1, 100, 150, "retention")),
    ],
)
def test_what_joins(good: Range) -> None:
    assert continues(COMMITTED, good) == ""


@pytest.mark.parametrize(
    "bad",
    [
        planned(99),
        planned(101),
        planned(150, Gap(1, 101, 150, "retention")),
        planned(150, Gap(1, 99, 150, "retention")),
        planned(151, Gap(1, 100, 150, "retention")),
        planned(170, Gap(1, 100, 150, "retention"), Gap(1, 151, 170, "damaged")),
        planned(99, Gap(1, 100, None, "truncated")),
        planned(100, incarnation=0),
        planned(60, Gap(1, 100, None, "recreated"), Gap(2, 0, 50, "retention"), incarnation=2),
        planned(150, Gap(0, 100, 150, "of a former incarnation")),
        planned(100, end=99),
    ],
)
def test_what_does_not_join(bad: Range) -> None:
    assert continues(COMMITTED, bad) != ""


def test_a_partition_that_was_never_settled_may_begin_anywhere() -> None:
    assert continues(None, planned(7)) == ""
    assert continues(None, planned(7, end=6)) != ""
