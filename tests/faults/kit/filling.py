"""Files into a table of a database, while processes are killed or stand still and the server ends sessions: the table
is compared row by row with what was written into the files, by the driver of the database alone."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import pytest

from tests.faults.kit import attempts
from tests.faults.kit.journeys import TRY_AGAIN
from tests.faults.kit.processes import LIMIT_S, ended, go_on, is_alive, stopped_at, wait_for
from tests.faults.rows import FaultRow
from tests.site import Site

ROWS = 8_000
STEPS = ("found", "planned", "lane-started", "batch-written", "before-receipt", "executed", "settled")
PLACES = ("north", "south")
TABLES = ("t", "other")
FIELDS = {"place": "text", "n": "int64", "v": "int64"}


class Tables(Protocol):
    """A database of a system."""

    def run(self, *statements: str) -> list[tuple[Any, ...]]: ...

    def sink(self, table: str, **more: Any) -> dict[str, Any]: ...


@dataclass
class Filling:
    """Two files of lines into a table, which the document names."""

    site: Site
    system: str
    """As people call it."""
    database: Tables
    ending_sessions: Callable[[Any, random.Random], AbstractContextManager[list[int]]]
    """The server ends sessions of the sink at random moments until the context is left; the list says how many."""
    changes: dict[str, dict[int, int]] = field(default_factory=lambda: {place: {} for place in PLACES})
    """Of change events: the rows that there are, by place and number."""
    written: int = 0
    table: str = "t"
    refusing: str = "ALTER TABLE t ADD CHECK (n % 40 <> 0)"
    """From then on the table refuses one row of 40."""

    @property
    def where(self) -> str:
        return f"file → {self.system}"

    def apply(self, errors: Any = None, **sink: Any) -> None:
        form = "debezium" if sink.get("mode") == "upsert" else "json"
        self.site.apply(
            "fill",
            {
                "source": {"file": {"path": "logs/*.log"}},
                "sink": self.database.sink(self.table, **sink),
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
        return attempts.start(self.site, "fill")

    def run_until_done(self) -> None:
        attempts.run_until_done(self.site, "fill")

    def check(self, row: FaultRow) -> None:
        """Each row once in one of the tables, and those of a file in its order."""
        found: dict[tuple[str, str], list[int]] = {(place, table): [] for place in PLACES for table in TABLES}
        for table in TABLES:
            for place, n in self.database.run(f"SELECT place, n FROM {table} ORDER BY number"):
                found[place, table].append(n)
        expected = Counter((place, n) for place in PLACES for n in range(self.written))
        there = Counter((place, n) for (place, _), numbers in found.items() for n in numbers)
        row.lost, row.repeated = sum((expected - there).values()), sum((there - expected).values())
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


class FillingFaults:
    """Of each database: inherit it, and give it a fixture `filling`."""

    @pytest.mark.parametrize("step", [STEPS[3], *STEPS[:3], *STEPS[4:]])
    def test_a_process_killed_at_a_step(
        self, filling: Filling, row: FaultRow, seeded: random.Random, step: str
    ) -> None:
        row.describe(f"SIGKILL at {step}", where=filling.where, database="SQLite")
        filling.feed(ROWS)
        filling.apply()
        filling.site.fault(step, passes=seeded.randrange(2))
        with filling.start() as driver:
            ended(driver)
        row.strikes()
        filling.feed(500)
        filling.run_until_done()
        row.moves_again()
        filling.check(row)

    @pytest.mark.parametrize("step", ["batch-written", "before-receipt", "lane-started"])
    def test_a_process_that_stood_still_writes_nothing_when_it_wakes_up(
        self, filling: Filling, row: FaultRow, step: str
    ) -> None:
        row.describe(f"SIGSTOP at {step} past the deadline", where=filling.where, database="SQLite")
        filling.feed(ROWS)
        filling.apply()
        filling.site.fault(step, "stop")
        with filling.start() as driver:
            there = stopped_at(filling.site, step, driver)
            assert there is not None
            row.strikes()
            filling.run_until_done()
            row.moves_again()
            go_on(there)
            wait_for(lambda: there == driver.pid or not is_alive(there), "the end of the worker")
            assert ended(driver, LIMIT_S) in (0, *TRY_AGAIN)
        filling.feed(500)
        filling.run_until_done()
        filling.check(row)

    @pytest.mark.parametrize("number", range(4))
    @pytest.mark.fault(costly=True)
    def test_the_server_ends_sessions(
        self, filling: Filling, row: FaultRow, seeded: random.Random, number: int
    ) -> None:
        row.describe("sessions ended by the server at random", where=filling.where, database="SQLite")
        filling.feed(ROWS)
        filling.apply()
        row.strikes()
        with filling.ending_sessions(filling.database, seeded) as ended_ones:
            for attempt in range(attempts.ATTEMPTS):
                if attempt >= 4 and ended_ones[0]:
                    break
                with filling.start() as driver:
                    assert ended(driver) in (0, *TRY_AGAIN)
                filling.feed(2_000)
        filling.run_until_done()
        row.moves_again()
        assert ended_ones[0] > 0
        filling.check(row)

    @pytest.mark.parametrize("number", range(4))
    @pytest.mark.fault(costly=True)
    def test_changes_with_kills(self, filling: Filling, row: FaultRow, seeded: random.Random, number: int) -> None:
        """Inserts, updates, also of keys, and deletes of few keys: the table ends as the rows would have."""
        row.describe("SIGKILL at random steps, with change events", where=f"{filling.where}, upsert", database="SQLite")
        filling.feed_changes(ROWS, seeded)
        filling.apply(mode="upsert")
        row.strikes()
        for _ in range(3):
            filling.site.fault(seeded.choice(STEPS[2:]), passes=seeded.randrange(3))
            with filling.start() as driver:
                ended(driver)
            filling.feed_changes(300, seeded)
        filling.run_until_done()
        row.moves_again()
        filling.check_changes(row)

    @pytest.mark.parametrize("number", range(4))
    @pytest.mark.fault(costly=True)
    def test_refused_rows_with_kills(self, filling: Filling, row: FaultRow, seeded: random.Random, number: int) -> None:
        """Each is a dead letter of the attempt that has a receipt, whichever attempts were refused it before."""
        row.describe("SIGKILL at random steps, with rows that it refuses", where=filling.where, database="SQLite")
        filling.database.run(filling.refusing)
        filling.feed(2_000)
        filling.apply(errors={"tolerance": "all"})
        row.strikes()
        for _ in range(3):
            filling.site.fault(seeded.choice(STEPS[2:]), passes=seeded.randrange(3))
            with filling.start() as driver:
                ended(driver)
            filling.feed(300)
        filling.run_until_done()
        row.moves_again()
        filling.check_refused(row, 40)

    @pytest.mark.parametrize("number", range(4))
    @pytest.mark.fault(costly=True)
    def test_another_table_and_back_with_kills(
        self, filling: Filling, row: FaultRow, seeded: random.Random, number: int
    ) -> None:
        """The document names both in turn, also while a range is open: that is finished where it was begun."""
        words = "SIGKILL at random steps, and the document names another table"
        row.describe(words, where=filling.where, database="SQLite")
        row.strikes()
        for turn in range(6):
            filling.table = TABLES[turn % 2]
            filling.feed(500)
            filling.apply()
            if seeded.random() < 0.7:
                filling.site.fault(seeded.choice(STEPS), passes=seeded.randrange(2))
            with filling.start() as driver:
                ended(driver)
        filling.run_until_done()
        row.moves_again()
        assert all(filling.database.run(f"SELECT 1 FROM {table} LIMIT 1") for table in TABLES)
        filling.check(row)
