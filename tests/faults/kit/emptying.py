"""A table of a database as a source, whose target is compared with it, number by number."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any, Protocol

from tests.faults.kit.filling import Tables as SinkTables
from tests.faults.kit.journeys import TRY_AGAIN
from tests.faults.kit.processes import ended
from tests.faults.rows import FaultRow
from tests.site import Site

ATTEMPTS = 12
ROWS = 6_000
STEPS = ("batch-written", "found", "planned", "lane-started", "before-receipt", "executed", "settled")
KILLED = -9
"""By a fault that an attempt before did not reach."""
CHANGES: dict[str, Any] = {
    "deleted": "DELETE FROM orders WHERE id % 3 = 0",
    "all deleted": "DELETE FROM orders",
    "changed": "UPDATE orders SET note = 'later'",
}
FIELDS = {"id": "int64", "writer": "int32", "note": "text"}


class Tables(SinkTables, Protocol):
    def source(self, table: str, **more: Any) -> dict[str, Any]: ...


@dataclass
class Emptying:
    """A table into a file, or into another table."""

    site: Site
    database: Tables
    into: str
    filled: str
    """The statement that inserts rows, with their `{count}`."""

    def apply(self, table: str, number: str) -> None:
        """`number` is a column that counts."""
        self.database.run(table, f"CREATE TABLE copies (number {number}, id bigint, writer int, note text)")
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
        self.database.run(self.filled.format(count=count))

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
