"""Files into a table of a database, which is compared row by row with what was written into the files."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.faults.kit.journeys import TRY_AGAIN
from tests.faults.kit.processes import ended
from tests.faults.rows import FaultRow
from tests.site import Site

ATTEMPTS = 12
ROWS = 8_000
STEPS = ("found", "planned", "lane-started", "batch-written", "before-receipt", "executed", "settled")
PLACES = ("north", "south")
FIELDS = {"place": "text", "n": "int64", "v": "int64"}


class Tables(Protocol):
    """A database of a system."""

    def run(self, *statements: str) -> list[tuple[Any, ...]]: ...

    def sink(self, table: str, **more: Any) -> dict[str, Any]: ...


@dataclass
class Filling:
    """Two files of lines into one table."""

    site: Site
    database: Tables
    changes: dict[str, dict[int, int]] = field(default_factory=lambda: {place: {} for place in PLACES})
    """Of change events: the rows that there are, by place and number."""
    written: int = 0

    def apply(self, errors: Any = None, **sink: Any) -> None:
        form = "debezium" if sink.get("mode") == "upsert" else "json"
        self.site.apply(
            "fill",
            {
                "source": {"file": {"path": "logs/*.log"}},
                "sink": self.database.sink("t", **sink),
                "parse": {"format": form, "fields": FIELDS},
                "limits": {"range_records": 1_500},
                "tasks": 2,
                **({"errors": errors} if errors else {}),
            },
        )

    def append(self, place: str, rows: list[Any]) -> None:
        folder = self.site.folder / "logs"
        folder.mkdir(exist_ok=True)
        with (folder / f"{place}.log").open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)

    def feed(self, count: int) -> None:
        for place in PLACES:
            self.append(place, [{"place": place, "n": self.written + n, "v": n} for n in range(count)])
        self.written += count

    def feed_changes(self, count: int, seeded: random.Random) -> None:
        """Of few keys, so that most change a row that is there; some change its key."""
        for place, there in self.changes.items():
            self.append(place, [_change(place, there, seeded) for _ in range(count)])

    def start(self) -> Any:
        return self.site.start("run", "fill", "--engine", "inline")

    def run_until_done(self) -> None:
        codes = []
        for _ in range(ATTEMPTS):
            with self.start() as driver:
                codes.append(ended(driver))
            if codes[-1] == 0:
                return
            assert codes[-1] in TRY_AGAIN, codes
        raise AssertionError(f"not done after {ATTEMPTS} attempts: {codes}")

    def check(self, row: FaultRow) -> None:
        """Each row once, and those of a file in its order."""
        found: dict[str, list[int]] = {place: [] for place in PLACES}
        for place, n in self.database.run("SELECT place, n FROM t ORDER BY number"):
            found[place].append(n)
        expected = Counter(range(self.written))
        row.lost = sum(sum((expected - Counter(numbers)).values()) for numbers in found.values())
        row.repeated = sum(sum((Counter(numbers) - expected).values()) for numbers in found.values())
        row.reordered = sum(numbers != sorted(numbers) for numbers in found.values())
        assert (row.lost, row.repeated, row.reordered) == (0, 0, 0)
        receipts = self.site.json("receipts", "fill", "--last", "1000")["receipts"]
        row.duplicates = sum(one["possible_duplicates"] for one in receipts)
        assert sum(one["delivered"] + one["deduplicated"] for one in receipts) == 2 * self.written
        assert row.duplicates == 0

    def check_changes(self, row: FaultRow) -> None:
        found = set(self.database.run("SELECT place, n, v FROM t"))
        expected = {(place, n, v) for place, there in self.changes.items() for n, v in there.items()}
        row.lost, row.repeated = len(expected - found), len(found - expected)
        assert (row.lost, row.repeated) == (0, 0)

    def check_refused(self, row: FaultRow, each: int) -> None:
        """One of `each` rows is a dead letter, once, and all others are in the table, once."""
        refused = [n for n in range(self.written) if n % each == 0]
        found = Counter(self.database.run("SELECT place, n FROM t"))
        expected = Counter((place, n) for place in PLACES for n in range(self.written) if n % each)
        shown = self.site.json("dead-letters", "list", "fill", "--last", "9999")["dead_letters"]
        letters = Counter((one["partition"], one["offset"]) for one in shown)
        missing = len(PLACES) * len(refused) - len(letters)
        row.lost = sum((expected - found).values()) + max(missing, 0)
        row.repeated = sum((found - expected).values()) + sum(letters.values()) - len(letters) + max(-missing, 0)
        receipts = self.site.json("receipts", "fill", "--last", "1000")["receipts"]
        row.duplicates = sum(one["possible_duplicates"] for one in receipts)
        assert (row.lost, row.repeated, row.duplicates) == (0, 0, 0)
        assert sum(one["rejected"] for one in receipts) == len(PLACES) * len(refused)


def _change(place: str, there: dict[int, int], seeded: random.Random) -> dict[str, Any]:
    n, v = seeded.randrange(300), seeded.randrange(1_000_000)
    before = {"place": place, "n": n, "v": there[n]} if n in there else None
    if before and seeded.random() < 0.3:
        del there[n]
        return {"op": "d", "before": before, "after": None}
    if before and seeded.random() < 0.3:
        del there[n]
        n = seeded.choice([one for one in range(300) if one not in there])
    there[n] = v
    return {"op": "u" if before else "c", "before": before, "after": {"place": place, "n": n, "v": v}}
