"""A table of a database as a source, while processes are killed and others write to it: its target is compared with it,
number by number."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import pytest

from tests.faults.kit import attempts
from tests.faults.kit.filling import Tables as SinkTables
from tests.faults.rows import FaultRow
from tests.site import Site

ROWS = 6_000
STEPS = ("batch-written", "found", "planned", "lane-started", "before-receipt", "executed", "settled")
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
    system: str
    """As people call it."""
    database: Tables
    into: str
    filled: str
    """The statement that inserts rows, with their `{count}`."""
    writing: Callable[[Any, random.Random], AbstractContextManager[None]]
    """Others write the table until the context is left."""

    @property
    def where(self) -> str:
        return f"{self.system} → {self.into}"

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
        return attempts.attempt(self.site, "copy", *words)

    def run_until_done(self) -> None:
        attempts.run_until_done(self.site, "copy")

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


class EmptyingFaults:
    """Of each database: inherit it, and give it a fixture `emptying`."""

    @pytest.mark.parametrize("step", STEPS)
    @pytest.mark.fault(costly=True)
    def test_a_process_killed_at_a_step(
        self, emptying: Emptying, row: FaultRow, seeded: random.Random, step: str
    ) -> None:
        row.describe(f"SIGKILL at {step}", where=emptying.where, database="SQLite")
        emptying.feed(ROWS)
        emptying.site.fault(step, passes=seeded.randrange(2))
        emptying.attempt()
        row.strikes()
        emptying.feed(500)
        emptying.run_until_done()
        row.moves_again()
        emptying.check(row)

    def test_kills_beside_busy_writers(self, emptying: Emptying, row: FaultRow, seeded: random.Random) -> None:
        row.describe("SIGKILL at random steps, writers busy", where=emptying.where, database="SQLite")
        with emptying.writing(emptying.database, seeded):
            row.strikes()
            for number in range(5):
                emptying.site.fault(seeded.choice(STEPS), passes=seeded.randrange(2))
                emptying.attempt(*(("--window", "4s") if number % 2 else ()))
        emptying.run_until_done()
        row.moves_again()
        emptying.check(row)

    @pytest.mark.parametrize("what", CHANGES)
    @pytest.mark.parametrize("step", ["batch-written", "before-receipt", "lane-started"])
    @pytest.mark.fault(costly=True)
    def test_rows_that_change_between_two_attempts_stop_nothing(
        self, emptying: Emptying, row: FaultRow, step: str, what: str
    ) -> None:
        """What is in a table counts, also when it is gone in the source. A file loses what no receipt covers, and gets
        what is there now."""
        row.describe(f"SIGKILL at {step}, then rows {what}", where=emptying.where, database="SQLite")
        emptying.feed(ROWS)
        emptying.site.fault(step)
        assert emptying.attempt() != 0
        kept = Counter(emptying.arrived()) if emptying.into == "table" else Counter[int]()
        emptying.database.run(CHANGES[what])
        emptying.feed(10)
        emptying.run_until_done()
        left = Counter(number for (number,) in emptying.database.run("SELECT id FROM orders"))
        assert Counter(emptying.arrived()) == left | kept
