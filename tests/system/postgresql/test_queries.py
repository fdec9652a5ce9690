"""A query of either database as the source of connectors that people run with the command."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import mariadb, postgres_tables
from tests.query_cases import JOIN, Shop, ShopOfMysql
from tests.site import Site
from tests.table_connectors import UNREACHABLE, run

pytestmark = pytest.mark.server


@pytest.fixture(params=["postgresql", "mysql"])
def shop(request: pytest.FixtureRequest) -> Shop:
    if request.param == "mysql":
        return ShopOfMysql(mariadb.Database(request.getfixturevalue("mariadb")))
    return Shop(postgres_tables.Database(request.getfixturevalue("postgres_url")))


def document(shop: Shop, query: str = JOIN, **more: Any) -> dict[str, Any]:
    [(system, given)] = shop.database.source("", query=query, **{"incrementing": "id", **more}).items()
    del given["table"]
    return {"source": {system: given}, "sink": {"file": {"path": "out.jsonl"}}}


def lines(site: Site) -> list[Any]:
    path = site.folder / "out.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def probed(site: Site, code: int) -> str:
    with site.start("check", "a.yaml", "--probe") as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == code
    return said


def test_from_the_first_look_to_a_line(bare_site: Site, shop: Shop) -> None:
    shop.sell("Zoë", 10, 20)
    bare_site.apply("a", document(shop))
    said = probed(bare_site, 0)
    assert "the database takes the query, its rows are numbered by id" in said
    assert "exactly once" in said
    assert "A row of the result is there" in said
    assert '"price":20' in bare_site.waybill("try", "a.yaml", "--last", "1")
    assert "query" in bare_site.waybill("plan", "a")
    assert bare_site.json("lag", "a")["connectors"][0]["lag"] == 2
    assert "2 delivered" in run(bare_site)
    assert bare_site.json("lag", "a")["connectors"][0]["lag"] == 0
    shop.sell("Ann", 30)
    assert "1 delivered" in run(bare_site)
    assert [(one["customer"], one["price"]) for one in lines(bare_site)] == [("Zoë", 10), ("Zoë", 20), ("Ann", 30)]


def test_another_query_stops_until_somebody_decides(bare_site: Site, shop: Shop) -> None:
    shop.sell("Ann", 10, 20)
    bare_site.apply("a", document(shop))
    run(bare_site)
    shop.sell("Bob", 30)
    bare_site.apply("a", document(shop, "SELECT id, price FROM items"))
    assert "the query was changed" in run(bare_site, code=5)
    assert len(lines(bare_site)) == 2
    bare_site.waybill("offsets", "set", "a", "query", "2", "--yes")  # 3 is where it stands: that would move nothing
    bare_site.waybill("offsets", "set", "a", "query", "3", "--yes")
    assert "1 delivered" in run(bare_site)
    assert lines(bare_site)[-1] == {"id": 3, "price": 30}
    bare_site.apply("a", document(shop, "SELECT id, price + 1 AS price FROM items"))
    run(bare_site, code=5)
    assert "3 delivered" in run(bare_site, "--accept-gaps")
    assert [one["price"] for one in lines(bare_site)[-3:]] == [11, 21, 31]


def test_a_query_that_the_server_does_not_take(bare_site: Site, shop: Shop) -> None:
    shop.sell("Ann", 10)
    bare_site.apply("a", document(shop, "DELETE FROM items"))
    assert "The database does not take the query" in probed(bare_site, UNREACHABLE)
    said = run(bare_site, code=2)
    assert "The database does not take the query" in said
    assert "Write one SELECT that only reads" in said
    assert lines(bare_site) == []
    assert shop.database.run("SELECT COUNT(*) FROM items")[0][0] == 1


def test_what_a_document_must_say(bare_site: Site, shop: Shop) -> None:
    for given, words in (
        ({"incrementing": None}, "query needs incrementing"),
        ({"tables": ["orders"]}, "or write a query"),
        ({"query": "SELECT 1 AS id;"}, "no semicolon at its end"),
    ):
        made = document(shop, **{"query": JOIN, **given})
        (bare_site.folder / "b.yaml").write_text(json.dumps({"version": 1, "name": "b", **made}))
        assert words in bare_site.waybill("check", "b.yaml", code=2)


def test_from_a_query_into_a_table(bare_site: Site, shop: Shop) -> None:
    shop.sell("Ann", 10, 20)
    kind = "datetime(6)" if isinstance(shop, ShopOfMysql) else "timestamptz"
    shop.database.run(f"CREATE TABLE copies (id bigint PRIMARY KEY, customer varchar(20), price int, at {kind})")
    made = document(shop)
    made["sink"] = shop.database.sink("copies", mode="upsert")
    made["parse"] = {"format": "json", "fields": {"id": "int64", "customer": "text", "price": "int32"}}
    bare_site.apply("a", made)
    run(bare_site)
    found = shop.database.run("SELECT id, customer, price FROM copies ORDER BY id")
    assert [*found] == [(1, "Ann", 10), (2, "Ann", 20)]


def test_a_range_that_a_query_has_planned_is_finished_with_it(bare_site: Site, shop: Shop) -> None:
    shop.sell("Ann", 10, 20)
    bare_site.apply("a", document(shop))
    bare_site.fault("before-receipt")
    with bare_site.start("run", "a", "--engine", "inline") as killed:
        killed.communicate(timeout=60)
    assert killed.returncode != 0
    bare_site.apply("a", document(shop, "SELECT id, price FROM items"))
    assert "the query was changed" in run(bare_site, code=5)
    assert [one["customer"] for one in lines(bare_site)] == ["Ann", "Ann"]
    run(bare_site, "--accept-gaps")
    assert [sorted(one) for one in lines(bare_site)[2:]] == [["id", "price"]] * 2


def test_a_backfill_of_a_query(bare_site: Site, shop: Shop) -> None:
    shop.sell("Ann", 10, 20, 30)
    bare_site.apply("a", document(shop))
    run(bare_site)
    bare_site.waybill("backfill", "a", "--range", "query:2-4", "--engine", "inline")
    found = [json.loads(line) for path in bare_site.folder.glob("out*") for line in path.read_text().splitlines()]
    assert sorted(one["price"] for one in found) == [10, 20, 20, 30, 30]
