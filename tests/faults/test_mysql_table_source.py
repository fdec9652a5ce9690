"""A table of MySQL as a source, while processes are killed and others write to it: the target is compared with the
table, number by number."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from tests.faults.kit.journeys import SHORT_LEASES, TRY_AGAIN
from tests.faults.kit.processes import ended
from tests.faults.rows import FaultRow
from tests.mariadb import Database, MariaDB
from tests.mysql_writers import TABLE, writing
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]

ATTEMPTS = 12
ROWS = 6_000
STEPS = ("batch-written", "found", "planned", "lane-started", "before-receipt", "executed", "settled")
KILLED = -9
"""By a fault that an attempt before did not reach."""
FIELDS = {"id": "int64", "writer": "int32", "note": "text"}


@dataclass
class Emptying:
    """A table into a file, or into another table."""

    site: Site
    database: Database
    into: str

    def apply(self) -> None:
        self.database.run(
            TABLE, "CREATE TABLE copies (number bigint AUTO_INCREMENT PRIMARY KEY, id bigint, writer int, note text)"
        )
        sinks = {"file": {"file": {"path": "out.jsonl"}}, "table": self.database.sink("copies")}
        self.site.apply(
            "copy",
            {
                "source": self.database.source("orders", every_s=0.05, open_transactions_s=1),
                "sink": sinks[self.into],
                "parse": {"format": "json", "fields": FIELDS},
                "limits": {"range_records": 1_500},
            },
        )

    def feed(self, count: int) -> None:
        self.database.run(f"INSERT INTO orders (writer) SELECT 0 FROM seq_1_to_{count}")

    def attempt(self, *words: str) -> int:
        with self.site.start("run", "copy", "--engine", "inline", *words) as driver:
            return ended(driver)

    def run_until_done(self) -> None:
        codes = []
        for _ in range(ATTEMPTS):
            codes.append(self.attempt())
            if codes[-1] == 0:
                return
            assert codes[-1] in (*TRY_AGAIN, KILLED), codes
        raise AssertionError(f"not done after {ATTEMPTS} attempts: {codes}")

    def arrived(self) -> list[int]:
        if self.into == "table":
            return [number for (number,) in self.database.run("SELECT id FROM copies ORDER BY number")]
        return [json.loads(line)["id"] for line in (self.site.folder / "out.jsonl").read_text().splitlines()]

    def check(self, row: FaultRow) -> None:
        arrived = self.arrived()
        found, committed = Counter(arrived), Counter(number for (number,) in self.database.run("SELECT id FROM orders"))
        row.lost, row.repeated = sum((committed - found).values()), sum((found - committed).values())
        row.reordered = int(arrived != sorted(arrived))
        assert (row.lost, row.repeated, row.reordered) == (0, 0, 0)
        receipts = self.site.json("receipts", "copy", "--last", "1000")["receipts"]
        row.duplicates = sum(one["possible_duplicates"] for one in receipts)
        assert sum(one["delivered"] + one["deduplicated"] for one in receipts) == len(arrived)
        assert row.duplicates == 0


@pytest.fixture(params=["file", "table"])
def emptying(bare_site: Site, mariadb: MariaDB, request: pytest.FixtureRequest) -> Emptying:
    bare_site.settings.update(SHORT_LEASES)
    made = Emptying(bare_site, Database(mariadb), request.param)
    made.apply()
    return made


@pytest.mark.parametrize("step", STEPS)
def test_a_process_killed_at_a_step(emptying: Emptying, row: FaultRow, seeded: random.Random, step: str) -> None:
    row.describe(f"SIGKILL at {step}", where=f"MySQL → {emptying.into}", database="SQLite")
    emptying.feed(ROWS)
    emptying.site.fault(step, passes=seeded.randrange(2))
    emptying.attempt()
    row.strikes()
    emptying.feed(500)
    emptying.run_until_done()
    row.moves_again()
    emptying.check(row)


def test_kills_beside_busy_writers(emptying: Emptying, row: FaultRow, seeded: random.Random) -> None:
    row.describe("SIGKILL at random steps, writers busy", where=f"MySQL → {emptying.into}", database="SQLite")
    with writing(emptying.database, seeded):
        row.strikes()
        for number in range(5):
            emptying.site.fault(seeded.choice(STEPS), passes=seeded.randrange(2))
            emptying.attempt(*(("--window", "4s") if number % 2 else ()))
    emptying.run_until_done()
    row.moves_again()
    emptying.check(row)


CHANGES: dict[str, Any] = {
    "deleted": "DELETE FROM orders WHERE id % 3 = 0",
    "all deleted": "DELETE FROM orders",
    "changed": "UPDATE orders SET note = 'later'",
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("step", ["batch-written", "before-receipt", "lane-started"])
def test_rows_that_change_between_two_attempts_stop_nothing(
    emptying: Emptying, row: FaultRow, step: str, what: str
) -> None:
    """What is in a table counts, also when it is gone in the source. A file loses what no receipt covers, and gets what
    is there now."""
    row.describe(f"SIGKILL at {step}, then rows {what}", where=f"MySQL → {emptying.into}", database="SQLite")
    emptying.feed(ROWS)
    emptying.site.fault(step)
    assert emptying.attempt() != 0
    kept = Counter(emptying.arrived()) if emptying.into == "table" else Counter[int]()
    emptying.database.run(CHANGES[what])
    emptying.feed(10)
    emptying.run_until_done()
    left = Counter(number for (number,) in emptying.database.run("SELECT id FROM orders"))
    assert Counter(emptying.arrived()) == left | kept
