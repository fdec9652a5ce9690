"""One connector that writes several tables of PostgreSQL: its rules say which."""

from __future__ import annotations

import json
from contextlib import closing
from copy import deepcopy
from typing import Any

import pytest

from connect_core.systems.postgresql.options import PostgresSinkOptions
from connect_core.systems.postgresql.sink import PostgresSink
from tests.postgres_tables import Database
from tests.site import Site
from tests.table_connectors import UNREACHABLE, apply, event, run, write

pytestmark = pytest.mark.server

FIELDS = {"kind": "text", "id": "int64", "price": "decimal(10,2)", "email": "text"}
TABLES = {"orders": {"fields": ["id", "price"]}, "customers": {"fields": ["id", "email"]}}
ORDERS = {"orders": TABLES["orders"]}
RULES = [
    {"name": "orders", "when": "$.kind = 'order'"},
    {"name": "customers", "when": "$.kind = 'customer'", "to": "customers"},
]
STOPPED, FORBIDDEN = 5, 6


@pytest.fixture
def database(postgres_url: str) -> Database:
    database = Database(postgres_url)
    database.run("CREATE TABLE orders (id bigint PRIMARY KEY, price numeric(10,2))")
    database.run("CREATE TABLE customers (id bigint PRIMARY KEY, email text)")
    return database


def apply_rules(site: Site, database: Database, rules: Any = RULES, tables: Any = TABLES, **sink: Any) -> None:
    more = sink.pop("document", {})
    apply(site, database.sink("orders", **({"tables": tables} if tables else {}), **sink), FIELDS, rules=rules, **more)


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


def probed(site: Site) -> str:
    """Where something is missing."""
    with site.start("check", "a.yaml", "--probe") as process:
        out, _ = process.communicate(timeout=60)
    assert process.returncode == UNREACHABLE
    return str(out)


def oid(database: Database, table: str) -> int:
    return int(database.run(f"SELECT '{table}'::regclass::oid")[0][0])


def test_rules_say_which_table_a_record_goes_to(bare_site: Site, database: Database) -> None:
    write(bare_site, order(1), customer(7), {"kind": "other", "id": 3}, order(2), customer(8))
    apply_rules(bare_site, database)
    assert "4 delivered" in run(bare_site)
    run(bare_site)
    assert database.run("SELECT id, price::text FROM orders ORDER BY id") == [(1, "1.50"), (2, "1.50")]
    assert database.run("SELECT id, email FROM customers ORDER BY id") == [(7, "a@b"), (8, "a@b")]
    assert marker(database)["count"] == 4
    assert marker(database)["rows_in"] == f"oid {oid(database, 'orders')}"
    assert marker(database)["beside"] == {"public.customers": f"oid {oid(database, 'customers')}"}


def test_a_record_of_two_rules_is_a_row_of_two_tables(bare_site: Site, database: Database) -> None:
    rules = [{"name": "own"}, {"name": "other", "to": "public.customers"}]
    write(bare_site, *map(order, range(1000)))
    apply_rules(bare_site, database, rules)
    assert "2000 delivered" in run(bare_site).replace(",", "")
    assert ids(database, "orders") == ids(database, "customers") == [*range(1000)]


@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_a_row_that_one_table_refuses_holds_up_no_other(bare_site: Site, database: Database, mode: str) -> None:
    database.run("ALTER TABLE customers ADD CHECK (email <> 'bad')")
    write(bare_site, order(1), customer(1), customer(2, "bad"), order(2), customer(3))
    apply_rules(bare_site, database, mode=mode, document={"errors": {"tolerance": "all"}})
    assert "4 delivered" in run(bare_site)
    assert (ids(database, "orders"), ids(database, "customers")) == ([1, 2], [1, 3])
    assert "Constraint customers_email_check" in bare_site.waybill("dead-letters", "list", "a")
    database.run("ALTER TABLE customers DROP CONSTRAINT customers_email_check")
    bare_site.waybill("dead-letters", "replay", "a", "--yes", "--engine", "inline")
    assert (ids(database, "orders"), ids(database, "customers")) == ([1, 2], [1, 2, 3])


