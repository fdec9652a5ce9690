"""Receipts added up: what does not add up must be told, since the demo fails on it."""

from __future__ import annotations

from typing import Any

import pytest

from connect_core.demo.account import add_up

_SOUND = {
    "read": 10,
    "filtered": 0,
    "rejected": 0,
    "passed": 10,
    "emitted": 10,
    "delivered": 7,
    "deduplicated": 3,
    "duplicates": 0,
    "possible_duplicates": 0,
}


def _receipt(begin: int, end: int, partition: str = "a.log", **changes: int) -> dict[str, Any]:
    return {"partition": partition, "begin": begin, "end": end, "covered": end - begin, **_SOUND, **changes}


def test_sound_receipts_add_up_in_any_order() -> None:
    account = add_up([_receipt(500, 900), _receipt(0, 500), _receipt(0, 40, "b.log")])

    assert account.faults == ()
    assert (account.receipts, account.read, account.delivered, account.deduplicated) == (3, 30, 21, 9)
    assert account.ends == {"a.log": 900, "b.log": 40}


def test_a_receipt_of_nothing_adjoins_the_one_that_goes_on_from_it() -> None:
    """As an attempt leaves it that was killed before its target held anything; receipts come newest first."""
    nothing = dict.fromkeys(("read", "passed", "emitted", "delivered", "deduplicated"), 0)
    assert add_up([_receipt(500, 900), _receipt(500, 500, **nothing), _receipt(0, 500)]).faults == ()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"passed": 9}, "read is not filtered + rejected + passed"),
        ({"delivered": 8}, "emitted is not delivered + deduplicated"),
        ({"duplicates": 1}, "1 duplicates"),
        ({"covered": 499}, "499 positions are accounted for, not 500"),
    ],
)
def test_a_receipt_that_does_not_hold_is_told(changes: dict[str, int], told: str) -> None:
    (fault,) = add_up([_receipt(0, 500, **changes)]).faults
    assert told in fault
    assert "a.log" in fault


def test_a_hole_and_an_overlap_between_ranges_are_told() -> None:
    assert add_up([_receipt(0, 5), _receipt(6, 9)]).faults == (
        "a.log: a range begins at 6, the one before it ended at 5",
    )
    assert add_up([_receipt(0, 5), _receipt(4, 9)]).faults == (
        "a.log: a range begins at 4, the one before it ended at 5",
    )
    assert add_up([_receipt(3, 5)]).faults == ("a.log: a range begins at 3, the one before it ended at 0",)


def test_what_a_reconstructed_receipt_does_not_know_is_no_fault() -> None:
    unknown = dict.fromkeys(("read", "filtered", "rejected"))
    account = add_up([_receipt(0, 500), {**_receipt(500, 900), **unknown}])
    assert (account.faults, account.read, account.delivered) == ((), 10, 14)


def test_possible_duplicates_are_added_up() -> None:
    assert (
        add_up([_receipt(0, 5, possible_duplicates=2), _receipt(5, 9, possible_duplicates=1)]).possible_duplicates == 3
    )
