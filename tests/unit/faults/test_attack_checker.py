"""The checker of `make attack` sees what is lost, repeated, foreign or out of order."""

from __future__ import annotations

from typing import Any

from tests.attack.checker import Link

GIVEN = {"a": ["a 0", "a 1", "a 2"], "b": ["b 0"]}
RECEIPTS = [
    {"delivered": 3, "deduplicated": 0, "duplicates": 0, "possible_duplicates": None},
    {"delivered": 0, "deduplicated": 1},
]


def link(there: dict[str, list[str]], receipts: list[dict[str, Any]] | None = None, **more: Any) -> Link:
    return Link("some", GIVEN, there, RECEIPTS if receipts is None else receipts, **more).compare()


def test_everything_once_and_in_order_is_well() -> None:
    assert link({"q0": ["a 0", "b 0", "a 1", "a 2"]}).faults == []


def test_a_missing_record_is_lost() -> None:
    assert link({"q0": ["a 0", "a 2", "b 0"]}).faults == ["1 lost: a 1"]


def test_a_record_that_is_given_twice_has_to_be_there_twice() -> None:
    assert Link("some", {"a": ["x", "x"]}, {"q": ["x"]}, []).compare().faults == ["1 lost: x"]


def test_a_repeat_that_no_receipt_tells_is_a_fault() -> None:
    there = {"q0": ["a 0", "a 1", "a 1", "a 2", "b 0"]}
    assert link(there).faults == ["1 repeated, and the receipts tell of 0"]
    assert link(there, [*RECEIPTS, {"duplicates": 1}]).faults == []
    assert link(there, [*RECEIPTS, {"delivered": 1}]).faults == []


def test_a_record_that_nobody_gave_is_a_fault_unless_nobody_can_know() -> None:
    there = {"q0": ["a 0", "a 1", "a 2", "a 3", "b 0"]}
    assert link(there).faults == ["1 that nobody gave: a 3"]
    assert link(there, unsure=frozenset({"a 3"})).faults == []


def test_order_is_that_of_each_source_partition_in_each_target_partition() -> None:
    assert link({"q0": ["a 0", "a 2", "b 0"], "q1": ["a 1"]}).faults == []
    assert "out of order" in link({"q0": ["a 0", "a 2", "a 1", "b 0"]}).faults[0]


def test_a_record_that_comes_again_later_is_not_out_of_order() -> None:
    assert not link({"q0": ["a 0", "a 1", "a 2", "a 0", "a 1", "b 0"]}).disorder
