"""A file into two tables of a database in turn, while processes are killed: both are compared row by row with what was
written into the file, by the driver of the database alone."""

from __future__ import annotations

import json
import random
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest

from tests.faults.kit import attempts
from tests.faults.kit.filling import ROWS
from tests.faults.kit.processes import ended, wait_for
from tests.faults.rows import FaultRow
from tests.site import Site

_FIRST = "payload:text CONTAINS '3'"
"""About every other record, so that each transaction has rows of both tables."""


@dataclass
class SeveralFilling:
    site: Site
    system: str
    database: Any
    """With the tables `t` and `u`, of a column `n` without a key."""
    lock: str
    """A statement that keeps others from writing `t` for as long as its session lasts."""
    waiting: str
    """Has a row while somebody waits for that."""
    written: int = 0

    @property
    def where(self) -> str:
        return f"file → {self.system}, two tables"

    def apply(self) -> None:
        rules = [{"name": "first", "when": _FIRST}, {"name": "second", "when": f"NOT ({_FIRST})", "to": "u"}]
        sink, parse = self.database.sink("t"), {"format": "json", "fields": {"n": "int64"}}
        source: dict[str, Any] = {"source": {"file": {"path": "a.log"}}, "limits": {"range_records": 1_500}}
        self.site.apply("fill", {**source, "sink": sink, "parse": parse, "rules": rules})

    def feed(self, count: int) -> None:
        with (self.site.folder / "a.log").open("a") as file:
            file.writelines(json.dumps({"n": self.written + n}) + "\n" for n in range(count))
        self.written += count

    def start(self) -> Any:
        return attempts.start(self.site, "fill")

    def run_until_done(self) -> None:
        attempts.run_until_done(self.site, "fill")

    def check(self, row: FaultRow) -> None:
        """Each row once, in the table that its rule names."""
        row.lost = row.repeated = 0
        for table, first in (("t", True), ("u", False)):
            found = Counter(n for (n,) in self.database.run(f"SELECT n FROM {table}"))
            expected = Counter(n for n in range(self.written) if ("3" in str(n)) is first)
            row.lost += sum((expected - found).values())
            row.repeated += sum((found - expected).values())
        receipts = self.site.json("receipts", "fill", "--last", "1000")["receipts"]
        row.duplicates = sum(one["possible_duplicates"] for one in receipts)
        assert (row.lost, row.repeated, row.duplicates) == (0, 0, 0)
        assert sum(one["delivered"] + one["deduplicated"] for one in receipts) == self.written


class SeveralFillingFaults:
    """Of each database: inherit it, and give it a fixture `several`."""

    @pytest.mark.parametrize("step", ["batch-written", "lane-started", "before-receipt", "executed"])
    def test_a_process_killed_while_it_writes_two_tables(
        self, several: SeveralFilling, row: FaultRow, seeded: random.Random, step: str
    ) -> None:
        row.describe(f"SIGKILL at {step}", where=several.where, database="SQLite")
        several.feed(ROWS)
        several.apply()
        several.site.fault(step, passes=seeded.randrange(2))
        with several.start() as driver:
            ended(driver)
        row.strikes()
        several.feed(500)
        several.run_until_done()
        row.moves_again()
        several.check(row)

    @pytest.mark.parametrize("written", [0, 2_000])
    def test_a_process_killed_between_the_rows_of_two_tables(
        self, several: SeveralFilling, row: FaultRow, written: int
    ) -> None:
        """It waits for `t`, and has written rows into `u`, to which the first record of a batch goes. So many rows were
        written before."""
        row.describe("SIGKILL between the rows of two tables", where=several.where, database="SQLite")
        several.apply()
        several.feed(written)
        several.run_until_done()
        several.feed(500)
        with closing(several.database.connected()) as other, other.cursor() as cursor:
            cursor.execute(several.lock)
            with several.start() as driver:
                wait_for(lambda: several.database.run(several.waiting), "a writer that waits for the other table")
                driver.kill()
                ended(driver)
            row.strikes()
        several.run_until_done()
        row.moves_again()
        several.check(row)
