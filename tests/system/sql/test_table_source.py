"""A table of SQLite as the source of connectors that people run with the command."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.site import Site
from tests.system.sql.test_table_sink import database
from tests.table_connectors import UNREACHABLE, apply, run, write

ORDERS = "CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, writer INTEGER, note TEXT)"


def to_file(site: Site, **options: Any) -> None:
    source = {"sql": {"url": "sqlite:///shop.db", "table": "orders", **options}}
    site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}})


def lines(site: Site) -> list[Any]:
    path = site.folder / "out.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_each_row_becomes_a_line_once(bare_site: Site) -> None:
    database(bare_site, ORDERS, "INSERT INTO orders (writer, note) VALUES (1, 'Zoë'), (2, 'Zoë'), (3, NULL)")
    to_file(bare_site)
    assert "3 delivered" in run(bare_site)
    database(bare_site, "UPDATE orders SET note = 'later' WHERE id = 1", "DELETE FROM orders WHERE id = 2")
    database(bare_site, "INSERT INTO orders (writer) VALUES (4)")
    run(bare_site)
    run(bare_site)
    assert lines(bare_site) == [
        {"id": 1, "writer": 1, "note": "Zoë"},
        {"id": 2, "writer": 2, "note": "Zoë"},
        {"id": 3, "writer": 3, "note": None},
        {"id": 4, "writer": 4, "note": None},
    ]


def test_a_table_made_again_stops_each_run_until_the_position_is_moved(bare_site: Site) -> None:
    """Also when its numbers have passed what was read of the former one."""
    fill = "INSERT INTO orders (writer) VALUES (1), (2), (3), (4)"
    database(bare_site, ORDERS, fill)
    to_file(bare_site)
    assert "4 delivered" in run(bare_site)
    database(bare_site, "DROP TABLE orders", ORDERS, "INSERT INTO orders (writer) VALUES (11), (12)")
    assert "the numbers of column id were back at 2" in bare_site.waybill("plan", "a")
    assert "to the lowest number of the table, if it was made again" in run(bare_site, code=5)
    database(bare_site, fill)
    for _ in range(2):
        assert "nobody has read, from number 3 on" in run(bare_site, code=5)
    bare_site.waybill("offsets", "set", "a", "orders", "1", "--yes")
    assert "6 delivered" in run(bare_site)
    assert [line["id"] for line in lines(bare_site)] == [1, 2, 3, 4, 1, 2, 3, 4, 5, 6]


def test_one_of_several_tables_made_again_is_not_forgotten_either(bare_site: Site) -> None:
    fill = "INSERT INTO orders (writer) VALUES (1), (2), (3), (4)"
    more = "CREATE TABLE more (id INTEGER PRIMARY KEY AUTOINCREMENT, writer INTEGER)"
    database(bare_site, ORDERS, fill, more)
    source = {"sql": {"url": "sqlite:///shop.db", "tables": ["orders", "more"]}}
    bare_site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}})
    assert "4 delivered" in run(bare_site)
    database(bare_site, "DROP TABLE orders", ORDERS, "INSERT INTO orders (writer) VALUES (11), (12)")
    assert "the highest number of the table is 2" in run(bare_site, code=5)
    database(bare_site, fill, "INSERT INTO more (writer) VALUES (21)")
    for _ in range(2):
        assert "nobody has read, from number 3 on" in run(bare_site, code=5)
    bare_site.waybill("offsets", "set", "a", "orders", "1", "--yes")
    assert "6 delivered" in run(bare_site)
    assert sorted(line["writer"] for line in lines(bare_site)) == [1, 1, 2, 2, 3, 3, 4, 4, 11, 12, 21]


def test_a_table_in_other_capitals_is_told_of_and_its_rows_are_spared(bare_site: Site) -> None:
    database(bare_site, ORDERS, "INSERT INTO orders (writer) VALUES (1), (2)")
    to_file(bare_site, table="Orders")
    run(bare_site)
    path = bare_site.folder / "a.yaml"
    path.write_text(path.read_text().replace("Orders", "orders"))
    for command in ("check", "apply"):
        with bare_site.start(command, "a.yaml") as process:
            assert "Orders was named in other capitals before" in "".join(process.communicate(timeout=60))
    [former] = [one for one in bare_site.json("plan", "a")["partitions"] if one["partition"] == "Orders"]
    bare_site.waybill("connectors", "delete", "a", "--yes")
    bare_site.waybill("apply", "a.yaml")
    bare_site.waybill("offsets", "set", "a", "orders", str(former["committed"]), "--yes")
    database(bare_site, "INSERT INTO orders (writer) VALUES (3)")
    assert "1 delivered" in run(bare_site)
    assert [line["id"] for line in lines(bare_site)] == [1, 2, 3]


def test_bulk_brings_all_rows_in_each_run(bare_site: Site) -> None:
    database(bare_site, ORDERS, "INSERT INTO orders (writer) VALUES (1), (2)")
    to_file(bare_site, bulk=True)
    run(bare_site)
    database(bare_site, "DELETE FROM orders WHERE id = 1")
    run(bare_site)
    assert [line["id"] for line in lines(bare_site)] == [1, 2, 2]


def test_from_a_table_into_a_table(bare_site: Site) -> None:
    made = "id INTEGER PRIMARY KEY, price DECIMAL(12,2), at DATETIME, body BLOB, tags JSON, big TEXT, ok BOOLEAN"
    database(
        bare_site,
        f"CREATE TABLE orders ({made})",
        f"CREATE TABLE copies ({made})",
        "INSERT INTO orders VALUES (1, 12345678.9, '2026-01-02 03:04:05.000006', x'00ff', '[\"a\",null]',"
        " '12345678901234567890.10', 1), (2, NULL, NULL, NULL, NULL, NULL, NULL)",
    )
    fields = {"id": "int64", "price": "decimal(12,2)", "at": "datetime(us)", "body": "bytes", "tags": ["text"]}
    bare_site.apply(
        "a",
        {
            "source": {"sql": {"url": "sqlite:///shop.db", "table": "orders"}},
            "sink": {"sql": {"url": "sqlite:///shop.db", "table": "copies", "mode": "upsert"}},
            "parse": {"format": "json", "fields": fields | {"big": "decimal(38,2)", "ok": "bool"}},
        },
    )
    assert "2 delivered" in run(bare_site)
    found = database(bare_site, "SELECT * FROM copies ORDER BY id")
    assert found == database(bare_site, "SELECT * FROM orders ORDER BY id")


def test_a_row_comes_again_whenever_it_has_changed(bare_site: Site) -> None:
    made = "id INTEGER PRIMARY KEY, note TEXT, changed_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP"
    database(bare_site, f"CREATE TABLE orders ({made})", "CREATE TABLE copies (id INTEGER PRIMARY KEY, note TEXT)")
    bare_site.apply(
        "a",
        {
            "source": {"sql": {"url": "sqlite:///shop.db", "table": "orders", "timestamp": "changed_at"}},
            "sink": {"sql": {"url": "sqlite:///shop.db", "table": "copies", "mode": "upsert"}},
            "parse": {"format": "json", "fields": {"id": "int64", "note": "text"}, "unknown": "drop"},
        },
    )
    database(bare_site, "INSERT INTO orders (note) VALUES ('a'), ('b'), ('c')")
    assert "3 delivered" in run(bare_site)
    database(bare_site, "UPDATE orders SET note = 'changed', changed_at = CURRENT_TIMESTAMP WHERE id = 2")
    assert "1 delivered" in run(bare_site)
    assert database(bare_site, "SELECT note FROM copies ORDER BY id") == [("a",), ("changed",), ("c",)]
    database(bare_site, "UPDATE orders SET note = 'x', changed_at = 'soon' WHERE id = 3")
    assert "Column changed_at of the row with number 3 has no time" in run(bare_site, code=5)
    said = bare_site.waybill("check", "a.yaml")
    assert "by the clock of the driver's host" in said.lower()


def test_a_query_brings_rows_of_two_tables(bare_site: Site) -> None:
    database(
        bare_site,
        "CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, customer TEXT)",
        "CREATE TABLE items (id INTEGER PRIMARY KEY AUTOINCREMENT, of_order INTEGER, price INTEGER)",
        "INSERT INTO orders (customer) VALUES ('Zoë')",
        "INSERT INTO items (of_order, price) VALUES (1, 5), (1, 6)",
    )
    query = "SELECT i.id, o.customer, i.price FROM items i JOIN orders o ON o.id = i.of_order"
    source = {"sql": {"url": "sqlite:///shop.db", "query": query, "incrementing": "id"}}
    bare_site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}})
    assert "2 delivered" in run(bare_site)
    database(bare_site, "INSERT INTO items (of_order, price) VALUES (1, 7)")
    run(bare_site)
    assert [(line["id"], line["customer"], line["price"]) for line in lines(bare_site)] == [
        (1, "Zoë", 5),
        (2, "Zoë", 6),
        (3, "Zoë", 7),
    ]
    assert "the database takes the query" in bare_site.waybill("check", "a.yaml", "--probe")
    assert '"price":7' in bare_site.waybill("try", "a.yaml", "--last", "1")
    source["sql"]["query"] = "SELEKT"
    bare_site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}})
    assert "does not take the query" in run(bare_site, code=2)


def test_several_tables_by_one_connector(bare_site: Site) -> None:
    """A new one as well; one that cannot be read holds up no other, and one that is gone is told."""
    database(bare_site, ORDERS, "INSERT INTO orders (writer) VALUES (1), (2)")
    for table in ("pay_in", "pay_out"):
        database(bare_site, f"CREATE TABLE {table} (id INTEGER PRIMARY KEY)", f"INSERT INTO {table} VALUES (1), (2)")
    source = {"sql": {"url": "sqlite:///shop.db", "tables": ["ORDERS", "pay_*"], "exclude": ["*_old"]}}
    bare_site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}})
    assert "6 delivered" in run(bare_site)
    database(bare_site, "CREATE TABLE pay_more (id INTEGER PRIMARY KEY)", "INSERT INTO pay_more VALUES (7)")
    database(bare_site, "CREATE TABLE pay_old (id INTEGER PRIMARY KEY)", "INSERT INTO pay_old VALUES (7)")
    database(bare_site, "INSERT INTO pay_in VALUES (3)")
    run(bare_site)
    database(bare_site, "DROP TABLE pay_out", "INSERT INTO pay_in VALUES (4)")
    assert "There is no such table" in run(bare_site, code=UNREACHABLE)
    assert sorted(line["id"] for line in lines(bare_site)) == [1, 1, 1, 2, 2, 2, 3, 4, 7]
    assert sorted(line["id"] for line in lines(bare_site) if "writer" in line) == [1, 2]


def test_a_connector_that_feeds_itself_is_refused(bare_site: Site) -> None:
    (bare_site.folder / "a.yaml").write_text(
        "version: 1\nname: a\nsource: {sql: {url: 'sqlite:///shop.db', table: t}}\n"
        "sink: {sql: {url: 'sqlite:///shop.db', table: T}}\nparse: {format: json, fields: {id: int64}}\n"
    )
    bare_site.waybill("check", "a.yaml", code=2)
    several = (bare_site.folder / "a.yaml").read_text().replace("table: t}", "tables: ['T*']}", 1)
    (bare_site.folder / "a.yaml").write_text(several)
    assert "is the table that the source reads" in bare_site.waybill("check", "a.yaml", code=2)


def test_what_a_person_sees_before_a_run(bare_site: Site) -> None:
    rows = ", ".join(f"({number}, 'x')" for number in range(30))
    database(bare_site, ORDERS, f"INSERT INTO orders (writer, note) VALUES {rows}")
    to_file(bare_site)
    said = bare_site.waybill("check", "a.yaml", "--probe")
    assert "exactly once" in said
    assert "The number of each row is drawn by the statement that inserts it" in said
    assert "table orders is there, its rows are numbered by id" in said
    tried = bare_site.waybill("try", "a.yaml", "--last", "2")
    assert '{"id":29,' in tried
    assert '{"id":28,' not in tried


def test_a_window_follows_the_table(bare_site: Site) -> None:
    database(bare_site, ORDERS, "INSERT INTO orders (writer) VALUES (1)")
    to_file(bare_site, every_s=0.05)
    with bare_site.start("run", "a", "--engine", "inline", "--window", "5s") as process:
        for number in range(20):
            database(bare_site, f"INSERT INTO orders (writer) VALUES ({number})")
        assert process.wait(60) == 0
    assert [line["id"] for line in lines(bare_site)] == list(range(1, 22))


def test_a_row_that_no_record_can_have_is_a_dead_letter(bare_site: Site) -> None:
    database(bare_site, ORDERS, "INSERT INTO orders (note) VALUES ('a'), (x'00ff'), ('c')")
    source = {"sql": {"url": "sqlite:///shop.db", "table": "orders"}}
    bare_site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}, "errors": {"tolerance": "all"}})
    run(bare_site)
    assert [line["id"] for line in lines(bare_site)] == [1, 3]
    [letter] = bare_site.json("dead-letters", "list", "a")["dead_letters"]
    assert (letter["offset"], letter["stage"], letter["kind"]) == (2, "read", "Unfit")


def test_a_file_that_is_not_there_is_looked_for_again(bare_site: Site) -> None:
    to_file(bare_site)
    assert "The file cannot be opened" in run(bare_site, code=UNREACHABLE)
    assert not (bare_site.folder / "shop.db").exists()
    database(bare_site, ORDERS, "INSERT INTO orders (writer) VALUES (1)")
    run(bare_site)
    assert len(lines(bare_site)) == 1


@pytest.mark.server
def test_workers_of_spark_on_this_host_write_and_read_the_file(site: Site) -> None:
    """From a file into a table, and from that into a topic."""
    write(site, *({"id": number, "name": "Zoë"} for number in range(1, 101)))
    apply(site, {"sql": {"url": "sqlite:///shop.db", "table": "people", "create_table": True}})
    site.waybill("run", "a")
    assert database(site, "SELECT count(*), min(name), max(id) FROM people") == [(100, "Zoë", 100)]
    source = {"sql": {"url": "sqlite:///shop.db", "table": "people", "incrementing": "id"}}
    database(site, "CREATE UNIQUE INDEX ids ON people (id)")
    sink = {"rocketmq": {"name_servers": site.name_servers, "topic": site.topic}}
    site.apply("b", {"source": source, "sink": sink})
    said = site.waybill("run", "b", code=2)
    assert "Column id takes NULL" in said
    database(
        site,
        "CREATE TABLE rows (id INTEGER PRIMARY KEY, name TEXT)",
        "INSERT INTO rows SELECT * FROM people",
    )
    source["sql"]["table"] = "rows"
    site.apply("b", {"source": source, "sink": sink})
    site.waybill("run", "b")
    found = [json.loads(body) for body in site.messages()]
    assert sorted(one["id"] for one in found) == list(range(1, 101))
