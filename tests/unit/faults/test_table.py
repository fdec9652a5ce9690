"""The page of `make faults` tells which rows failed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Literal

import pytest

from tests.faults.__main__ import Table
from tests.faults.rows import PROPERTY, FaultRow


def report(
    test: str, when: Literal["setup", "call", "teardown"], outcome: Literal["passed", "failed"]
) -> pytest.TestReport:
    """The row of a test comes with its teardown."""
    told = [(PROPERTY, asdict(FaultRow(fault=test)))] if when == "teardown" else []
    return pytest.TestReport(test, (test, 0, test), {}, outcome, None, when, user_properties=told)


def test_a_row_fails_with_any_phase_of_its_test() -> None:
    table = Table()
    for test, called in (("a", "passed"), ("b", "failed")):
        table.pytest_runtest_logreport(report(test, "setup", "passed"))
        table.pytest_runtest_logreport(report(test, "call", called))
        table.pytest_runtest_logreport(report(test, "teardown", "passed"))
    page = table.page(seed=7, seconds=60)
    assert "seed 7, 2 faults in 1 min, 1 failed" in page
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith(("| a", "| b"))]
    assert [(cells[0], cells[-1]) for cells in rows] == [("| a", "passed |"), ("| b", "failed |")]


def test_what_failed_beside_others_and_passed_alone_is_no_failure_and_is_told() -> None:
    table = Table({name: asdict(FaultRow(fault=name)) for name in ("a", "b")}, {"b"}, {"a"})
    page = table.page(seed=7, seconds=60)
    assert "2 faults in 1 min, 1 failed; 1 more failed beside others, and passed alone." in page
    assert [line.rpartition(" | ")[2] for line in page.splitlines()[-2:]] == ["passed alone |", "failed |"]
