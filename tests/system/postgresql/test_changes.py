"""What happens to rows of PostgreSQL as the source of connectors that people run with the command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.postgres_tables import Database
from tests.site import Site

pytestmark = pytest.mark.server

TABLE = "CREATE TABLE orders (id int PRIMARY KEY, note text, price numeric(10,2))"
FIELDS = {"id": "int64", "note": "text", "price": "decimal(10,2)"}


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    made = Database(postgres_url)
    yield made
    made.drop_slots()


def run(site: Site, *words: str, code: int = 0) -> str:
    return site.waybill("run", "a", "--engine", "inline", *words, code=code)


def to_file(site: Site, database: Database, *tables: str, **options: Any) -> None:
    source = database.changes(*(tables or ("orders",)), **options)
    site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}})


def to_copies(site: Site, database: Database, **options: Any) -> None:
    site.apply(
        "a",
        {
            "source": database.changes("orders", **options),
            "sink": database.sink("copies", mode="upsert"),
            "parse": {"format": "debezium", "fields": FIELDS},
        },
    )


def events(site: Site) -> list[Any]:
    path = site.folder / "out.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def told(site: Site) -> list[Any]:
    return [(one["op"], one.get("before"), one.get("after")) for one in events(site)]


def test_each_change_comes_once_in_the_order_of_commits(bare_site: Site, database: Database) -> None:
    database.run(TABLE, "INSERT INTO orders VALUES (1, 'before the slot', 1)")
    to_file(bare_site, database)
    run(bare_site)
    assert events(bare_site) == []
    database.run("INSERT INTO orders VALUES (2, 'Zoë \"ß\"', 12.5), (3, NULL, NULL)")
    database.run("UPDATE orders SET note = 'b' WHERE id = 2", "UPDATE orders SET id = 4 WHERE id = 3")
    database.run("DELETE FROM orders WHERE id = 1", "TRUNCATE orders")
    assert "6 delivered" in run(bare_site)
    assert "6 delivered" not in run(bare_site)
    assert told(bare_site) == [
        ("c", None, {"id": 2, "note": 'Zoë "ß"', "price": "BOI="}),
        ("c", None, {"id": 3, "note": None, "price": None}),
        ("u", None, {"id": 2, "note": "b", "price": "BOI="}),
        ("u", {"id": 3}, {"id": 4, "note": None, "price": None}),
        ("d", {"id": 1}, None),
        ("t", None, None),
    ]
    first, second, third, *_ = events(bare_site)
    assert first["transaction"]["id"] == second["transaction"]["id"] != third["transaction"]["id"]
    assert [first["transaction"]["total_order"], second["transaction"]["total_order"]] == [1, 2]
    assert (first["source"]["schema"], first["source"]["table"]) == ("public", "orders")


def test_a_table_follows_another_one(bare_site: Site, database: Database) -> None:
    database.run(TABLE, "CREATE TABLE copies (LIKE orders INCLUDING INDEXES)")
    to_copies(bare_site, database)
    run(bare_site)
    database.run("INSERT INTO orders SELECT n, 'note ' || n, n / 4.0 FROM generate_series(1, 500) n")
    database.run("UPDATE orders SET note = 'later' WHERE id % 3 = 0", "DELETE FROM orders WHERE id % 5 = 0")
    database.run("UPDATE orders SET id = id + 1000 WHERE id % 7 = 0")
    run(bare_site)
    assert database.run("(TABLE orders EXCEPT TABLE copies) UNION ALL (TABLE copies EXCEPT TABLE orders)") == []
    assert database.run("SELECT count(*) FROM copies") == [(400,)]
