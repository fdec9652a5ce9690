"""Tables that are read by the time of the last change, while processes are killed and others change their rows in long
transactions: each row's last version arrives, no version twice."""

from __future__ import annotations

import json
import random

import pytest

from tests import mariadb, postgres_tables
from tests.changing_writers import Database, differences, fill, make, writing
from tests.faults.kit import attempts
from tests.faults.kit.journeys import SHORT_LEASES
from tests.faults.rows import FaultRow
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]
STEPS = ("batch-written", "found", "planned", "lane-started", "before-receipt", "executed", "settled")


@pytest.fixture(params=["postgresql", "mysql"])
def database(request: pytest.FixtureRequest) -> Database:
    if request.param == "mysql":
        return mariadb.Database(request.getfixturevalue("mariadb"))
    return postgres_tables.Database(request.getfixturevalue("postgres_url"))


def apply(site: Site, database: Database, sink: object) -> None:
    site.settings.update(SHORT_LEASES)
    source = database.source("orders", timestamp="at", delay_s=0.2, every_s=0.05, open_transactions_s=5)
    fields = {"id": "int64", "version": "int32", "at": "timestamp(us)"}
    parse = {"format": "json", "fields": fields}
    site.apply("copy", {"source": source, "sink": sink, "parse": parse, "limits": {"range_records": 70}})


def attempts_with_kills(site: Site, database: Database, row: FaultRow, seeded: random.Random) -> None:
    """Long transactions, short attempts."""
    with writing(database, seeded):
        row.strikes()
        for number in range(5):
            site.fault(seeded.choice(STEPS), passes=seeded.randrange(3))
            attempts.attempt(site, "copy", *(("--window", "8s") if number % 2 else ()))
        fill(database, 1000, 1100)
    attempts.run_until_done(site, "copy")
    row.moves_again()


def test_each_last_version_arrives_once_in_a_file(
    bare_site: Site, database: Database, row: FaultRow, seeded: random.Random
) -> None:
    row.describe("SIGKILL at random steps, rows changed in long transactions", where="table → file", database="SQLite")
    make(database)
    fill(database)
    apply(bare_site, database, {"file": {"path": "out.jsonl"}})
    attempts_with_kills(bare_site, database, row, seeded)
    lines = [json.loads(line) for line in (bare_site.folder / "out.jsonl").read_text().splitlines()]
    wrong = differences(database, [(line["id"], line["version"]) for line in lines])
    row.lost = sum("arrived last" in one for one in wrong)
    row.repeated = sum("more than once" in one for one in wrong)
    row.reordered = sum("out of order" in one for one in wrong)
    assert wrong == []
    assert len(lines) > len({line["id"] for line in lines}), "no row came again"
    receipts = bare_site.json("receipts", "copy", "--last", "1000")["receipts"]
    row.duplicates = sum(one["possible_duplicates"] for one in receipts)
    assert sum(one["delivered"] + one["deduplicated"] for one in receipts) == len(lines)
    assert row.duplicates == 0


@pytest.mark.fault(costly=True)
def test_a_table_with_upsert_becomes_the_same(
    bare_site: Site, database: Database, row: FaultRow, seeded: random.Random
) -> None:
    row.describe("SIGKILL at random steps, rows changed in long transactions", where="table → table", database="SQLite")
    make(database)
    fill(database)
    database.run("CREATE TABLE copies AS SELECT * FROM orders WHERE 1 = 0", "ALTER TABLE copies ADD PRIMARY KEY (id)")
    apply(bare_site, database, database.sink("copies", mode="upsert"))
    attempts_with_kills(bare_site, database, row, seeded)
    row.lost = len(
        database.run(
            "SELECT o.id FROM orders o LEFT JOIN copies c ON c.id = o.id AND c.version = o.version AND c.at = o.at"
            " WHERE c.id IS NULL"
        )
    )
    row.repeated = row.reordered = row.duplicates = 0
    assert row.lost == 0
    assert database.run("SELECT count(*) FROM copies") == database.run("SELECT count(*) FROM orders")