def test_a_record_that_one_of_its_tables_refuses_is_in_none(bare_site: Site, database: Database) -> None:
    """It is one dead letter; a backfill moves all of its outputs again."""
    rules = [{"name": "own"}, {"name": "other", "to": "customers"}]
    database.run("ALTER TABLE customers ADD CHECK (id <> 2)")
    write(bare_site, *map(order, range(5)))
    apply_rules(bare_site, database, rules, document={"errors": {"tolerance": "all"}})
    run(bare_site)
    assert ids(database, "orders") == ids(database, "customers") == [0, 1, 3, 4]
    [letter] = bare_site.json("dead-letters", "list", "a")["dead_letters"]
    database.run("ALTER TABLE customers DROP CONSTRAINT customers_id_check")
    begin = letter["offset"]
    place = f"{letter['partition']}:{begin}-{begin + len(json.dumps(order(2))) + 1}"
    bare_site.waybill("backfill", "a", "--range", place, "--engine", "inline")
    assert ids(database, "orders") == ids(database, "customers") == [*range(5)]


def test_each_table_has_a_key_of_its_own(bare_site: Site, database: Database) -> None:
    database.run("ALTER TABLE customers DROP CONSTRAINT customers_pkey, ADD UNIQUE (email)")
    tables = {**TABLES, "customers": {"fields": ["id", "email"], "key": ["email"]}}
    write(bare_site, order(1), customer(1), {"kind": "customer", "id": 4}, order(1, 2.5), customer(2))
    apply_rules(
        bare_site, database, tables=tables, mode="upsert", key=["id"], document={"errors": {"tolerance": "all"}}
    )
    run(bare_site)
    assert database.run("SELECT id, price::text FROM orders") == [(1, "2.50")]
    assert database.run("SELECT id, email FROM customers") == [(2, "a@b")]
    assert "Field email, which is in the key, is missing" in bare_site.waybill("dead-letters", "list", "a")


@pytest.mark.parametrize("deferred", ["", "DEFERRABLE INITIALLY DEFERRED"])
def test_a_row_is_there_before_the_one_that_needs_it(bare_site: Site, database: Database, deferred: str) -> None:
    database.run(f"ALTER TABLE orders ADD FOREIGN KEY (id) REFERENCES customers {deferred}")
    pairs = [one for number in range(50) for one in (customer(number), order(number))]
    write(bare_site, *(pairs if not deferred else pairs[::-1]))
    apply_rules(bare_site, database)
    assert "100 delivered" in run(bare_site)


def test_beside_a_bad_row_one_that_waits_for_another_is_a_dead_letter(bare_site: Site, database: Database) -> None:
    """Which is brought by a replay."""
    database.run(
        "ALTER TABLE orders ADD FOREIGN KEY (id) REFERENCES customers DEFERRABLE INITIALLY DEFERRED",
        "ALTER TABLE customers ADD CHECK (email <> 'bad')",
    )
    write(bare_site, order(1), customer(9, "bad"), customer(1))
    apply_rules(bare_site, database, document={"errors": {"tolerance": "all"}})
    assert "1 delivered" in run(bare_site)
    assert "a row that it needs is not there" in bare_site.waybill("dead-letters", "list", "a")
    assert (ids(database, "orders"), ids(database, "customers")) == ([], [1])
    bare_site.waybill("dead-letters", "replay", "a", "--yes", "--engine", "inline")
    assert (ids(database, "orders"), ids(database, "customers")) == ([1], [1])


def test_changes_of_two_tables_are_done_to_two_tables(bare_site: Site, database: Database) -> None:
    """Deletes and new keys, too."""
    of_tables = []
    for kind, name, value in (("order", "price", "APo="), ("customer", "email", "a@b")):
        first, second, third = ({"kind": kind, "id": number, name: value} for number in (1, 2, 3))
        made = [event("c", None, one) for one in (first, second, third)]
        of_tables.append([*made, event("d", first, None), event("u", {"kind": kind, "id": 2}, second | {"id": 9})])
    write(bare_site, *(one for both in zip(*of_tables, strict=True) for one in both))
    parse = {"format": "debezium", "fields": FIELDS}
    apply_rules(bare_site, database, mode="upsert", document={"parse": parse})
    run(bare_site)
    assert ids(database, "orders") == ids(database, "customers") == [3, 9]


