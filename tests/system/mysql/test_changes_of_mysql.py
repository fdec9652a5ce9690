"""What MySQL writes into its log and MariaDB does not."""

from __future__ import annotations

import json

import pytest

from tests.mariadb import Database, MariaDB
from tests.site import Site
from tests.system.mysql.test_changes import findings, told
from tests.table_connectors import run

pytestmark = pytest.mark.server

TABLE = "CREATE TABLE orders (id int PRIMARY KEY, body json)"
LONG = '{"a": "long enough to be changed in its place", "b": 1}'
PARTIAL = "UPDATE orders SET body = JSON_SET(body, '$.a', 'short')"


@pytest.fixture
def database(mysql: MariaDB) -> Database:
    database = Database(mysql)
    database.run(TABLE)
    return database


def to_file(site: Site, database: Database, **more: object) -> None:
    site.apply("a", {"source": database.changes("orders", **more), "sink": {"file": {"path": "out.jsonl"}}})


def test_json_goes_from_table_to_table(bare_site: Site, database: Database) -> None:
    """Rows that were there, and changes of them."""
    database.run("CREATE TABLE copies (id int PRIMARY KEY, body json)", f"INSERT INTO orders VALUES (1, '{LONG}')")
    bare_site.apply(
        "a",
        {
            "source": database.changes("orders", snapshot="initial"),
            "sink": database.sink("copies", mode="upsert"),
            "parse": {"format": "debezium", "fields": {"id": "int32", "body": "text"}},
        },
    )
    run(bare_site)
    database.run(PARTIAL, "INSERT INTO orders VALUES (2, '[1e20, 2.0, \"é\"]'), (3, NULL)")
    run(bare_site)
    assert database.run("SELECT * FROM copies") == database.run("SELECT * FROM orders")
    assert json.loads(database.run("SELECT body FROM copies WHERE id = 1")[0][0]) == {"a": "short", "b": 1}


def test_a_session_that_logs_parts_of_json_is_told_of(bare_site: Site, database: Database) -> None:
    """The change itself is nowhere in the log."""
    database.run(f"INSERT INTO orders VALUES (1, '{LONG}')")
    to_file(bare_site, database)
    run(bare_site)
    database.run("SET binlog_row_value_options = PARTIAL_JSON", PARTIAL)
    assert "binlog_row_value_options" in run(bare_site, code=5)
    assert not (bare_site.folder / "out.jsonl").exists() or told(bare_site) == []


def test_a_server_that_logs_parts_of_json_is_refused(bare_site: Site, database: Database) -> None:
    database.run("SET GLOBAL binlog_row_value_options = PARTIAL_JSON")
    try:
        to_file(bare_site, database)
        assert "binlog_row_value_options is PARTIAL_JSON" in run(bare_site, code=2)
        assert "SET GLOBAL binlog_row_value_options = ''" in findings(database.changes("orders"))
    finally:
        database.run("SET GLOBAL binlog_row_value_options = ''")
