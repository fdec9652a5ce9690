"""A table that a connector makes, and columns that it adds, with the command."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from connect_core.systems.postgresql.making import tried
from tests.postgres_tables import Database
from tests.site import Site
from tests.table_connectors import run, write

pytestmark = pytest.mark.server

FIELDS: dict[str, Any] = {
    "id": "int64",
    "price": "decimal(10,2)",
    "at": "timestamp(ms)",
    "tags": ["text"],
    "more": {"a": "uint64"},
}
ROW = {"id": 1, "price": 9.9, "at": "2026-01-02T03:04:05.006Z", "tags": ["x", None], "more": {"a": 2**64 - 1}}
MADE = [
    ("at", "timestamp(3) with time zone", False),
    ("id", "bigint", True),
    ("more", "jsonb", False),
    ("price", "numeric(10,2)", False),
    ("tags", "text[]", False),
]
COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute
WHERE attrelid = to_regclass('orders') AND attnum > 0 ORDER BY attnum
"""
AWAY, CONFIG = 3, 2


@pytest.fixture
def database(postgres_url: str) -> Database:
    return Database(postgres_url)


def apply(site: Site, sink: dict[str, Any], fields: Any = None, **parse: Any) -> None:
    read = {"format": "json", "fields": fields or FIELDS, **parse}
    document = {"source": {"file": {"path": "*.log"}}, "sink": sink, "parse": read, "errors": {"tolerance": "all"}}
    site.apply("a", document)


def probed(site: Site, code: int) -> str:
    with site.start("check", "a.yaml", "--probe") as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == code, said
    return str(said)


def test_a_table_is_made_and_a_column_is_added(bare_site: Site, database: Database) -> None:
    site, sink = bare_site, database.sink("orders", create_table=True, mode="upsert", key=["id"])
    apply(site, sink)
    write(site, ROW, {"id": 2}, {**ROW, "price": 10})
    made = '"tags" text[], PRIMARY KEY ("id"))'
    assert made in probed(site, code=0)
    assert database.run(COLUMNS) == []
    run(site)
    assert database.run(COLUMNS) == MADE
    assert database.run("SELECT id, price::text, tags, more::text FROM orders ORDER BY id") == [
        (1, "10.00", ["x", None], '{"a": 18446744073709551615}'),
        (2, None, None, None),
    ]
    with_late = {**FIELDS, "late": "bool"}
    apply(site, sink, with_late)
    write(site, {"id": 3, "late": True})
    assert "The table has no column late" in run(site, code=CONFIG)
    sink["postgresql"]["add_columns"] = True
    apply(site, sink, with_late)
    assert 'ALTER TABLE "public"."orders" ADD COLUMN "late" boolean' in probed(site, code=0)
    run(site)
    assert database.run("SELECT id, late FROM orders ORDER BY id") == [(1, None), (2, None), (3, True)]


def test_a_table_that_is_gone_is_not_made_again(bare_site: Site, database: Database) -> None:
    """It may only have been renamed for a while."""
    apply(bare_site, database.sink("orders", create_table=True))
    write(bare_site, {"id": 1})
    run(bare_site)
    database.run("ALTER TABLE orders RENAME TO aside")
    write(bare_site, {"id": 2})
    assert "this connector has had one of its name before: it is not made" in " ".join(
        run(bare_site, code=AWAY).split()
    )
    assert database.run(COLUMNS) == []
    database.run("ALTER TABLE aside RENAME TO orders")
    run(bare_site)
    assert database.run("SELECT id FROM orders ORDER BY id") == [(1,), (2,)]


def test_two_connectors_may_make_one_table(bare_site: Site, database: Database) -> None:
    site = bare_site
    for name in ("a", "b"):
        sink = database.sink("orders", create_table=True, add_columns=True)
        parse = {"format": "json", "fields": {"id": "int64", name: "text"}}
        site.apply(name, {"source": {"file": {"path": f"{name}.log"}}, "sink": sink, "parse": parse})
        write(site, *({"id": n, name: "x"} for n in range(100)), name=f"{name}.log")
    with ThreadPoolExecutor() as both:
        list(both.map(lambda name: site.waybill("run", name, "--engine", "inline"), ("a", "b")))
    assert database.run("SELECT count(*), count(a), count(b) FROM orders") == [(200, 100, 100)]