def test_events_of_two_tables_in_one_topic_are_told_apart_by_their_table(bare_site: Site, database: Database) -> None:
    rules = [
        {"name": "orders", "when": "change:table = 'orders'"},
        {"name": "customers", "when": "change:table = 'customers'", "to": "customers"},
    ]
    bought, late = {"id": 1, "price": "APo="}, {"id": 2, "price": "APo="}
    guest, other = {"id": 1, "email": "a@b"}, {"id": 3, "email": None}
    given = [
        ("orders", event("c", None, bought)),
        ("customers", event("r", None, guest)),
        ("orders", event("c", None, late)),
        ("customers", event("c", None, other)),
        ("visits", event("c", None, other)),
        ("orders", event("d", bought, None)),
        ("customers", event("u", guest, guest | {"email": "c@d"})),
    ]
    write(bare_site, *(one | {"source": {"table": table}} for table, one in given))
    parse = {"format": "debezium", "fields": {"id": "int64", "price": "decimal(10,2)", "email": "text"}}
    apply_rules(bare_site, database, rules, mode="upsert", document={"parse": parse})
    assert "6 delivered" in run(bare_site)
    assert ids(database, "orders") == [2]
    assert database.run("SELECT * FROM customers ORDER BY id") == [(1, "c@d"), (3, None)]


@pytest.mark.parametrize(
    ("alter", "code", "words"),
    [
        ("DROP TABLE customers", UNREACHABLE, "There is no such table"),
        ("ALTER TABLE customers DROP email", 2, "The table has no column email"),
        ("ALTER TABLE customers ALTER id TYPE int", 2, "Column id is integer, and does not keep int64 exactly"),
        ("ALTER TABLE customers ADD born date NOT NULL", 2, "Column born takes no NULL"),
        ("ALTER TABLE customers SET UNLOGGED", 2, "The table is UNLOGGED"),
        ("ALTER TABLE customers DROP CONSTRAINT customers_pkey", 2, "The table has no primary key"),
    ],
)
def test_a_table_that_takes_nothing_is_refused_before_another_one_has_rows(
    bare_site: Site, database: Database, alter: str, code: int, words: str
) -> None:
    database.run(alter)
    write(bare_site, order(1), customer(1))
    apply_rules(bare_site, database, mode="upsert")
    said = run(bare_site, code=code)
    assert (words in said, "/public.customers" in said, ids(database, "orders")) == (True, True, [])
    told = [line for line in probed(bare_site).split("\n") if "MISSING" in line]
    assert ["customers" in line for line in told] == [True]


def test_rights_that_are_missing_are_told_before_anything_is_planned(bare_site: Site, database: Database) -> None:
    user = f"writer_{database.options['database']}"
    database.run(
        f"CREATE ROLE {user} LOGIN",
        f"GRANT INSERT ON orders TO {user}",
        f"GRANT SELECT, INSERT (id) ON customers TO {user}",
        f"GRANT CREATE ON SCHEMA public TO {user}",
    )
    write(bare_site, order(1), customer(1))
    apply_rules(bare_site, database, user=user, mode="upsert")
    said = run(bare_site, code=FORBIDDEN)
    assert f"{user} lacks SELECT, UPDATE, DELETE" in said
    database.run(f"GRANT ALL ON orders TO {user}")
    said = run(bare_site, code=FORBIDDEN)
    assert f"{user} lacks UPDATE, DELETE" in said
    assert "/public.customers" in said
    assert "lacks INSERT, UPDATE, DELETE on customers: GRANT INSERT, UPDATE, DELETE" in probed(bare_site)
    assert ids(database, "orders") == []


