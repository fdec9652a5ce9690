"""The checker of the fault tests sees what it is there to see."""

from __future__ import annotations

import pytest

from tests.faults.kit.checker import EXACT, Account, Span, account

SOURCE = {"a": [b"a0", b"a1", b"a2"], "b": [b"b0", b"b1"]}
SPANS = {"a": Span(0, 3), "b": Span(0, 2)}


def told(partition: str, begin: int, end: int, **other: int) -> dict[str, object]:
    count = end - begin
    counts = {"read": count, "filtered": 0, "rejected": 0, "passed": count, "emitted": count, "covered": count}
    return {
        "partition": partition,
        "incarnation": 0,
        "begin": begin,
        "end": end,
        **counts,
        "delivered": count,
        "deduplicated": 0,
    } | {
        "duplicates": 0,
        "reconstructed": False,
        **other,
    }


RECEIPTS = [told("a", 0, 2), told("b", 0, 2), told("a", 2, 3)]


def arrived(*queues: list[bytes]) -> dict[str, list[bytes]]:
    return {str(number): queue for number, queue in enumerate(queues)}


def test_each_record_once_and_in_order_is_exact() -> None:
    assert account(SOURCE, arrived([b"a0", b"b0", b"a1", b"b1", b"a2"]), RECEIPTS, SPANS) == EXACT
    assert account(SOURCE, arrived([b"a0", b"a1", b"a2"], [b"b0", b"b1"]), RECEIPTS, SPANS) == EXACT


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (arrived([b"a0", b"a2", b"b0", b"b1"]), EXACT._replace(lost=1)),
        (arrived([b"a0", b"a1", b"a0", b"a2", b"b0", b"b1", b"a0"]), EXACT._replace(repeated=2)),
        (arrived([b"a0", b"a2", b"a1", b"b0", b"b1"]), EXACT._replace(reordered=1)),
        (arrived([b"a0", b"a1", b"b0"], [b"a2", b"b1"]), EXACT._replace(reordered=2)),
        (arrived([b"a0", b"a1", b"a2", b"b0", b"b1", b"A0"]), EXACT._replace(strangers=1)),
    ],
    ids=["lost", "repeated", "reordered", "in two places", "stranger"],
)
def test_what_is_wrong_with_the_records_is_counted(target: dict[str, list[bytes]], expected: Account) -> None:
    assert account(SOURCE, target, RECEIPTS, SPANS) == expected


@pytest.mark.parametrize(
    ("receipts", "fault"),
    [
        ([told("a", 0, 3, covered=2), told("b", 0, 2)], "a 0-3: 2 positions are accounted for"),
        ([told("a", 0, 2), told("b", 0, 2)], "a: the receipts end at 2, the partition at 3"),
        ([told("a", 0, 1), told("b", 0, 2), told("a", 2, 3)], "a: a receipt begins at 2, the one before it ended at 1"),
        ([told("a", 0, 2), told("b", 0, 2), told("a", 1, 3)], "a: a receipt begins at 1, the one before it ended at 2"),
        ([*RECEIPTS, told("c", 0, 1)], "c: there is no such partition"),
        ([told("a", 0, 3, passed=2), told("b", 0, 2)], "a 0-3: read 3 is not filtered + rejected + passed"),
        ([told("a", 0, 3, emitted=4), told("b", 0, 2)], "a 0-3: emitted 4 is not delivered + deduplicated"),
        ([told("a", 0, 3, delivered=2, emitted=2), told("b", 0, 2)], "5 records were fed, the receipts tell of 4"),
    ],
)
def test_what_is_wrong_with_the_receipts_is_said(receipts: list[dict[str, object]], fault: str) -> None:
    assert fault in account(SOURCE, arrived([b"a0", b"a1", b"a2", b"b0", b"b1"]), receipts, SPANS).faults


def test_a_gap_that_is_told_covers_its_stretch() -> None:
    source = {"a": [b"a0", b"a2"], "b": SOURCE["b"]}
    receipts = [told("a", 0, 1), told("b", 0, 2), told("a", 2, 3)]
    gap = {"partition": "a", "incarnation": 0, "begin": 1, "end": 2}
    target = arrived([b"a0", b"a2", b"b0", b"b1"])
    assert account(source, target, receipts, SPANS).faults
    assert account(source, target, receipts, SPANS, [gap]) == EXACT


def test_a_new_incarnation_is_a_partition_of_its_own() -> None:
    source = {"a": [*SOURCE["a"], b"new"], "b": SOURCE["b"]}
    receipts = [*RECEIPTS, told("a", 0, 1, incarnation=1)]
    target = arrived([b"a0", b"a1", b"a2", b"new", b"b0", b"b1"])
    assert account(source, target, receipts, SPANS).faults == ("a~1: there is no such partition",)
    assert account(source, target, receipts, SPANS | {"a~1": Span(0, 1)}) == EXACT


def test_surplus_is_what_the_receipts_tell_together() -> None:
    receipts = [told("a", 0, 3, duplicates=2), told("b", 0, 2, duplicates=1)]
    assert account(SOURCE, arrived([b"a0"]), receipts, SPANS).duplicates == 3


def test_records_that_cannot_be_told_apart_are_refused() -> None:
    with pytest.raises(AssertionError, match="fed twice"):
        account({"a": [b"x", b"x"]}, {}, [], {})
