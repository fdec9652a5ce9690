"""Tables whose primary key is no column of whole numbers, of either database, in connectors that people run with the
command."""

from __future__ import annotations

import json

import pytest

from tests import mariadb, postgres_tables
from tests.changing_writers import MOMENTS, Database
from tests.site import Site
from tests.table_connectors import run

pytestmark = pytest.mark.server


@pytest.fixture(params=["postgresql", "mysql"])
def database(request: pytest.FixtureRequest) -> Database:
    if request.param == "mysql":
        return mariadb.Database(request.getfixturevalue("mariadb"))
    return postgres_tables.Database(request.getfixturevalue("postgres_url"))


def stock(database: Database) -> None:
    """Places of wares: a table whose rows are told apart by two columns."""
    is_mysql = isinstance(database, mariadb.Database)
    database.run(
        "CREATE TABLE stock (shop varchar(20), ware varchar(36), pieces int NOT NULL,"
        f" at {MOMENTS[is_mysql]} NOT NULL, PRIMARY KEY (shop, ware))",
        "INSERT INTO stock VALUES ('Köln', 'b', 1, now()), ('Köln', 'a', 2, now()), ('Aachen', 'b', 3, now())",
    )


def lines(site: Site) -> list[tuple[str, str, int]]:
    found = [json.loads(line) for path in site.folder.glob("out*") for line in path.read_text().splitlines()]
    return [(one["shop"], one["ware"], one["pieces"]) for one in found]


def test_each_run_writes_all_rows(bare_site: Site, database: Database) -> None:
    stock(database)
    source = database.source("stock", bulk=True)
    bare_site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}})
    with bare_site.start("check", "a.yaml", "--probe") as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "its rows are distinguished by their keys: shop, ware" in " ".join(said.split())
    rows = [("Aachen", "b", 3), ("Köln", "a", 2), ("Köln", "b", 1)]
    for passes in (1, 2):
        assert "3 delivered" in run(bare_site)
        assert sorted(lines(bare_site)) == sorted(rows * passes)


def test_a_copy_of_changed_rows_by_upsert_becomes_the_same(bare_site: Site, database: Database) -> None:
    stock(database)
    database.run(
        "CREATE TABLE copies AS SELECT * FROM stock WHERE 1 = 0", "ALTER TABLE copies ADD PRIMARY KEY (shop, ware)"
    )
    fields = {"shop": "text", "ware": "text", "pieces": "int32", "at": "timestamp(us)"}
    ends = {
        "source": database.source("stock", timestamp="at", delay_s=0.1),
        "sink": database.sink("copies", mode="upsert"),
    }
    bare_site.apply("a", {**ends, "parse": {"format": "json", "fields": fields}})
    assert "3 delivered" in run(bare_site)
    database.run("UPDATE stock SET pieces = 9, at = now() WHERE shop = 'Köln' AND ware = 'b'")
    database.run("INSERT INTO stock VALUES ('Bonn', 'c', 4, now())")
    assert "2 delivered" in run(bare_site)
    asked = "SELECT shop, ware, pieces FROM {} ORDER BY pieces"
    assert database.run(asked.format("copies")) == database.run(asked.format("stock"))


def test_more_rows_than_a_stretch_has(bare_site: Site, database: Database) -> None:
    is_mysql = isinstance(database, mariadb.Database)
    many = "seq FROM seq_1_to_70000" if is_mysql else "seq FROM generate_series(1, 70000) s (seq)"
    kind = "varbinary(16)" if is_mysql else "uuid"
    value = "UNHEX(MD5(seq))" if is_mysql else "md5(seq::text)::uuid"
    database.run(
        f"CREATE TABLE many (id {kind} PRIMARY KEY, n int)",
        f"INSERT INTO many SELECT {value}, {many}",
    )
    source = database.source("many", bulk=True)
    bare_site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}})
    assert "70,000 delivered" in run(bare_site)
    found = [json.loads(line)["n"] for line in (bare_site.folder / "out.jsonl").read_text().splitlines()]
    assert sorted(found) == list(range(1, 70_001))
    receipts = bare_site.json("receipts", "a", "--last", "100")["receipts"]
    assert {one["incarnation"] for one in receipts} == {0, 1}
    assert sum(one["delivered"] for one in receipts) == 70_000
    told = bare_site.json("gaps", "a")
    assert told["gaps"] == []


def test_a_backfill_and_offsets_are_those_of_the_newest_stretch(bare_site: Site, database: Database) -> None:
    stock(database)
    bare_site.apply("a", {"source": database.source("stock", bulk=True), "sink": {"file": {"path": "out.jsonl"}}})
    run(bare_site)
    [receipt] = bare_site.json("receipts", "a")["receipts"]
    place = f"{receipt['partition']}:0-{receipt['end']}"
    bare_site.waybill("backfill", "a", "--range", place, "--engine", "inline")
    assert sorted(lines(bare_site)) == sorted([("Aachen", "b", 3), ("Köln", "a", 2), ("Köln", "b", 1)] * 2)
    [partition] = bare_site.json("lag", "a")["connectors"][0]["partitions"]
    assert partition["lag"] == 16**11