def test_tables_are_made_and_one_that_is_gone_is_not_made_again(bare_site: Site, database: Database) -> None:
    """A table that a rule names later is made, though the connector has written into others."""
    database.run("DROP TABLE orders, customers")
    write(bare_site, order(1), customer(1))
    apply_rules(bare_site, database, RULES[:1], ORDERS, create_table=True)
    run(bare_site)
    apply_rules(bare_site, database, create_table=True)
    assert "table customers will be made" in bare_site.waybill("check", "a.yaml", "--probe")
    write(bare_site, order(2), customer(2))
    run(bare_site)
    assert (ids(database, "orders"), ids(database, "customers")) == ([1, 2], [2])
    database.run("ALTER TABLE customers RENAME TO former")
    write(bare_site, customer(3))
    assert "this connector has had one of its name before" in run(bare_site, code=UNREACHABLE)
    database.run("ALTER TABLE former RENAME TO customers")
    run(bare_site)
    assert ids(database, "customers") == [2, 3]


def test_a_table_that_was_replaced_stops_the_partition_whichever_it_is(bare_site: Site, database: Database) -> None:
    write(bare_site, order(1), customer(1))
    apply_rules(bare_site, database)
    run(bare_site)
    former = oid(database, "customers")
    database.run("CREATE TABLE next AS SELECT * FROM customers", "ALTER TABLE customers RENAME TO former")
    database.run("ALTER TABLE next RENAME TO customers")
    now = oid(database, "customers")
    write(bare_site, order(2), customer(2))
    said = " ".join(run(bare_site, code=STOPPED).split())
    assert f"rows went to oid {former}, and it is oid {now} now" in said
    assert "public.customers, partition" in said
    assert f"write accepts_table: {now} in the document's sink" in said
    assert ids(database, "orders") == [1]
    apply_rules(bare_site, database, accepts_table=[oid(database, "orders"), now])
    run(bare_site)
    assert (ids(database, "orders"), ids(database, "customers"), ids(database, "former")) == ([1, 2], [1, 2], [1])
    assert marker(database)["beside"] == {"public.customers": f"oid {now}"}


def test_a_connector_of_one_table_gets_more(bare_site: Site, database: Database) -> None:
    """What it was is in the same place in its marker; a rule that goes takes its table along."""
    write(bare_site, order(1), customer(1))
    apply_rules(bare_site, database, RULES[:1], ORDERS)
    run(bare_site)
    before = marker(database)
    assert "beside" not in before
    write(bare_site, order(2), customer(2))
    apply_rules(bare_site, database)
    run(bare_site)
    now = marker(database)
    assert {**now, "beside": {}}.keys() == {*before, "beside"}
    assert (now["count"], now["rows_in"]) == (3, before["rows_in"])
    write(bare_site, order(3), customer(3))
    apply_rules(bare_site, database, RULES[:1], ORDERS)
    run(bare_site)
    assert (ids(database, "orders"), ids(database, "customers")) == ([1, 2, 3], [2])
    assert "beside" not in marker(database)


def test_the_same_rows_go_into_a_table_with_all_fields(bare_site: Site, database: Database) -> None:
    """Without `tables` each has a column for each field."""
    database.run("DROP TABLE customers", "DROP TABLE orders")
    write(bare_site, order(1), customer(1))
    apply_rules(bare_site, database, tables=None, create_table=True)
    run(bare_site)
    assert database.run("SELECT kind, id, price::text, email FROM orders") == [("order", 1, "1.50", None)]
    assert database.run("SELECT kind, id, price::text, email FROM customers") == [("customer", 1, None, "a@b")]


def test_a_table_that_is_replaced_under_an_open_writer_gets_nothing(database: Database) -> None:
    """Nor does any other one."""
    fields = {"id": "int64"}
    made: Any = PostgresSink(
        PostgresSinkOptions(**database.sink("orders")["postgresql"], row_fields=fields, rule_topics=["customers"])
    )
    made.prepare()
    with made.connect() as connection:
        connection.begin("a")
        assert connection.identity().beside["public.customers"].rows == f"oid {oid(database, 'customers')}"
        connection.rollback()
        database.run("ALTER TABLE customers RENAME TO former", "CREATE TABLE customers (id bigint)")
        connection.begin("a")
        assert connection.identity().beside["public.customers"].rows == f"oid {oid(database, 'customers')}"
        connection.rollback()


