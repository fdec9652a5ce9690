"""`make faults`: every choice of every fault, with real servers and processes; writes docs/faults.md.

    python -m tests.faults [--seed N] [--page FILE] [--again] [pytest arguments]

Without a seed a new one is taken and printed; with it the same choices are made again. Arguments may name files of
tests: then only these are run, and their parts of the page replaced. Where an argument chooses among the tests of a
file the page stays, unless `--page` names one. `--again` runs what has failed in the last run, one after the other with
nothing beside it, and writes the page with that: it says what passed so.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
import subprocess
import sys
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import pytest

from tests.faults.page import RunOfFaults, page_of, parts_of, parts_of_run

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "faults.md"
KEPT = ROOT / "build" / "faults.json"
"""The last run whose page was written."""


@dataclass
class Table:
    """Collects the rows of the session's tests. A row comes with the report of the teardown, a failure with that of
    any phase."""

    rows: dict[str, dict[str, object]] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        from tests.faults.rows import PROPERTY  # not before pytest has loaded it, which rewrites its assertions

        if report.failed:
            self.failed.add(report.nodeid)
        told = dict(report.user_properties).get(PROPERTY)
        if isinstance(told, dict):
            self.rows[report.nodeid] = told


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
    files = [word for word in rest if Path(word).is_file()]
    table = Table()
    code = _run(table, seed, ["-n", "2", *rest, *([] if any(map(_names_tests, rest)) else [str(ROOT / "tests")])])
    if page := chosen.page or (PAGE if files == rest else None):
        run = RunOfFaults(datetime.date.today().isoformat(), _commit(), seed, table.rows, table.failed)
        _write(run, page, whole=not rest)
    return code


def _names_tests(word: str) -> bool:
    return Path(word.partition("::")[0]).exists()


def _again(page: Path) -> int:
    kept = json.loads(KEPT.read_text())
    before = RunOfFaults(**{**kept, "failed": {*kept["failed"]}, "alone": {*kept["alone"]}})
    table = Table()
    code = _run(table, before.seed, ["-n", "0", *sorted(before.failed)])
    alone = before.alone | (before.failed & table.rows.keys()) - table.failed
    run = replace(before, rows={**before.rows, **table.rows}, failed=before.failed - alone, alone=alone)
    _write(run, page, whole=False)
    return code


def _run(table: Table, seed: int, arguments: list[str]) -> int:
    every = ["-m", "fault", "--faults", "all", "--seed", str(seed), "--require-servers", *arguments]
    return int(pytest.main(every, plugins=[table]))


def _write(run: RunOfFaults, page: Path, *, whole: bool) -> None:
    """Nothing where no test was run: a mistake in an argument costs no page."""
    if not run.rows:
        return
    before = {} if whole or not page.exists() else parts_of(page.read_text())
    there = {file: part for file, part in before.items() if (ROOT / file).exists()}
    page.write_text(page_of({**there, **parts_of_run(run)}))
    KEPT.parent.mkdir(exist_ok=True)
    KEPT.write_text(json.dumps({**asdict(run), "failed": sorted(run.failed), "alone": sorted(run.alone)}))
    print(f"wrote {page}")


def _commit() -> str:
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
