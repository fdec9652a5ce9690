"""A table of PostgreSQL as the source of connectors that people run with the command."""

from __future__ import annotations

import json
import random
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from tests.postgres_tables import Database
from tests.site import Site
from tests.table_connectors import UNREACHABLE, run
from tests.table_writers import TABLE, writing

pytestmark = pytest.mark.server


@pytest.fixture
def database(postgres_url: str) -> Database:
    return Database(postgres_url)


def to_file(site: Site, database: Database, table: str = "orders", **options: Any) -> None:
    site.apply("a", {"source": database.source(table, **options), "sink": {"file": {"path": "out.jsonl"}}})


def lines(site: Site) -> list[Any]:
    path = site.folder / "out.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_each_row_becomes_a_line_once(bare_site: Site, database: Database) -> None:
    database.run(TABLE, "INSERT INTO orders (writer, note) SELECT n, 'Zoë' FROM generate_series(1, 3) n")
    to_file(bare_site, database)
    assert "3 delivered" in run(bare_site)
    database.run("UPDATE orders SET note = 'later' WHERE id = 1", "DELETE FROM orders WHERE id = 2")
    database.run("INSERT INTO orders (writer) VALUES (4)")
    run(bare_site)
    run(bare_site)
    assert lines(bare_site) == [
        *({"id": n, "writer": n, "note": "Zoë"} for n in (1, 2, 3)),
        {"id": 4, "writer": 4, "note": None},
    ]


def test_from_a_table_into_a_table(bare_site: Site, database: Database) -> None:
    database.run(
        "CREATE TABLE orders (id bigserial PRIMARY KEY, price numeric(12,2), at timestamptz, body bytea, tags text[])",
        r"INSERT INTO orders VALUES (DEFAULT, 12345678.90, '2026-01-02 03:04:05.000006+02', '\x00ff', '{a,NULL}'),"
        " (DEFAULT, NULL, NULL, NULL, NULL)",
        "CREATE TABLE copies (LIKE orders INCLUDING INDEXES)",
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
    found = database.run("SELECT id, price, at::text, encode(body, 'hex'), tags FROM copies ORDER BY id")
    assert found == [
        (1, Decimal("12345678.90"), "2026-01-02 01:04:05.000006+00", "00ff", ["a", None]),
        (2, None, None, None, None),
    ]
    assert database.run("(TABLE orders EXCEPT TABLE copies) UNION ALL (TABLE copies EXCEPT TABLE orders)") == []


def test_what_a_person_sees_before_a_run(bare_site: Site, database: Database) -> None:
    database.run(TABLE, "INSERT INTO orders (writer, note) SELECT n, 'x' FROM generate_series(1, 30) n")
    to_file(bare_site, database)
    said = probed(bare_site, 0)
    assert "exactly once" in said
    assert "table orders is there, its rows are numbered by id" in said
    assert "the sequence of column id is at 30" in said
    tried = bare_site.waybill("try", "a.yaml", "--last", "2")
    assert '{"id":29,"writer":29,"note":"x"}' in tried
    assert '{"id":28,' not in tried


def probed(site: Site, code: int) -> str:
    with site.start("check", "a.yaml", "--probe") as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == code
    return said


def test_what_is_missing_is_named(bare_site: Site, database: Database) -> None:
    reader = f"reader_{database.options['database']}"
    database.run(TABLE, f"CREATE ROLE {reader} LOGIN", "ALTER SEQUENCE orders_id_seq CACHE 20")
    to_file(bare_site, database, user=reader)
    assert "has CACHE 20" in probed(bare_site, UNREACHABLE)
    assert "has CACHE 20" in run(bare_site, code=2)
    database.run("ALTER SEQUENCE orders_id_seq CACHE 1", "ALTER TABLE orders ENABLE ROW LEVEL SECURITY")
    missing = probed(bare_site, UNREACHABLE)
    assert f"{reader} lacks SELECT on orders" in missing
    assert "row-level security hides rows" in missing
    assert "GRANT SELECT ON SEQUENCE" in missing
    run(bare_site, code=6)
    database.run(f"GRANT SELECT ON orders TO {reader}", "ALTER TABLE orders DISABLE ROW LEVEL SECURITY")
    database.run("INSERT INTO orders (writer) VALUES (1)")
    probed(bare_site, 0)
    assert "1 delivered" in run(bare_site)


def test_a_table_that_is_dropped_and_made_again_stops_a_run(bare_site: Site, database: Database) -> None:
    database.run(TABLE, "INSERT INTO orders (writer) VALUES (1), (2)")
    to_file(bare_site, database)
    run(bare_site)
    database.run("DROP TABLE orders")
    assert "There is no such table" in run(bare_site, code=3)
    database.run(TABLE, "INSERT INTO orders (writer) VALUES (3)")
    assert "recreated" in run(bare_site, code=5)
    run(bare_site, "--accept-gaps")
    assert [line["writer"] for line in lines(bare_site)] == [1, 2, 3]


def test_every_row_that_is_committed_arrives_once_beside_busy_writers(bare_site: Site, database: Database) -> None:
    database.run(TABLE)
    to_file(bare_site, database, every_s=0.05, open_transactions_s=1)
    with writing(database, random.Random(7)):
        for _ in range(4):
            run(bare_site)
        run(bare_site, "--window", "6s")
        assert len(lines(bare_site)) > 100
    run(bare_site)
    found = Counter(line["id"] for line in lines(bare_site))
    committed = Counter(number for (number,) in database.run("SELECT id FROM orders"))
    assert (committed - found, found - committed) == (Counter(), Counter())
    assert [*found] == sorted(found)
