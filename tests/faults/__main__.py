"""`make faults`: every choice of every fault, with real servers and processes; writes docs/faults.md.

    python -m tests.faults [--seed N] [--page FILE] [--again] [pytest arguments]

Without a seed a new one is taken and printed; with it the same choices are made again. Arguments may name tests: then
only these are run, and the page is written only where `--page` says so. `--again` runs what has failed in the last run
of all, one after the other with nothing beside it, and writes the page with that: it says what passed so.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "faults.md"
KEPT = ROOT / "build" / "faults.json"
"""Of the last run of all."""


@dataclass
class Table:
    """Collects the rows of the session's tests, in the order of their names. A row comes with the report of the
    teardown, a failure with that of any phase."""

    rows: dict[str, dict[str, object]] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    alone: set[str] = field(default_factory=set)
    """What failed beside others, and passed alone."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        from tests.faults.rows import PROPERTY  # not before pytest has loaded it, which rewrites its assertions

        if report.failed:
            self.failed.add(report.nodeid)
        told = dict(report.user_properties).get(PROPERTY)
        if isinstance(told, dict):
            self.rows[report.nodeid] = told

    def page(self, seed: int, seconds: float) -> str:
        """The page as Markdown."""
        apart = f"; {len(self.alone)} more failed beside others, and passed alone" if self.alone else ""
        head = (
            "# What was broken, and what happened\n\n"
            "Written by `make faults`: real brokers, Spark, databases and processes on one machine. Lost, repeated and"
            " reordered records are counted one by one, the target against the source; duplicates are what the receipts"
            " say. Seconds run from the fault to the next settled receipt. Commands start from a process that has its"
            " modules loaded, tasks of Airflow in the usual way.\n\n"
            f"{datetime.date.today().isoformat()}, commit {_commit()}, seed {seed}, {len(self.rows)} faults in"
            f" {seconds / 60:.0f} min, {len(self.failed)} failed{apart}.\n\n"
        )
        columns = ("fault", "where", "database", "lost", "repeated", "reordered", "duplicates", "seconds", "condition")
        lines = ["| " + " | ".join((*columns, "result")) + " |", "|" + "---|" * (len(columns) + 1)]
        for test, told in sorted(self.rows.items()):
            outcome = "failed" if test in self.failed else "passed alone" if test in self.alone else "passed"
            cells = ["" if told[column] is None else str(told[column]) for column in columns]
            lines.append("| " + " | ".join((*cells, outcome)) + " |")
        return head + "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--page", type=Path, default=None)
    parser.add_argument("--again", action="store_true")
    chosen, rest = parser.parse_known_args()
    if chosen.again:
        return _again(chosen.page or PAGE)
    seed = chosen.seed if chosen.seed is not None else random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}; the same again: make faults SEED={seed}", flush=True)
    named = any(Path(word.partition("::")[0]).exists() for word in rest)
    table, started = Table(), time.monotonic()
    code = _run(table, seed, ["-n", "2", *rest, *([] if named else [str(ROOT / "tests")])])
    page = chosen.page or (None if rest else PAGE)
    if table.rows and page:
        _write(table, page, seed, time.monotonic() - started)
    return code


def _again(page: Path) -> int:
    told = json.loads(KEPT.read_text())
    before, table, started = Table(told["rows"], {*told["failed"]}, {*told["alone"]}), Table(), time.monotonic()
    code = _run(table, told["seed"], ["-n", "0", *sorted(before.failed)])
    alone = before.alone | (before.failed & table.rows.keys()) - table.failed
    whole = Table(before.rows | table.rows, before.failed - alone, alone)
    _write(whole, page, told["seed"], told["seconds"] + time.monotonic() - started)
    return code


def _run(table: Table, seed: int, arguments: list[str]) -> int:
    every = ["-m", "fault", "--faults", "all", "--seed", str(seed), "--require-servers", *arguments]
    return int(pytest.main(every, plugins=[table]))


def _write(table: Table, page: Path, seed: int, seconds: float) -> None:
    page.write_text(table.page(seed, seconds))
    kept = {"rows": table.rows, "failed": sorted(table.failed), "alone": sorted(table.alone)}
    KEPT.parent.mkdir(exist_ok=True)
    KEPT.write_text(json.dumps({**kept, "seed": seed, "seconds": seconds}))
    print(f"wrote {page}")


def _commit() -> str:
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
