"""`make faults`: every choice of every fault, with real servers and processes; writes docs/faults.md.

    python -m tests.faults [--seed N] [--page FILE] [pytest arguments]

Without a seed a new one is taken and printed; with it the same choices are made again. Arguments may name tests: then
only these are run, and the page is written only where `--page` says so.
"""

from __future__ import annotations

import argparse
import datetime
import random
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "faults.md"


@dataclass
class Table:
    """Collects the rows of the session's tests, in the order of their names. A row comes with the report of the
    teardown, a failure with that of any phase."""

    rows: dict[str, dict[str, object]] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        from tests.faults.rows import PROPERTY  # not before pytest has loaded it, which rewrites its assertions

        if report.failed:
            self.failed.add(report.nodeid)
        told = dict(report.user_properties).get(PROPERTY)
        if isinstance(told, dict):
            self.rows[report.nodeid] = told

    def page(self, seed: int, seconds: float) -> str:
        """The page as Markdown."""
        head = (
            "# What was broken, and what happened\n\n"
            "Written by `make faults`: real brokers, Spark, databases and processes on one machine. Lost, repeated and"
            " reordered records are counted one by one, the target against the source; duplicates are what the receipts"
            " say. Seconds run from the fault to the next settled receipt. Commands start from a process that has its"
            " modules loaded, tasks of Airflow in the usual way.\n\n"
            f"{datetime.date.today().isoformat()}, commit {_commit()}, seed {seed}, {len(self.rows)} faults in"
            f" {seconds / 60:.0f} min, {len(self.failed)} failed.\n\n"
        )
        columns = ("fault", "where", "database", "lost", "repeated", "reordered", "duplicates", "seconds", "condition")
        lines = ["| " + " | ".join((*columns, "result")) + " |", "|" + "---|" * (len(columns) + 1)]
        for test, told in sorted(self.rows.items()):
            outcome = "failed" if test in self.failed else "passed"
            cells = ["" if told[column] is None else str(told[column]) for column in columns]
            lines.append("| " + " | ".join((*cells, outcome)) + " |")
        return head + "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--page", type=Path, default=None)
    chosen, rest = parser.parse_known_args()
    seed = chosen.seed if chosen.seed is not None else random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}; the same again: make faults SEED={seed}", flush=True)
    table, started = Table(), time.monotonic()
    arguments = ["-m", "fault", "--faults", "all", "--seed", str(seed), "-n", "2", "--require-servers", *rest]
    everything = [] if any(Path(word.partition("::")[0]).exists() for word in rest) else [str(ROOT / "tests")]
    code = pytest.main([*arguments, *everything], plugins=[table])
    page = chosen.page or (None if rest else PAGE)
    if table.rows and page:
        page.write_text(table.page(seed, time.monotonic() - started))
        print(f"wrote {page}")
    return int(code)


def _commit() -> str:
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
