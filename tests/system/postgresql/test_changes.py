"""What happens to rows of PostgreSQL as the source of connectors that people run with the command."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.faults.kit.journeys import SHORT_LEASES
from tests.faults.kit.processes import wait_for
from tests.postgres_tables import Database
from tests.site import Site
from tests.table_connectors import run

pytestmark = pytest.mark.server

TABLE = "CREATE TABLE orders (id int PRIMARY KEY, note text, price numeric(10,2))"
FIELDS = {"id": "int32", "note": "text", "price": "decimal(10,2)"}


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    made = Database(postgres_url)
    yield made
    made.drop_slots()


other = database
"""One more."""


def to_file(site: Site, database: Database, *tables: str, **options: Any) -> None:
    source = database.changes(*(tables or ("orders",)), **options)
    site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}})


def test_two_tables_follow_two_others(bare_site: Site, database: Database, postgres_url: str) -> None:
    """One connector, into another database: with deletes, keys that change, and rows that were there."""
    tables = (TABLE, "CREATE TABLE customers (id int PRIMARY KEY, note text, born date)")
    copy = Database(postgres_url)
    copy.run(*tables, "ALTER TABLE orders ADD FOREIGN KEY (id) REFERENCES customers DEFERRABLE INITIALLY DEFERRED")
    database.run(*tables, "INSERT INTO customers SELECT n, 'first', '2000-02-29' FROM generate_series(1, 700) n")
    of_tables = {"orders": {"fields": ["id", "note", "price"]}, "customers": {"fields": ["id", "note", "born"]}}
    bare_site.apply(
        "a",
        {
            "source": database.changes("orders", "customers", snapshot="initial"),
            "sink": copy.sink("orders", mode="upsert", tables=of_tables),
            "parse": {"format": "debezium", "fields": {**FIELDS, "born": "date"}},
            "rules": [
                {"name": "orders", "filter": "public.orders"},
                {"name": "customers", "when": "change:table = 'customers'", "to": "customers"},
            ],
        },
    )
    run(bare_site)
    database.run("INSERT INTO orders SELECT n, 'note ' || n, n / 4.0 FROM generate_series(1, 500) n")
    database.run("UPDATE orders SET note = 'later' WHERE id % 3 = 0", "UPDATE customers SET born = NULL WHERE id < 9")
    database.run("DELETE FROM orders WHERE id % 5 = 0", "DELETE FROM customers WHERE id % 5 = 0")
    database.run("UPDATE customers SET id = id + 1000 WHERE id > 600")
    run(bare_site)
    for table, count in (("orders", 400), ("customers", 560)):
        rows = database.run(f"SELECT * FROM {table} ORDER BY id")
        assert copy.run(f"SELECT * FROM {table} ORDER BY id") == rows
        assert len(rows) == count


def to_copies(site: Site, database: Database, **options: Any) -> None:
    site.apply(
        "a",
        {
            "source": database.changes("orders", schemas=True, **options),
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


def test_what_is_rolled_back_never_comes(bare_site: Site, database: Database) -> None:
    database.run(TABLE)
    to_file(bare_site, database)
    run(bare_site)
    with database.connected() as session, session.cursor() as cursor:
        cursor.execute("INSERT INTO orders VALUES (1); SAVEPOINT s; INSERT INTO orders VALUES (2); ROLLBACK TO s")
        session.commit()
        cursor.execute("INSERT INTO orders VALUES (3)")
        session.rollback()
    run(bare_site)
    assert [after["id"] for _, _, after in told(bare_site)] == [1]


def test_a_transaction_larger_than_a_range_comes_in_pieces(bare_site: Site, database: Database) -> None:
    database.run(TABLE)
    source = database.changes("orders")
    limits = {"range_records": 7_000}
    bare_site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}, "limits": limits})
    run(bare_site)
    database.run("INSERT INTO orders SELECT n, 'x' FROM generate_series(1, 25000) n", "INSERT INTO orders VALUES (0)")
    run(bare_site)
    assert [after["id"] for _, _, after in told(bare_site)] == [*range(1, 25_001), 0]
    database.run("INSERT INTO orders SELECT -n, 'y' FROM generate_series(1, 5) n")
    run(bare_site)
    assert [after["id"] for _, _, after in told(bare_site)][25_001:] == [-1, -2, -3, -4, -5]


def test_a_range_ends_where_a_transaction_does(bare_site: Site, database: Database) -> None:
    database.run(TABLE, "CREATE TABLE copies (LIKE orders INCLUDING INDEXES)")
    bare_site.apply(
        "a",
        {
            "source": database.changes("orders"),
            "sink": database.sink("copies", mode="upsert"),
            "parse": {"format": "debezium", "fields": FIELDS},
            "limits": {"range_records": 10},
        },
    )
    run(bare_site)
    for first in range(1, 50, 7):
        database.run(f"INSERT INTO orders SELECT n, 'x' FROM generate_series({first}, {first + 6}) n")
    run(bare_site)
    ends = database.run("SELECT array_agg(id ORDER BY id) FROM copies GROUP BY xmin::text ORDER BY 1")
    assert [ids[-1] % 7 for (ids,) in ends] == [0] * len(ends)
    assert len(ends) == 7


def test_a_slot_that_was_dropped_is_a_loss_that_somebody_accepts(bare_site: Site, database: Database) -> None:
    database.run(TABLE)
    to_file(bare_site, database)
    run(bare_site)
    database.run("INSERT INTO orders VALUES (1)")
    run(bare_site)
    database.drop_slots()
    database.run("INSERT INTO orders VALUES (2)")
    assert "was dropped" in run(bare_site, code=5)
    assert "was dropped" in run(bare_site, code=5)
    run(bare_site, "--accept-gaps")
    database.run("INSERT INTO orders VALUES (3)")
    run(bare_site)
    assert [after["id"] for _, _, after in told(bare_site)] == [1, 3]


def test_of_another_database_or_slot_it_says_which_one_holds_the_log(
    bare_site: Site, database: Database, other: Database
) -> None:
    """A slot that nobody reads fills the disk of its server."""
    database.run(TABLE)
    to_file(bare_site, database)
    run(bare_site)
    [(slot,)] = database.run("SELECT slot_name FROM pg_replication_slots WHERE database = current_database()")
    dropping = f"SELECT pg_drop_replication_slot('{slot}')"
    to_file(bare_site, database, slot="another")
    said = run(bare_site, code=5)
    assert f"there is no slot another yet, and slot {slot} holds the log" in said
    assert dropping in said
    other.run(TABLE)
    to_file(bare_site, other)
    said = run(bare_site, code=2)
    assert f"Slot {slot} is one of database {database.options['database']}" in said
    assert dropping in said
    database.drop_slots()
    run(bare_site)
    other.run("INSERT INTO orders VALUES (1)")
    run(bare_site)
    assert [after["id"] for _, _, after in told(bare_site)] == [1]


def test_a_slot_that_was_moved_on_or_made_again_is_noticed(bare_site: Site, database: Database) -> None:
    database.run(TABLE)
    to_file(bare_site, database)
    run(bare_site)
    database.run("INSERT INTO orders VALUES (1)")
    run(bare_site)
    database.run("INSERT INTO orders VALUES (2)")
    [(slot,)] = database.run("SELECT slot_name FROM pg_replication_slots WHERE database = current_database()")
    database.run(f"SELECT pg_replication_slot_advance('{slot}', pg_current_wal_lsn())")
    assert "moved on: by another program" in run(bare_site, code=5)
    database.run("INSERT INTO orders VALUES (3)")
    run(bare_site, "--accept-gaps")
    run(bare_site)
    assert [after["id"] for _, _, after in told(bare_site)] == [1, 3]
    database.drop_slots()
    database.run("INSERT INTO orders VALUES (4)", f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')")
    assert "was made again" in run(bare_site, code=5)


def test_a_dry_run_makes_nothing(bare_site: Site, database: Database) -> None:
    database.run(TABLE)
    to_file(bare_site, database)
    bare_site.waybill("plan", "a")
    bare_site.waybill("lag", "a")
    assert slots(database) == ([], [])
    run(bare_site)
    assert [len(one) for one in slots(database)] == [1, 1]
    assert "Slot" not in bare_site.waybill("connectors", "delete", "a", "--yes")
    assert slots(database) == ([], [])


def slots(database: Database) -> tuple[list[Any], list[Any]]:
    """And publications."""
    kept = database.run("SELECT slot_name FROM pg_replication_slots WHERE database = current_database()")
    return kept, database.run("SELECT pubname FROM pg_publication")


def test_a_table_without_identity_is_not_published(bare_site: Site, database: Database) -> None:
    """Its updates would fail, in the programs of others."""
    database.run("CREATE TABLE orders (id int, note text)", "INSERT INTO orders VALUES (1, 'x')")
    to_file(bare_site, database)
    assert "no replica identity" in run(bare_site, code=2)
    database.run("UPDATE orders SET note = 'y'", "ALTER TABLE orders REPLICA IDENTITY FULL")
    run(bare_site)
    database.run("UPDATE orders SET note = 'z'", "DELETE FROM orders")
    run(bare_site)
    assert told(bare_site) == [
        ("u", {"id": 1, "note": "y"}, {"id": 1, "note": "z"}),
        ("d", {"id": 1, "note": "z"}, None),
    ]


def test_tables_by_a_pattern_of_a_publication_of_others(bare_site: Site, database: Database) -> None:
    database.run(TABLE, "CREATE SCHEMA sales", "CREATE TABLE sales.one (id int PRIMARY KEY)")
    database.run("CREATE PUBLICATION everything FOR ALL TABLES")
    to_file(bare_site, database, "sales.*", publication="everything", slot=f"own_{database.options['database']}")
    run(bare_site)
    database.run("CREATE TABLE sales.two (id int PRIMARY KEY)", "INSERT INTO orders VALUES (1)")
    database.run(
        "INSERT INTO sales.one VALUES (1)", "INSERT INTO sales.two VALUES (2)", "INSERT INTO orders VALUES (3)"
    )
    run(bare_site)
    run(bare_site)
    assert [(one["source"]["table"], one["after"]["id"]) for one in events(bare_site)] == [("one", 1), ("two", 2)]
    said = bare_site.waybill("connectors", "delete", "a", "--yes")
    assert "stays and holds the log" in said
    assert [len(one) for one in slots(database)] == [1, 1]


def test_large_values_that_do_not_change(bare_site: Site, database: Database) -> None:
    database.run(TABLE, "ALTER TABLE orders ALTER note SET STORAGE EXTERNAL")
    to_file(bare_site, database)
    run(bare_site)
    database.run("INSERT INTO orders VALUES (1, repeat('x', 5000), 1)", "UPDATE orders SET price = 2")
    database.run("ALTER TABLE orders REPLICA IDENTITY FULL", "UPDATE orders SET price = 3")
    run(bare_site)
    notes = [after["note"] for _, _, after in told(bare_site)]
    assert notes == ["x" * 5000, "__debezium_unavailable_value", "x" * 5000]


def test_a_value_that_no_event_can_have_becomes_a_dead_letter(bare_site: Site, database: Database) -> None:
    database.run(TABLE, "ALTER TABLE orders ADD at timestamptz")
    source = database.changes("orders")
    bare_site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}, "errors": {"tolerance": "all"}})
    run(bare_site)
    database.run("INSERT INTO orders VALUES (1, 'a', 'NaN', NULL), (2, 'b', 1, NULL), (3, 'c', NULL, 'infinity')")
    assert "rejected: 2" in run(bare_site)
    assert [after["id"] for _, _, after in told(bare_site)] == [2]
    letters = bare_site.json("dead-letters", "list", "a")["dead_letters"]
    assert sorted(one["message"] for one in letters) == [
        '"at" is no moment that an event can have',
        '"price" is no number that an event can have',
    ]


def test_changes_come_while_a_window_is_open(bare_site: Site, database: Database) -> None:
    database.run(TABLE)
    to_file(bare_site, database)
    with bare_site.start("run", "a", "--engine", "inline", "--window", "60s") as process:
        wait_for(lambda: slots(database)[0], "the slot")
        for number in range(5):
            database.run(f"INSERT INTO orders VALUES ({number})")
            wait_for(lambda: len(events(bare_site)) == number + 1, "the event of a row")  # noqa: B023
        bare_site.waybill("connectors", "pause", "a")
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    [(active, behind)] = database.run(
        "SELECT active, pg_current_wal_lsn() - confirmed_flush_lsn FROM pg_replication_slots"
        " WHERE database = current_database()"
    )
    assert (active, behind < 1 << 20) == (False, True)


def test_what_other_tables_write_is_not_held_up(bare_site: Site, database: Database) -> None:
    database.run(TABLE, "CREATE TABLE busy (note text)")
    to_file(bare_site, database)
    run(bare_site)
    database.run("INSERT INTO busy SELECT repeat('x', 1000) FROM generate_series(1, 5000)")
    run(bare_site)
    run(bare_site)
    [(behind,)] = database.run(
        "SELECT pg_current_wal_lsn() - confirmed_flush_lsn FROM pg_replication_slots"
        " WHERE database = current_database()"
    )
    assert behind < 1 << 20
    database.run("INSERT INTO orders VALUES (1)")
    run(bare_site)
    assert [after["id"] for _, _, after in told(bare_site)] == [1]


def test_what_a_person_sees_before_a_run(bare_site: Site, database: Database) -> None:
    reader = f"reader_{database.options['database']}"
    database.run(TABLE, f"CREATE ROLE {reader} LOGIN", "ALTER TABLE orders ADD g int GENERATED ALWAYS AS (id) STORED")
    to_file(bare_site, database)
    said = bare_site.waybill("check", "a.yaml", "--probe")
    assert "will be made of public.orders" in said
    assert "exactly once" in said
    assert "column public.orders.g is generated" in said
    to_file(bare_site, database, user=reader, snapshot="initial")
    with bare_site.start("check", "a.yaml", "--probe") as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    database.run("ALTER TABLE orders ENABLE ROW LEVEL SECURITY")
    with bare_site.start("check", "a.yaml", "--probe") as process:
        assert "row-level security hides rows of table public.orders" in process.communicate(timeout=60)[0]
    owner = "does not own table public.orders"
    for words in ("REPLICATION", "GRANT CREATE ON DATABASE", owner, "GRANT SELECT ON public.orders"):
        assert words in said


def test_rows_that_are_there_come_first(bare_site: Site, database: Database) -> None:
    database.run(
        TABLE, "CREATE TABLE nothing (id int PRIMARY KEY)", "CREATE TABLE pairs (b text, a int, PRIMARY KEY (a, b))"
    )
    database.run("INSERT INTO orders SELECT n, 'note ' || n, n FROM generate_series(1, 25) n")
    database.run("INSERT INTO pairs SELECT chr(96 + n % 3), n / 3 FROM generate_series(0, 9) n")
    to_file(bare_site, database, "nothing", "orders", "pairs", snapshot="initial", snapshot_rows=4)
    assert "35 delivered" in run(bare_site)
    database.run("INSERT INTO orders VALUES (26)", "INSERT INTO nothing VALUES (1)", "DELETE FROM pairs WHERE a = 0")
    run(bare_site)
    assert [(one["op"], one["source"]["snapshot"]) for one in events(bare_site)][:35] == [("r", "incremental")] * 35
    assert [after["id"] for op, _, after in told(bare_site)[:25]] == [*range(1, 26)]
    assert told(bare_site)[3][2] == {"id": 4, "note": "note 4", "price": "AZA="}
    assert [op for op, *_ in told(bare_site)[35:]] == ["c", "c", "d", "d", "d"]


def test_lag_says_how_many_rows_are_still_to_come(bare_site: Site, database: Database) -> None:
    bare_site.settings.update(SHORT_LEASES)
    database.run(TABLE, "CREATE TABLE pairs (a int, b int, PRIMARY KEY (a, b))")
    database.run("INSERT INTO orders SELECT generate_series(1, 1000)", "INSERT INTO pairs VALUES (1, 1)", "ANALYZE")
    to_file(bare_site, database, "orders", "pairs", snapshot="initial", snapshot_rows=50)
    before = bare_site.json("lag", "a")["connectors"][0]["snapshot"]
    assert [(one["left"], one["rows"]) for one in before] == [(1000, 1000), (1, 1)]
    bare_site.fault("settled")  # what is written at once into the log
    run(bare_site, code=-9)
    assert bare_site.json("lag", "a")["connectors"][0]["snapshot"] == [
        {"table": "public.orders", "left": 600, "rows": 1000, "where": ""},
        {"table": "public.pairs", "left": 1, "rows": 1, "where": ""},
    ]
    assert "a: table public.orders: about 600 of 1,000 rows are still to come" in bare_site.waybill("lag", "a")
    run(bare_site)
    assert len(events(bare_site)) == 1001
    assert bare_site.json("lag", "a")["connectors"][0]["snapshot"] == []


def test_a_table_of_any_types_is_read_as_its_changes_are(bare_site: Site, database: Database) -> None:
    """What an event has of a row does not depend on how it came."""
    database.run(
        "CREATE TYPE mood AS ENUM ('fine', 'so, so')",
        "CREATE DOMAIN small AS integer",
        "CREATE TABLE orders (ok boolean, id text, c char(4), m mood, ms mood[], s small, n numeric(5,2), j json,"
        " b bytea, e text, d date[], twice int GENERATED ALWAYS AS (s * 2) STORED, PRIMARY KEY (id, ok))",
    )
    texts = r"""E'a"\\,() ß', 'x', 'so, so', '{fine,"so, so"}'"""
    row = rf"""(true, {texts}, 3, 1.5, '{{"a": "(,)"}}', '\x00', '', '{{2026-01-31}}')"""
    database.run(f"INSERT INTO orders VALUES {row}", "INSERT INTO orders (ok, id) VALUES (false, '')")
    to_file(bare_site, database, snapshot="initial", snapshot_rows=1)
    run(bare_site)
    database.run(
        "DELETE FROM orders", f"INSERT INTO orders VALUES {row}", "INSERT INTO orders (ok, id) VALUES (false, '')"
    )
    run(bare_site)
    read = [one["after"] for one in events(bare_site) if one["op"] == "r"]
    assert len(read) == 2
    assert sorted(read, key=str) == sorted((one["after"] for one in events(bare_site) if one["op"] == "c"), key=str)


def test_rows_come_once_more_when_somebody_asks(bare_site: Site, database: Database) -> None:
    database.run(TABLE, "CREATE TABLE others (id int PRIMARY KEY)")
    to_file(bare_site, database, "orders", "others")
    run(bare_site)
    database.run("INSERT INTO orders VALUES (1)", "INSERT INTO others VALUES (2)")
    assert "all rows of public.orders" in bare_site.waybill("snapshot", "a", "--table", "orders")
    assert "does not read table public.wrong" in bare_site.waybill("snapshot", "a", "--table", "wrong", code=2)
    database.run("UPDATE orders SET note = 'later'")
    run(bare_site)
    bare_site.waybill("snapshot", "a")
    run(bare_site)
    assert [(one["op"], one["source"]["table"]) for one in events(bare_site)] == [
        *(("c", "orders"), ("c", "others"), ("u", "orders")),
        *(("r", "orders"), ("r", "orders"), ("r", "others")),
    ]
    with closing(sqlite3.connect(bare_site.home / "ledger.db")) as ledger:
        asked = ledger.execute("SELECT detail FROM audit WHERE action = 'snapshot' ORDER BY id").fetchall()
    assert [json.loads(one)["tables"] for (one,) in asked] == [["public.orders"], ["public.orders", "public.others"]]


def test_digits_and_units_are_those_of_the_column(bare_site: Site, database: Database) -> None:
    """An event has its schema: what is declared otherwise, or altered meanwhile, is no other value."""
    database.run(TABLE, "ALTER TABLE orders ADD at timestamp(3)", "CREATE TABLE copies (LIKE orders INCLUDING INDEXES)")
    database.run("ALTER TABLE copies ALTER price TYPE numeric(12,4), ALTER at TYPE timestamp")
    bare_site.apply(
        "a",
        {
            "source": database.changes("orders", schemas=True),
            "sink": database.sink("copies", mode="upsert"),
            "parse": {"format": "debezium", "fields": FIELDS | {"price": "decimal(12,4)", "at": "datetime(us)"}},
            "errors": {"tolerance": "all"},
        },
    )
    run(bare_site)
    database.run("INSERT INTO orders VALUES (1, 'a', 1.25, '2026-01-31 00:00:00.5')")
    database.run("ALTER TABLE orders ALTER price TYPE numeric(10,1)", "INSERT INTO orders VALUES (2, 'b', 1.2)")
    database.run("ALTER TABLE orders ALTER price TYPE numeric(12,6)", "INSERT INTO orders VALUES (3, 'c', 1.234567)")
    run(bare_site)
    found = database.run("SELECT id, price::text, at::text FROM copies ORDER BY id")
    assert found == [(1, "1.2500", "2026-01-31 00:00:00.5"), (2, "1.2000", None)]
    assert len(bare_site.json("dead-letters", "list", "a")["dead_letters"]) == 1


def test_rows_of_tables_that_a_pattern_means(bare_site: Site, database: Database) -> None:
    database.run("CREATE SCHEMA sales", "CREATE TABLE sales.one (id int PRIMARY KEY)", TABLE)
    database.run("INSERT INTO sales.one VALUES (1)", "INSERT INTO orders VALUES (2)")
    database.run("CREATE PUBLICATION everything FOR ALL TABLES")
    to_file(bare_site, database, "sales.*", publication="everything", snapshot="initial")
    run(bare_site)
    assert told(bare_site) == [("r", None, {"id": 1})]
    bare_site.waybill("snapshot", "a")
    run(bare_site)
    assert told(bare_site) == [("r", None, {"id": 1})] * 2


def test_rows_of_tables_that_inherit_are_not_those_of_the_table(bare_site: Site, database: Database) -> None:
    database.run(TABLE, "CREATE TABLE special (PRIMARY KEY (id)) INHERITS (orders)")
    database.run("INSERT INTO orders VALUES (1)", "INSERT INTO special VALUES (2)")
    to_file(bare_site, database, snapshot="initial")
    run(bare_site)
    database.run("INSERT INTO special VALUES (3)", "UPDATE orders SET note = 'x'")
    run(bare_site)
    assert [(op, after["id"]) for op, _, after in told(bare_site)] == [("r", 1), ("u", 1)]


def test_rows_and_changes_of_partitions_are_those_of_the_table(bare_site: Site, database: Database) -> None:
    database.run(
        "CREATE TABLE orders (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF orders FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE high PARTITION OF orders FOR VALUES FROM (10) TO (20)",
        "INSERT INTO orders VALUES (1), (11)",
    )
    to_file(bare_site, database, snapshot="initial")
    run(bare_site)
    database.run("INSERT INTO orders VALUES (2)", "UPDATE orders SET id = 12 WHERE id = 2")
    run(bare_site)
    assert [(one["op"], one["source"]["table"]) for one in events(bare_site)[:3]] == [
        *(("r", "orders"), ("r", "orders"), ("c", "orders"))
    ]
    assert {after["id"] for _, _, after in told(bare_site)[3:] if after} == {12}


def test_a_table_that_has_another_name_for_a_while_is_the_same(bare_site: Site, database: Database) -> None:
    database.run(TABLE)
    to_file(bare_site, database)
    run(bare_site)
    with database.connected() as session, session.cursor() as cursor:
        cursor.execute("ALTER TABLE orders RENAME TO old; INSERT INTO old VALUES (1); ALTER TABLE old RENAME TO orders")
        session.commit()
    database.run("INSERT INTO orders VALUES (2)")
    run(bare_site)
    assert [after["id"] for _, _, after in told(bare_site)] == [1, 2]


def test_the_first_run_waits_for_transactions_that_are_open(bare_site: Site, database: Database) -> None:
    database.run(TABLE)
    to_file(bare_site, database, statement_timeout_s=1, lock_timeout_s=0.2)
    with database.connected() as session, session.cursor() as cursor:
        cursor.execute("INSERT INTO orders VALUES (1)")
        holder = f"process {session.info.backend_pid} of the server has had a transaction open"
        assert holder in run(bare_site, code=3)
    to_file(bare_site, database, statement_timeout_s=30, lock_timeout_s=0.2)
    run(bare_site)


def test_one_run_brings_the_rows_that_are_asked_for(bare_site: Site, database: Database) -> None:
    database.run(TABLE, "INSERT INTO orders VALUES (1)")
    to_file(bare_site, database)
    run(bare_site)
    bare_site.waybill("snapshot", "a")
    run(bare_site)
    assert told(bare_site) == [("r", None, {"id": 1, "note": None, "price": None})]


def test_a_ledger_that_was_restored_is_told_of(bare_site: Site, database: Database) -> None:
    bare_site.settings.update(SHORT_LEASES)
    database.run(TABLE)
    to_file(bare_site, database)
    run(bare_site)
    kept = (bare_site.home / "ledger.db").read_bytes()
    database.run("INSERT INTO orders VALUES (1)")
    run(bare_site)
    database.run("INSERT INTO orders VALUES (2)")
    run(bare_site)
    (bare_site.home / "ledger.db").write_bytes(kept)
    assert "before its ledger was restored" in run(bare_site, code=5)