def test_fields_that_records_bring_become_columns_within_a_run(bare_site: Site, database: Database) -> None:
    sink = database.sink("orders", create_table=True, add_columns=True)
    apply(bare_site, sink, {"id": "int32"}, unknown="evolve")
    write(bare_site, {"id": 1}, {"id": 2, "late": True}, {"id": 1 << 40}, {"id": 4, "name": "x"})
    run(bare_site)
    assert database.run("SELECT id, late, name FROM orders ORDER BY id") == [
        (1, None, None),
        (2, True, None),
        (4, None, "x"),
    ]
    [letter] = bare_site.json("dead-letters", "list", "a")["dead_letters"]
    assert "Column id is integer, and does not keep int64 exactly" in " ".join(letter["message"].split())


def test_what_a_table_cannot_have_is_rejected_and_blocks_nothing(bare_site: Site, database: Database) -> None:
    """The column of an evolved field: a partition gets none of its own, and no table one that each has."""
    database.run("CREATE TABLE whole (id bigint) PARTITION BY RANGE (id)")
    database.run("CREATE TABLE orders PARTITION OF whole FOR VALUES FROM (0) TO (1000)")
    apply(bare_site, database.sink("orders", add_columns=True), {"id": "int64"}, unknown="evolve")
    write(bare_site, {"id": 1}, {"id": 2, "late": True}, {"id": 3, "ctid": 5}, {"id": 4})
    run(bare_site)
    assert database.run("SELECT id FROM orders ORDER BY id") == [(1,), (4,)]
    letters = bare_site.json("dead-letters", "list", "a")["dead_letters"]
    assert [("late" in one["message"], "ctid" in one["message"]) for one in letters] == [(False, True), (True, False)]
    write(bare_site, {"id": 5})
    run(bare_site)


def test_a_row_beyond_a_limit_of_the_database_is_rejected(bare_site: Site, database: Database) -> None:
    """A key that is too long for its index."""
    sink = database.sink("orders", create_table=True, mode="upsert", key=["id"])
    apply(bare_site, sink, {"id": "text"})
    long = "".join(hashlib.sha256(b"%d" % n).hexdigest() for n in range(300))
    write(bare_site, {"id": "a"}, {"id": long}, {"id": "b"})
    run(bare_site)
    assert database.run("SELECT id FROM orders ORDER BY id") == [("a",), ("b",)]
    [letter] = bare_site.json("dead-letters", "list", "a")["dead_letters"]
    assert letter["kind"] == "ProgramLimitExceeded"


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("CREATE TABLE orders (id bigint)", "Another session made it meanwhile: Try again"),
        ("ALTER TABLE orders ADD COLUMN id text", "Another session made it meanwhile: Try again"),
        ("ALTER TABLE orders ADD COLUMN more nothing", "The database does not take it: UndefinedObject"),
        ("ALTER TABLE orders ADD COLUMN more text", ""),
    ],
)
def test_what_the_database_would_not_do_is_said_and_nothing_is_done(
    database: Database, statement: str, words: str
) -> None:
    database.run("CREATE TABLE orders (id bigint)")
    with closing(database.connected(autocommit=True)) as session:
        said = tried(session, statement, "orders")
    assert (said.startswith(words), bool(said)) == (True, bool(words)), said
    assert database.run(COLUMNS) == [("id", "bigint", False)]


def test_who_may_not_make_or_change_a_table_is_told_so(bare_site: Site, database: Database) -> None:
    user = f"u_{database.options['database']}"
    database.run(f"CREATE ROLE {user} LOGIN PASSWORD 'x'")
    (bare_site.folder / "key").write_text("pw=x\n")
    own = {"user": user, "password": f"${{file:{bare_site.folder}/key#pw}}"}
    apply(bare_site, database.sink("orders", create_table=True, add_columns=True, **own))
    assert "GRANT CREATE ON SCHEMA public" in probed(bare_site, code=AWAY)
    database.run("CREATE TABLE orders (id bigint)", f"GRANT ALL ON orders TO {user}")
    said = probed(bare_site, code=AWAY)
    assert f"{user} does not own the table, and may add no columns" in said