def test_a_field_that_a_run_adds_is_one_of_tables_that_take_all(bare_site: Site, database: Database) -> None:
    parse = {"format": "json", "fields": FIELDS, "unknown": "evolve"}
    database.run("DROP TABLE orders")
    tables = {"customers": TABLES["customers"]}
    write(bare_site, order(1) | {"late": True}, customer(1), customer(2) | {"late": False}, order(2))
    apply_rules(bare_site, database, tables=tables, create_table=True, add_columns=True, document={"parse": parse})
    run(bare_site)
    assert database.run("SELECT id, late FROM orders ORDER BY id") == [(1, True), (2, None)]
    assert database.run("SELECT * FROM customers ORDER BY id") == [(1, "a@b"), (2, "a@b")]


def test_a_backfill_brings_what_was_there_before_its_rule(bare_site: Site, database: Database) -> None:
    write(bare_site, order(1), customer(1))
    apply_rules(bare_site, database, RULES[:1], ORDERS, mode="upsert")
    run(bare_site)
    apply_rules(bare_site, database, mode="upsert")
    write(bare_site, customer(2), order(2))
    run(bare_site)
    assert (ids(database, "orders"), ids(database, "customers")) == ([1, 2], [2])
    partition = bare_site.json("receipts", "a")["receipts"][0]["partition"]
    size = (bare_site.folder / "a.log").stat().st_size
    bare_site.waybill("backfill", "a", "--range", f"{partition}:0-{size}", "--engine", "inline")
    assert (ids(database, "orders"), ids(database, "customers")) == ([1, 2], [1, 2])


def test_who_holds_up_or_refuses_a_row_is_told_by_its_table(bare_site: Site, database: Database) -> None:
    database.run(
        "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "CREATE TRIGGER nothing BEFORE INSERT ON customers FOR EACH ROW EXECUTE FUNCTION nothing()",
    )
    write(bare_site, order(1), customer(1))
    apply_rules(bare_site, database, lock_timeout_s=1, document={"errors": {"tolerance": "all"}})
    with closing(database.connected()) as session, session.cursor() as locking:
        locking.execute("LOCK TABLE customers IN ACCESS EXCLUSIVE MODE")
        said = run(bare_site, code=UNREACHABLE)
        session.rollback()
    assert ("held a lock" in said, "customers]" in said) == (True, True)
    run(bare_site)
    assert "leaves the row out (table public.customers)" in bare_site.waybill("dead-letters", "list", "a")


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


def test_a_table_and_its_partition_are_refused(bare_site: Site, database: Database) -> None:
    """Of two records of a key the last would not count: tables are written one after the other."""
    database.run(
        "DROP TABLE customers",
        "CREATE TABLE customers (id bigint PRIMARY KEY, email text) PARTITION BY RANGE (id)",
        "CREATE TABLE guests PARTITION OF customers FOR VALUES FROM (0) TO (100)",
        "CREATE TABLE members PARTITION OF customers FOR VALUES FROM (100) TO (200)",
    )
    write(bare_site, customer(1))
    tables = {**TABLES, "guests": deepcopy(TABLES["customers"])}
    guests = {"name": "guests", "when": "$.kind = 'guest'", "to": "guests"}
    apply_rules(bare_site, database, [*RULES, guests], tables, mode="upsert")
    assert "Table public.guests is a partition of table public.customers" in run(bare_site, code=2)
    assert "guests is a partition of table customers: name one of both" in probed(bare_site)
    members = {"name": "members", "when": "$.kind = 'member'", "to": "members"}
    tables = {**ORDERS, "guests": TABLES["customers"], "members": deepcopy(TABLES["customers"])}
    apply_rules(bare_site, database, [RULES[0], guests, members], tables, mode="upsert")
    run(bare_site)


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
