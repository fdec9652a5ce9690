"""A connector that follows the changes of the table `orders` into a file, or into the table `copies` of a database.

The target is compared with the table, and the history of each row with what triggers of the test have noted. Knows
nothing of positions, chunks or receipts.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import pytest

from tests import mariadb, postgres_tables
from tests.faults.kit import attempts
from tests.faults.kit.row_events import contradictions, state_of
from tests.faults.rows import FaultRow
from tests.site import Site

Database = mariadb.Database | postgres_tables.Database
STEPS = ("batch-written", "found", "planned", "lane-started", "before-receipt", "executed", "settled", "confirmed")
FIELDS = {"id": "int64", "note": "text"}
COPIES = "CREATE TABLE copies (id bigint PRIMARY KEY, note varchar(99))"
TARGETS = {"file": "file", "table": "table", "mysql": "table of MariaDB", "postgresql": "table of PostgreSQL"}
"""What each is called in a row; `table` is one of the database that is followed."""


@dataclass
class Following:
    site: Site
    database: Database
    into: str
    target: Database | None
    """None for a file."""
    snapshot: str = "never"
    snapshot_rows: int = 2_000
    tables: tuple[str, ...] = ("orders",)

    @property
    def where(self) -> str:
        kind = "MariaDB" if isinstance(self.database, mariadb.Database) else "PostgreSQL"
        return f"changes of {kind} → {TARGETS[self.into]}"

    def apply(self) -> None:
        rows = {"snapshot": self.snapshot, "snapshot_rows": self.snapshot_rows}
        source = self.database.changes(*self.tables, every_s=0.05, schemas=self.target is not None, **rows)
        document = {"source": source, "limits": {"range_records": 1_500}}
        if self.target is None:
            self.site.apply("copy", {**document, "sink": {"file": {"path": "out.jsonl"}}})
        else:
            sink, parse = self.target.sink("copies", mode="upsert"), {"format": "debezium", "fields": FIELDS}
            self.site.apply("copy", {**document, "sink": sink, "parse": parse})

    def begin_without(self, other: str) -> None:
        """With another table alone: `orders` joins it with the next run."""
        self.tables = (other,)
        self.apply()
        assert self.attempt() == 0
        self.tables = (other, "orders")
        self.apply()

    def attempts_with_kills(self, seeded: random.Random) -> None:
        for _ in range(4):
            self.site.fault(seeded.choice(STEPS), passes=seeded.randrange(2))
            self.attempt(*seeded.choice(((), ("--window", "2s"))))

    def attempt(self, *words: str) -> int:
        return attempts.attempt(self.site, "copy", *words)

    def check(self, row: FaultRow) -> None:
        """Each change is there once, and the receipts say so."""
        self._run_until_done(row)
        row.lost, row.repeated, row.reordered = self._rows() if self.target else self._changes()
        assert (row.lost, row.repeated, row.reordered) == (0, 0, 0)
        receipts = self.site.json("receipts", "copy", "--last", "1000")["receipts"]
        row.duplicates = sum(one["possible_duplicates"] for one in receipts)
        assert row.duplicates == 0
        [(changes,)] = self.database.run("SELECT count(*) FROM noted")
        assert sum(one["delivered"] + one["deduplicated"] for one in receipts) == changes

    def check_snapshot(self, row: FaultRow) -> None:
        """Rows that were there have come among the changes, each as the changes before it say."""
        self._run_until_done(row)
        row.lost, row.repeated, row.reordered = self._rows() if self.target else self._states()
        assert (row.lost, row.repeated, row.reordered) == (0, 0, 0)

    def lines(self) -> list[str]:
        return (self.site.folder / "out.jsonl").read_text().splitlines()

    def arrived(self) -> list[tuple[Any, ...]]:
        """Changes in the file, as triggers note them."""
        return [_as_noted(line) for line in self.lines()]

    def _run_until_done(self, row: FaultRow) -> None:
        attempts.run_until_done(self.site, "copy")
        row.moves_again()

    def _rows(self) -> tuple[int, int, int]:
        assert self.target is not None
        there = {*self.database.run("SELECT id, note FROM orders")}
        copied = {*self.target.run("SELECT id, note FROM copies")}
        return len(there - copied), len(copied - there), 0

    def _changes(self) -> tuple[int, int, int]:
        noted = self.database.run("SELECT op, was, id, note FROM noted ORDER BY number")
        arrived = self.arrived()
        lost, more = {*noted} - {*arrived}, len(arrived) - len(noted)
        return len(lost), more, int(_histories(noted) != _histories(arrived))

    def _states(self) -> tuple[int, int, int]:
        lines = self.lines()
        assert any('"op":"r"' in line for line in lines)
        state, there = state_of(lines), dict(self.database.run("SELECT id, note FROM orders"))
        lost, more = there.items() - state.items(), state.items() - there.items()
        return len(lost), len(more), contradictions(lines)


def followed(site: Site, database: Database, into: str, request: pytest.FixtureRequest, **how: Any) -> Following:
    """Into one of TARGETS, which is there."""
    target: Database | None = None
    if into == "table":
        target = database
    elif into == "mysql":
        target = mariadb.Database(request.getfixturevalue("mariadb"))
    elif into == "postgresql":
        target = postgres_tables.Database(request.getfixturevalue("postgres_url"))
    if target is not None:
        target.run(COPIES)
    return Following(site, database, into, target, **how)


def _as_noted(line: str) -> tuple[Any, ...]:
    event = json.loads(line)
    before, after = event["before"] or {}, event["after"] or {}
    return event["op"], before.get("id"), after.get("id"), after.get("note")


def _histories(changes: list[tuple[Any, ...]]) -> dict[Any, list[tuple[Any, ...]]]:
    """By row what happened to it, in order."""
    by_row = defaultdict(list)
    for one in changes:
        for number in {one[1], one[2]} - {None}:
            by_row[number].append(one)
    return by_row
