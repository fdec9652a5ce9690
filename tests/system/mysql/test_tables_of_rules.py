"""One connector that writes several tables of MySQL: its rules say which."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import pytest

from tests.mariadb import Database, MariaDB
from tests.site import Site
from tests.table_connectors import UNREACHABLE, apply, event, run, write

pytestmark = pytest.mark.server

FIELDS = {"kind": "text", "id": "int64", "price": "decimal(10,2)", "email": "text"}
ORDERS = {"orders": {"fields": ["id", "price"]}}
TABLES = {**ORDERS, "customers": {"fields": ["id", "email"]}}
RULES = [
    {"name": "orders", "when": "$.kind = 'order'"},
    {"name": "customers", "when": "$.kind = 'customer'", "to": "customers"},
]
FORBIDDEN = 6


@pytest.fixture
def database(mariadb: MariaDB) -> Database:
    database = Database(mariadb)
    database.run("CREATE TABLE orders (id bigint PRIMARY KEY, price decimal(10,2))")
    database.run("CREATE TABLE customers (id bigint PRIMARY KEY, email varchar(99))")
    return database


def apply_rules(site: Site, database: Database, rules: Any = RULES, tables: Any = TABLES, **sink: Any) -> None:
    more = sink.pop("document", {})
    apply(site, database.sink("orders", tables=tables, **sink), FIELDS, rules=rules, **more)


def order(number: int, price: float = 1.5) -> dict[str, Any]:
    return {"kind": "order", "id": number, "price": price}


def customer(number: int, email: str = "a@b") -> dict[str, Any]:
    return {"kind": "customer", "id": number, "email": email}


def ids(database: Database, table: str) -> list[int]:
    return [number for (number,) in database.run(f"SELECT id FROM {table} ORDER BY id")]


def marker(database: Database) -> dict[str, Any]:
    [(text,)] = database.run("SELECT marker FROM waybill_markers")
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_connector_of_one_table_gets_more(bare_site: Site, database: Database) -> None:
    """Its marker goes on; a rule that goes takes its table along."""
    write(bare_site, order(1), customer(1))
    apply_rules(bare_site, database, RULES[:1], ORDERS)
    run(bare_site)
    before = marker(database)
    assert "beside" not in before
    write(bare_site, order(2), customer(7), {"kind": "other", "id": 3}, customer(8))
    apply_rules(bare_site, database)
    assert "3 delivered" in run(bare_site)
    run(bare_site)
    assert [str(price) for _, price in database.run("SELECT * FROM orders ORDER BY id")] == ["1.50", "1.50"]
    assert database.run("SELECT * FROM customers ORDER BY id") == [(7, "a@b"), (8, "a@b")]
    assert marker(database)["count"] == 4
    assert marker(database).keys() == {*before, "beside"}
    write(bare_site, order(3), customer(3))
    apply_rules(bare_site, database, RULES[:1], ORDERS)
    run(bare_site)
    assert (ids(database, "orders"), ids(database, "customers")) == ([1, 2, 3], [7, 8])
    assert marker(database).keys() == before.keys()


@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_a_row_that_one_table_refuses_holds_up_no_other(bare_site: Site, database: Database, mode: str) -> None:
    database.run("ALTER TABLE customers ADD CHECK (email <> 'bad')")
    write(bare_site, order(1), customer(1), customer(2, "bad"), order(2), customer(3))
    apply_rules(bare_site, database, mode=mode, document={"errors": {"tolerance": "all"}})
    assert "4 delivered" in run(bare_site)
    assert (ids(database, "orders"), ids(database, "customers")) == ([1, 2], [1, 3])


def test_a_row_is_there_before_the_one_that_needs_it(bare_site: Site, database: Database) -> None:
    database.run("ALTER TABLE orders ADD FOREIGN KEY (id) REFERENCES customers (id)")
    write(bare_site, *(one for number in range(50) for one in (customer(number), order(number))))
    apply_rules(bare_site, database)
    assert "100 delivered" in run(bare_site)


def test_changes_of_two_tables_are_done_to_two_tables(bare_site: Site, database: Database) -> None:
    """Deletes and new keys, too; each table has a key of its own."""
    database.run("ALTER TABLE customers DROP PRIMARY KEY, ADD UNIQUE (email)")
    tables = {**TABLES, "customers": {"fields": ["id", "email"], "key": ["email"]}}
    of_orders = [
        event("c", None, order(1) | {"price": "APo="}),
        event("c", None, order(2) | {"price": "APo="}),
        event("d", order(1) | {"price": "APo="}, None),
        event("u", {"kind": "order", "id": 2}, order(9) | {"price": "APo="}),
    ]
    of_customers = [
        event("c", None, customer(1, "a")),
        event("c", None, customer(1, "b")),
        event("d", customer(1, "a"), None),
        event("u", customer(1, "b"), customer(1, "c")),
    ]
    write(bare_site, *(one for both in zip(of_orders, of_customers, strict=True) for one in both))
    parse = {"format": "debezium", "fields": FIELDS}
    apply_rules(bare_site, database, tables=tables, mode="upsert", key=["id"], document={"parse": parse})
    run(bare_site)
    assert ids(database, "orders") == [9]
    assert database.run("SELECT * FROM customers") == [(1, "c")]


@pytest.mark.parametrize(
    ("alter", "code", "words"),
    [
        ("DROP TABLE customers", UNREACHABLE, "There is no such table"),
        ("ALTER TABLE customers DROP email", 2, "The table has no column email"),
        ("ALTER TABLE customers ENGINE = MyISAM", 2, "The engine of the table is MyISAM"),
        ("ALTER TABLE customers DROP PRIMARY KEY", 2, "The table has no primary key"),
    ],
)
def test_a_table_that_takes_nothing_is_refused_before_another_one_has_rows(
    bare_site: Site, database: Database, alter: str, code: int, words: str
) -> None:
    database.run(alter)
    write(bare_site, order(1), customer(1))
    apply_rules(bare_site, database, mode="upsert")
    said = run(bare_site, code=code)
    assert (words in said, f"{database.name}.customers" in said, ids(database, "orders")) == (True, True, [])
    with bare_site.start("check", "a.yaml", "--probe") as process:
        out, _ = process.communicate(timeout=60)
    assert ["customers" in line for line in out.split("\n") if "MISSING" in line] == [True]


def test_rights_that_are_missing_are_told_before_anything_is_planned(bare_site: Site, database: Database) -> None:
    user = f"u{database.name[-12:]}"
    database.run(
        f"CREATE USER {user}@'%'",
        f"CREATE USER {user}@localhost",
        *(f"GRANT SELECT, CREATE ON {database.name}.* TO {one}" for one in (f"{user}@'%'", f"{user}@localhost")),
        *(f"GRANT INSERT ON {database.name}.orders TO {one}" for one in (f"{user}@'%'", f"{user}@localhost")),
    )
    write(bare_site, order(1), customer(1))
    apply_rules(bare_site, database, user=user, password="")
    said = run(bare_site, code=FORBIDDEN)
    assert f"{user} lacks INSERT" in said
    assert f"{database.name}.customers" in said
    assert ids(database, "orders") == []


def test_tables_are_made_and_one_that_is_gone_is_not_made_again(bare_site: Site, database: Database) -> None:
    """A table that a rule names later is made, though the connector has written into others."""
    database.run("DROP TABLE orders", "DROP TABLE customers")
    write(bare_site, order(1), customer(1))
    apply_rules(bare_site, database, RULES[:1], ORDERS, create_table=True)
    run(bare_site)
    write(bare_site, order(2), customer(2))
    apply_rules(bare_site, database, create_table=True)
    run(bare_site)
    assert (ids(database, "orders"), ids(database, "customers")) == ([1, 2], [2])
    database.run("RENAME TABLE customers TO former")
    write(bare_site, customer(3))
    assert "this connector has had one of its name before" in run(bare_site, code=UNREACHABLE)
    database.run("RENAME TABLE former TO customers")
    run(bare_site)
    assert ids(database, "customers") == [2, 3]


def test_who_holds_up_or_refuses_a_row_is_told_by_its_table(bare_site: Site, database: Database) -> None:
    database.run(
        "ALTER TABLE customers ADD CONSTRAINT tall CHECK (id > 5)",
    )
    write(bare_site, order(1), customer(1))
    apply_rules(bare_site, database, lock_timeout_s=1, document={"errors": {"tolerance": "all"}})
    with closing(database.connected()) as session, session.cursor() as locking:
        locking.execute("LOCK TABLES customers WRITE")
        said = run(bare_site, code=UNREACHABLE)
        locking.execute("UNLOCK TABLES")
    assert ("held a lock" in said, "customers]" in said) == (True, True)
    run(bare_site)
    assert f"(table {database.name}.customers)" in bare_site.waybill("dead-letters", "list", "a")


def test_rows_that_the_server_changes_by_itself_are_told(bare_site: Site, database: Database) -> None:
    database.run(
        "ALTER TABLE orders ADD customer bigint",
        "ALTER TABLE orders ADD CONSTRAINT of_customer"
        " FOREIGN KEY (customer) REFERENCES customers (id) ON DELETE CASCADE",
    )
    write(bare_site, order(1))
    apply_rules(bare_site, database, mode="upsert")
    told = bare_site.waybill("check", "a.yaml", "--probe")
    assert "rows of table orders go or change with rows of table customers, and no receipt tells of that" in told


def test_a_table_that_never_had_a_row_is_made_again(bare_site: Site, database: Database) -> None:
    database.run("DROP TABLE orders, customers")
    write(bare_site, order(1))
    apply_rules(bare_site, database, create_table=True)
    run(bare_site)
    database.run("DROP TABLE customers")
    write(bare_site, order(2))
    run(bare_site)
    database.run("DROP TABLE customers")
    write(bare_site, customer(3))
    run(bare_site)
    assert (ids(database, "orders"), ids(database, "customers")) == ([1, 2], [3])
