"""What `make faults` runs, and the page that tells of it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import asdict
from typing import Literal

import pytest

from tests.faults.__main__ import PAGE, Table
from tests.faults.page import RunOfFaults, page_of, parts_of, parts_of_run
from tests.faults.rows import PROPERTY, FaultRow


def report(
    test: str, when: Literal["setup", "call", "teardown"], outcome: Literal["passed", "failed"]
) -> pytest.TestReport:
    """The row of a test comes with its teardown."""
    told = [(PROPERTY, asdict(FaultRow(fault=test)))] if when == "teardown" else []
    return pytest.TestReport(test, (test, 0, test), {}, outcome, None, when, user_properties=told)


def run(when: str, *tests: str, failed: Set[str] = frozenset(), alone: Set[str] = frozenset()) -> RunOfFaults:
    rows = {test: asdict(FaultRow(fault=test.partition("::")[2], lost=0)) for test in tests}
    return RunOfFaults(when, "abc", 7, rows, failed, alone)


def test_a_row_fails_with_any_phase_of_its_test() -> None:
    table = Table()
    for test, called in (("a", "passed"), ("b", "failed")):
        table.pytest_runtest_logreport(report(test, "setup", "passed"))
        table.pytest_runtest_logreport(report(test, "call", called))
        table.pytest_runtest_logreport(report(test, "teardown", "passed"))
    assert (table.rows.keys(), table.failed) == ({"a", "b"}, {"b"})


def test_each_file_has_its_part_and_the_page_counts_all() -> None:
    page = page_of(parts_of_run(run("2026-11-02", "t/b.py::two", "t/a.py::z", "t/a.py::one", failed={"t/a.py::z"})))
    assert "3 faults in 2 files, 1 failed; the oldest part is of 2026-11-02." in page
    parts = parts_of(page)
    assert [*parts] == ["t/a.py", "t/b.py"]
    assert parts["t/a.py"].startswith("2026-11-02, commit abc, seed 7: 2 faults, 1 failed.\n\n| fault | where |")
    assert parts["t/a.py"].splitlines()[-2:] == [
        "| one |  |  | 0 |  |  |  |  |  | passed |",
        "| z |  |  | 0 |  |  |  |  |  | failed |",
    ]
    assert "1 fault, 0 failed." in parts["t/b.py"]


def test_a_run_of_some_files_replaces_their_parts_alone() -> None:
    before = page_of(parts_of_run(run("2026-11-01", *(f"t/{file}.py::old {n}" for file in "abc" for n in range(9)))))
    assert page_of(parts_of(before)) == before
    after = page_of({**parts_of(before), **parts_of_run(run("2026-11-02", "t/b.py::new"))})
    assert "19 faults in 3 files, 0 failed; the oldest part is of 2026-11-01." in after
    assert {file: parts_of(after)[file] == parts_of(before)[file] for file in parts_of(after)} == {
        "t/a.py": True,
        "t/b.py": False,
        "t/c.py": True,
    }


def test_what_failed_beside_others_and_passed_alone_is_no_failure_and_is_told() -> None:
    told = run("2026-11-01", "t/a.py::a", "t/a.py::b", failed={"t/a.py::b"}, alone={"t/a.py::a"})
    part = parts_of_run(told)["t/a.py"]
    assert "2 faults, 1 failed; 1 more failed beside others, and passed alone." in part
    assert [line.rpartition(" | ")[2] for line in part.splitlines()[-2:]] == ["passed alone |", "failed |"]


def test_a_failure_without_a_row_is_told() -> None:
    part = parts_of_run(run("2026-11-01", "t/a.py::a", failed={"t/a.py::b[1]"}))["t/a.py"]
    assert "2 faults, 1 failed." in part
    assert part.splitlines()[-1] == "| b[1] |  |  |  |  |  |  |  |  | failed |"


def test_the_page_that_is_there_can_be_read_and_written_again() -> None:
    page = PAGE.read_text()
    assert parts_of(page)
    assert page_of(parts_of(page)) == page
