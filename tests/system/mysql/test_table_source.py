"""A table of MySQL as the source of connectors that people run with the command."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from tests.mariadb import Database, MariaDB
from tests.mysql import MySQL
from tests.mysql_writers import TABLE
from tests.site import Site
from tests.table_connectors import UNREACHABLE, run

pytestmark = pytest.mark.server


@pytest.fixture
def database(mariadb: MariaDB) -> Database:
    return Database(mariadb)


def to_file(site: Site, database: Database, **options: Any) -> None:
    site.apply("a", {"source": database.source("orders", **options), "sink": {"file": {"path": "out.jsonl"}}})


def lines(site: Site) -> list[Any]:
    path = site.folder / "out.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_each_row_becomes_a_line_once(bare_site: Site, database: Database) -> None:
    database.run(TABLE, "INSERT INTO orders (writer, note) VALUES (1, 'Zoë'), (2, 'Zoë'), (3, NULL)")
    to_file(bare_site, database)
    assert "3 delivered" in run(bare_site)
    database.run("UPDATE orders SET note = 'later' WHERE id = 1", "DELETE FROM orders WHERE id = 2")
    database.run("INSERT INTO orders (writer) VALUES (4)")
    run(bare_site)
    run(bare_site)
    assert lines(bare_site) == [
        {"id": 1, "writer": 1, "note": "Zoë"},
        {"id": 2, "writer": 2, "note": "Zoë"},
        {"id": 3, "writer": 3, "note": None},
        {"id": 4, "writer": 4, "note": None},
    ]


def test_from_a_table_into_a_table(bare_site: Site, database: Database) -> None:
    database.run(
        "CREATE TABLE orders (id bigint AUTO_INCREMENT PRIMARY KEY, price decimal(12,2), at timestamp(6) NULL,"
        " body varbinary(9), tags json)",
        "INSERT INTO orders VALUES (1, 12345678.90, '2026-01-02 03:04:05.000006', x'00ff', '[\"a\",null]'),"
        " (2, NULL, NULL, NULL, NULL)",
        "CREATE TABLE copies LIKE orders",
    )
    fields = {"id": "int64", "price": "decimal(12,2)", "at": "timestamp(us)", "body": "bytes", "tags": ["text"]}
    bare_site.apply(
        "a",
        {
            "source": database.source("orders"),
            "sink": database.sink("copies", mode="upsert"),
            "parse": {"format": "json", "fields": fields},
        },
    )
    assert "2 delivered" in run(bare_site)
    found = database.run("SELECT id, price, hex(body), REPLACE(tags, ' ', '') FROM copies ORDER BY id")
    assert found == [(1, Decimal("12345678.90"), "00FF", '["a",null]'), (2, None, None, None)]
    assert database.run("SELECT id FROM orders EXCEPT ALL SELECT id FROM copies") == []
    assert database.run("SELECT count(*) FROM orders o JOIN copies c ON o.id = c.id AND o.at <=> c.at") == [(2,)]


def test_what_a_person_sees_before_a_run(bare_site: Site, database: Database) -> None:
    rows = ", ".join(f"({number}, 'x')" for number in range(30))
    database.run(TABLE, f"INSERT INTO orders (writer, note) VALUES {rows}")
    to_file(bare_site, database)
    said = bare_site.waybill("check", "a.yaml", "--probe")
    assert "exactly once" in said
    assert "table orders is there, its rows are numbered by id" in said
    assert "the counter of column id is at" in said
    shows = "performance_schema" if isinstance(database.server, MySQL) else "metadata_lock_info"
    assert f"who writes the table is shown by {shows}" in said
    tried = bare_site.waybill("try", "a.yaml", "--last", "2")
    assert '{"id":29,' in tried
    assert '{"id":28,' not in tried


def test_a_window_follows_the_table(bare_site: Site, database: Database) -> None:
    database.run(TABLE, "INSERT INTO orders (writer) VALUES (1)")
    to_file(bare_site, database, every_s=0.05)
    with bare_site.start("run", "a", "--engine", "inline", "--window", "5s") as process:
        for number in range(20):
            database.run(f"INSERT INTO orders (writer) VALUES ({number})")
        assert process.wait(60) == 0
    assert [line["id"] for line in lines(bare_site)] == list(range(1, 22))


def test_a_table_that_is_emptied_stops_a_run(bare_site: Site, database: Database) -> None:
    database.run(TABLE, "INSERT INTO orders (writer) VALUES (1), (2)")
    to_file(bare_site, database)
    run(bare_site)
    database.run("RENAME TABLE orders TO elsewhere")
    assert "There is no such table" in run(bare_site, code=UNREACHABLE)
    database.run("RENAME TABLE elsewhere TO orders", "TRUNCATE orders", "INSERT INTO orders (writer) VALUES (3)")
    assert "The counter of column id is at 1" in run(bare_site, code=5)
