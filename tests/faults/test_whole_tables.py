"""Tables that are read whole by each run, while processes are killed: each pass has each row once, and a copy becomes
the same."""

from __future__ import annotations

import json
import random

import pytest

from tests import mariadb, postgres_tables
from tests.changing_writers import Database, fill, make
from tests.faults.kit import attempts
from tests.faults.kit.journeys import SHORT_LEASES
from tests.faults.rows import FaultRow
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]
STEPS = ("batch-written", "found", "planned", "lane-started", "before-receipt", "executed", "settled")
ROWS = 400


@pytest.fixture(params=["postgresql", "mysql"])
def database(request: pytest.FixtureRequest) -> Database:
    if request.param == "mysql":
        return mariadb.Database(request.getfixturevalue("mariadb"))
    return postgres_tables.Database(request.getfixturevalue("postgres_url"))


def passes(ids: list[int]) -> list[list[int]]:
    """Where the numbers go down the next one begins."""
    found: list[list[int]] = []
    for place, number in enumerate(ids):
        if place == 0 or number <= ids[place - 1]:
            found.append([])
        found[-1].append(number)
    return found


def test_each_pass_has_each_row_once(bare_site: Site, database: Database, row: FaultRow, seeded: random.Random) -> None:
    row.describe("SIGKILL at random steps, the whole table in each run", where="table → file", database="SQLite")
    make(database)
    fill(database, 1, ROWS + 1)
    bare_site.settings.update(SHORT_LEASES)
    source = database.source("orders", bulk=True)
    sink = {"file": {"path": "out.jsonl"}}
    bare_site.apply("copy", {"source": source, "sink": sink, "limits": {"range_records": 70}})
    row.strikes()
    for _ in range(5):
        bare_site.fault(seeded.choice(STEPS), passes=seeded.randrange(3))
        attempts.attempt(bare_site, "copy")
    attempts.run_until_done(bare_site, "copy")
    row.moves_again()
    lines = [json.loads(line)["id"] for line in (bare_site.folder / "out.jsonl").read_text().splitlines()]
    found = passes(lines)
    row.lost = sum(ROWS - len(one) for one in found)
    row.repeated = sum(len(one) - len(set(one)) for one in found)
    row.reordered = row.duplicates = 0
    assert [one for one in found if one != list(range(1, ROWS + 1))] == []
    receipts = bare_site.json("receipts", "copy", "--last", "1000")["receipts"]
    assert sum(one["delivered"] + one["deduplicated"] for one in receipts) == len(lines)


@pytest.mark.fault(costly=True)
def test_a_copy_by_upsert_becomes_the_same(
    bare_site: Site, database: Database, row: FaultRow, seeded: random.Random
) -> None:
    row.describe("SIGKILL at random steps, the whole table in each run", where="table → table", database="SQLite")
    make(database)
    fill(database, 1, ROWS + 1)
    database.run("CREATE TABLE copies AS SELECT * FROM orders WHERE 1 = 0", "ALTER TABLE copies ADD PRIMARY KEY (id)")
    bare_site.settings.update(SHORT_LEASES)
    parse = {"format": "json", "fields": {"id": "int64", "version": "int32", "at": "timestamp(us)"}}
    ends = {"source": database.source("orders", bulk=True), "sink": database.sink("copies", mode="upsert")}
    bare_site.apply("copy", {**ends, "parse": parse, "limits": {"range_records": 70}})
    row.strikes()
    for _ in range(5):
        bare_site.fault(seeded.choice(STEPS), passes=seeded.randrange(3))
        attempts.attempt(bare_site, "copy")
        database.run(f"UPDATE orders SET version = version + 1 WHERE id % 3 = {seeded.randrange(3)}")
    attempts.run_until_done(bare_site, "copy")
    attempts.run_until_done(bare_site, "copy")
    row.moves_again()
    differ = "SELECT o.id FROM orders o LEFT JOIN copies c ON c.id = o.id AND c.version = o.version WHERE c.id IS NULL"
    row.lost = len(database.run(differ))
    row.repeated = row.reordered = row.duplicates = 0
    assert row.lost == 0
