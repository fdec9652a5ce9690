"""docs/faults.md: one part for each file of tests, which says when and at which commit it was run. A run of some files
replaces their parts, and leaves the others as they are. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

COLUMNS = ("fault", "where", "database", "lost", "repeated", "reordered", "duplicates", "seconds", "condition")
_HEAD = (
    "# What was broken, and what happened\n\n"
    "Written by `make faults`: real brokers, Spark, databases and processes on one machine. Lost, repeated and"
    " reordered records are counted one by one, the target against the source; duplicates are what the receipts"
    " say. Seconds run from the fault to the next settled receipt. Commands start from a process that has its"
    " modules loaded, tasks of Airflow in the usual way. Each part says when it was run: `make faults` runs all,"
    " `make faults FILES=tests/faults/test_files.py` one.\n"
)
_COUNTED = re.compile(r"^(?P<when>\S+), .*?: (?P<rows>[\d,]+) faults?, (?P<failed>\d+) failed", re.MULTILINE)


@dataclass(frozen=True)
class RunOfFaults:
    """`when` is a date; `rows` by the id of their test, with the columns of the table; `failed`: tests that failed,
    some of which may have no row; `alone`: tests that failed beside others, and passed when they were run once more
    with nothing beside them."""

    when: str
    commit: str
    seed: int
    rows: Mapping[str, Mapping[str, object]]
    failed: Set[str] = field(default_factory=frozenset)
    alone: Set[str] = field(default_factory=frozenset)


def parts_of(page: str) -> dict[str, str]:
    """The parts of a page by file, each as it is written there."""
    return {part.partition("\n")[0]: part.partition("\n\n")[2].rstrip() for part in page.split("\n## ")[1:]}


def parts_of_run(run: RunOfFaults) -> dict[str, str]:
    """By file, in the order of the tests."""
    of_files: dict[str, list[str]] = {}
    for test in sorted(run.rows.keys() | run.failed):
        of_files.setdefault(test.partition("::")[0], []).append(test)
    return {file: _part(run, tests) for file, tests in of_files.items()}


def page_of(parts: Mapping[str, str]) -> str:
    """The page as Markdown."""
    told = [found for part in parts.values() if (found := _COUNTED.match(part))]
    rows = sum(int(one["rows"].replace(",", "")) for one in told)
    failed = sum(int(one["failed"]) for one in told)
    since = min((one["when"] for one in told), default="")
    counts = f"{rows:,} faults in {len(parts)} files, {failed} failed; the oldest part is of {since}.\n"
    return "\n".join([_HEAD, counts, *(f"## {file}\n\n{parts[file]}\n" for file in sorted(parts))])


def _part(run: RunOfFaults, tests: list[str]) -> str:
    apart = [test for test in tests if test in run.alone]
    failed = sum(test in run.failed for test in tests)
    counted = f"{len(tests)} fault{'s' * (len(tests) != 1)}, {failed} failed"
    if apart:
        counted += f"; {len(apart)} more failed beside others, and passed alone"
    lines = [f"{run.when}, commit {run.commit}, seed {run.seed}: {counted}.", ""]
    lines += ["| " + " | ".join((*COLUMNS, "result")) + " |", "|" + "---|" * (len(COLUMNS) + 1)]
    return "\n".join([*lines, *(_line(run, test) for test in tests)])


def _line(run: RunOfFaults, test: str) -> str:
    result = "failed" if test in run.failed else "passed alone" if test in run.alone else "passed"
    return "| " + " | ".join((*_cells(run.rows.get(test, {"fault": test.partition("::")[2]})), result)) + " |"


def _cells(told: Mapping[str, object]) -> Iterable[str]:
    return ("" if (cell := told.get(column)) is None else str(cell) for column in COLUMNS)
