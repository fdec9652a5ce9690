"""Tables whose primary key is no column of whole numbers, read whole and by the time of the last change, while
processes are killed and rows are inserted, changed and deleted: no row is lost, none comes twice."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from tests import mariadb, postgres_tables
from tests.changing_writers import Database, differences, fill, make, writing
from tests.faults.kit import attempts
from tests.faults.kit.journeys import SHORT_LEASES
from tests.faults.rows import FaultRow
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]
STEPS = ("batch-written", "found", "planned", "lane-started", "before-receipt", "executed", "settled")
ROWS = 120_000
"""More than two stretches have."""


@pytest.fixture(params=["postgresql", "mysql"])
def database(request: pytest.FixtureRequest) -> Database:
    if request.param == "mysql":
        return mariadb.Database(request.getfixturevalue("mariadb"))
    return postgres_tables.Database(request.getfixturevalue("postgres_url"))


def many(database: Database) -> None:
    """Rows with texts as keys. Those of `part` 1 stay as they are."""
    is_mysql = isinstance(database, mariadb.Database)
    text = "MD5(n)" if is_mysql else "md5(n::text)"
    numbers = f"(SELECT seq AS n FROM seq_1_to_{ROWS}) s" if is_mysql else f"generate_series(1, {ROWS}) s (n)"
    database.run(
        "CREATE TABLE many (part int, code varchar(99), n int, PRIMARY KEY (code, part))",
        f"INSERT INTO many SELECT n % 2, {text}, n FROM {numbers}",
    )


def change(database: Database, seeded: random.Random) -> None:
    """Somebody inserts and deletes rows everywhere between the others."""
    gone, new = seeded.sample(range(7), 2)
    named = f"'{seeded.randrange(10**6)}'"
    database.run(
        f"DELETE FROM many WHERE part <> 1 AND MOD(n, 7) = {gone}",
        f"INSERT INTO many SELECT part + 2, CONCAT(code, {named}), n FROM many WHERE part <> 1 AND MOD(n, 7) = {new}",
        f"INSERT INTO many SELECT 4, CONCAT('{seeded.randrange(16):x}', code, {named}), n FROM many"
        f" WHERE part = 1 AND MOD(n, 70) = {new}",
    )


def test_each_pass_has_each_row_once(bare_site: Site, database: Database, row: FaultRow, seeded: random.Random) -> None:
    """Of rows that are there all the time; what is inserted or deleted meanwhile may be in a pass or not, and never
    twice."""
    row.describe("SIGKILL at random steps, a whole table of texts as keys", where="table → file", database="SQLite")
    many(database)
    bare_site.settings.update(SHORT_LEASES)
    source, sink = database.source("many", bulk=True), {"file": {"path": "out.jsonl"}}
    bare_site.apply("copy", {"source": source, "sink": sink, "limits": {"range_records": 15_000}})
    row.strikes()
    for _ in range(5):
        bare_site.fault(seeded.choice(STEPS), passes=seeded.randrange(4))
        attempts.attempt(bare_site, "copy")
        change(database, seeded)
    attempts.run_until_done(bare_site, "copy")
    row.moves_again()
    receipts = bare_site.json("receipts", "copy", "--last", "1000")["receipts"]
    lines = (bare_site.folder / "out.jsonl").read_text().splitlines()
    assert sum(one["delivered"] + one["deduplicated"] for one in receipts) == len(lines)
    found = Counter(one["n"] for one in map(json.loads, lines) if one["part"] == 1)
    times = set(found.values())
    row.lost = ROWS // 2 - len(found) + sum(max(times) - count for count in found.values())
    row.reordered = row.duplicates = 0
    row.repeated = 0
    assert len(times) == 1, "each pass has all of them, and all passes were finished"
    assert row.lost == 0
    passes = max(times)
    others = Counter((one["part"], one["code"]) for one in map(json.loads, lines) if one["part"] != 1)
    row.repeated = sum(count > passes for count in others.values())
    assert row.repeated == 0


@pytest.mark.parametrize(("number", "key"), [("decimal(20,0)", "id"), ("bigint", "at, id")])
def test_each_last_version_arrives_once(
    bare_site: Site, database: Database, row: FaultRow, seeded: random.Random, number: str, key: str
) -> None:
    """Also where the time of the last change is part of the key."""
    row.describe(
        f"SIGKILL at random steps, rows changed in long transactions, key ({key})",
        where="table → file",
        database="SQLite",
    )
    make(database, number, key)
    fill(database)
    fill(database, 10_000, 65_000)
    bare_site.settings.update(SHORT_LEASES)
    source = database.source("orders", timestamp="at", delay_s=0.2, every_s=0.05, open_transactions_s=5)
    parse = {"format": "json", "fields": {"id": "int64", "version": "int32", "at": "timestamp(us)"}}
    sink = {"file": {"path": "out.jsonl"}}
    bare_site.apply("copy", {"source": source, "sink": sink, "parse": parse, "limits": {"range_records": 20_000}})
    with writing(database, seeded):
        row.strikes()
        for count in range(5):
            bare_site.fault(seeded.choice(STEPS), passes=seeded.randrange(3))
            attempts.attempt(bare_site, "copy", *(("--window", "8s") if count % 2 else ()))
        fill(database, 1000, 1100)
    attempts.run_until_done(bare_site, "copy")
    row.moves_again()
    lines = [json.loads(line) for line in (bare_site.folder / "out.jsonl").read_text().splitlines()]
    wrong = differences(database, [(line["id"], line["version"]) for line in lines])
    row.lost = sum("arrived last" in one for one in wrong)
    row.repeated = sum("more than once" in one for one in wrong)
    row.reordered = sum("out of order" in one for one in wrong)
    assert wrong == []
    receipts = bare_site.json("receipts", "copy", "--last", "1000")["receipts"]
    row.duplicates = sum(one["possible_duplicates"] for one in receipts)
    assert sum(one["delivered"] + one["deduplicated"] for one in receipts) == len(lines)
    assert row.duplicates == 0
