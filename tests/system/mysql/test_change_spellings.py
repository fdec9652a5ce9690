"""Statements that a server executes and writes into its log as they were typed, comments and all."""

from __future__ import annotations

import json

import pytest

from tests.mariadb import Database, MariaDB
from tests.mysql import ONLY_MARIADB
from tests.site import Site
from tests.table_connectors import run

pytestmark = pytest.mark.server

TRUNCATES = [
    "TRUNCATE /* hi */ TABLE `{0}`.`orders`",
    "/*!50000 truncate table orders */",
    "/*!100000 truncate */ /*M!100000 table*/ orders",
    "set statement lock_wait_timeout=5 for truncate table orders",
    "truncate table orders wait 5",
    "# one\n# two\ntruncate orders",
    "-- one\n-- two\ntruncate table\n{0} . orders;",
    "/* a */ -- b\ntruncate orders",
    "truncate`orders`",
    "truncate table`{0}`.`orders`",
    "--\ntruncate orders",
    "execute immediate 'truncate orders'",
]
UNSEEN = [
    "/*!50000 insert into orders values (1) */",
    "set statement max_statement_time=10 for insert into orders values (2)",
    "analyze insert into orders values (3)",
    "-- why\ninsert into orders values (4)",
    "update others.seen set id = 5 where id = 4",
    "insert into others.seen values (6)",
    "create or replace table made (id int) select 1 as id",
]


@ONLY_MARIADB
def test_each_truncate_comes(bare_site: Site, mariadb: MariaDB) -> None:
    database = Database(mariadb)
    database.run("CREATE TABLE orders (id int)")
    bare_site.apply("a", {"source": database.changes("orders"), "sink": {"file": {"path": "out.jsonl"}}})
    run(bare_site)
    for one in TRUNCATES:
        database.run("INSERT INTO orders VALUES (1)", one.format(database.name))
    run(bare_site)
    came = [json.loads(line)["op"] for line in (bare_site.folder / "out.jsonl").read_text().splitlines()]
    assert came == ["c", "t"] * len(TRUNCATES)


@ONLY_MARIADB
def test_each_statement_that_changes_rows_is_told(bare_site: Site, mariadb: MariaDB) -> None:
    """Also through a view in another database."""
    database, other = Database(mariadb), Database(mariadb)
    database.run("CREATE TABLE orders (id int)")
    other.run(f"CREATE VIEW seen AS SELECT * FROM {database.name}.orders")
    document = {"source": database.changes("*"), "sink": {"file": {"path": "out.jsonl"}}}
    bare_site.apply("a", {**document, "errors": {"tolerance": "all"}})
    run(bare_site)
    database.run("SET binlog_format = STATEMENT", *(one.replace("others", other.name) for one in UNSEEN))
    other.run("SET STATEMENT binlog_format = 'STATEMENT' FOR INSERT INTO seen VALUES (7)")
    other.run("SET binlog_format = STATEMENT", "INSERT INTO seen VALUES (8)")
    run(bare_site)
    letters = bare_site.json("dead-letters", "list", "a")["dead_letters"]
    assert ["has set binlog_format" in one["message"] for one in letters] == [True] * (len(UNSEEN) + 2)
