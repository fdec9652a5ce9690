"""What happens to rows of MariaDB as the source of connectors that people run with the command."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connect_core.systems.mysql.binlog.probing import probe
from tests.faults.kit.processes import wait_for
from tests.mariadb import Database, MariaDB
from tests.site import Site
from tests.table_connectors import run

pytestmark = pytest.mark.server

TABLE = "CREATE TABLE orders (id int PRIMARY KEY, note text, price decimal(10,2))"
FIELDS = {"id": "int32", "note": "text", "price": "decimal(10,2)"}


@pytest.fixture
def database(mariadb: MariaDB) -> Database:
    return Database(mariadb)


@pytest.fixture
def alone(own_mariadb: MariaDB) -> Database:
    """On a server whose log the test may purge and begin anew."""
    return Database(own_mariadb)


def to_file(site: Site, database: Database, **options: Any) -> None:
    site.apply("a", {"source": database.changes("orders", **options), "sink": {"file": {"path": "out.jsonl"}}})


def told(site: Site) -> list[Any]:
    path = site.folder / "out.jsonl"
    events = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [(one["op"], one.get("before"), one.get("after")) for one in events]


def ids(site: Site) -> list[int]:
    return [after["id"] for _, _, after in told(site)]


def test_each_change_comes_once_in_the_order_of_the_log(bare_site: Site, database: Database) -> None:
    database.run(TABLE, "INSERT INTO orders VALUES (1, 'before the connector', 1)")
    to_file(bare_site, database)
    run(bare_site)
    assert told(bare_site) == []
    database.run("INSERT INTO orders VALUES (2, 'Zoë \"ß\"', 12.5), (3, NULL, NULL)")
    database.run("UPDATE orders SET note = 'b' WHERE id = 2", "DELETE FROM orders WHERE id = 1", "TRUNCATE orders")
    assert "5 delivered" in run(bare_site)
    assert "5 delivered" not in run(bare_site)
    two = {"id": 2, "note": 'Zoë "ß"', "price": "BOI="}
    assert told(bare_site) == [
        ("c", None, two),
        ("c", None, {"id": 3, "note": None, "price": None}),
        ("u", two, {**two, "note": "b"}),
        ("d", {"id": 1, "note": "before the connector", "price": "ZA=="}, None),
        ("t", None, None),
    ]


def test_a_table_follows_another_one(bare_site: Site, database: Database) -> None:
    database.run(TABLE, "CREATE TABLE copies LIKE orders")
    bare_site.apply(
        "a",
        {
            "source": database.changes("orders", schemas=True),
            "sink": database.sink("copies", mode="upsert"),
            "parse": {"format": "debezium", "fields": FIELDS},
        },
    )
    run(bare_site)
    database.run("INSERT INTO orders SELECT seq, CONCAT('note ', seq), seq / 4 FROM seq_1_to_500")
    database.run("UPDATE orders SET note = 'later' WHERE id % 3 = 0", "DELETE FROM orders WHERE id % 5 = 0")
    database.run("UPDATE orders SET id = id + 1000 WHERE id % 7 = 0")
    run(bare_site)
    rows = "SELECT id, note, price FROM {} ORDER BY id"
    assert database.run(rows.format("copies")) == database.run(rows.format("orders"))
    assert database.run("SELECT COUNT(*) FROM copies") == [(400,)]


def test_what_is_rolled_back_never_comes(bare_site: Site, database: Database) -> None:
    database.run(TABLE)
    to_file(bare_site, database)
    run(bare_site)
    database.run(
        *("BEGIN", "INSERT INTO orders (id) VALUES (1)", "SAVEPOINT s", "INSERT INTO orders (id) VALUES (2)"),
        *("ROLLBACK TO s", "COMMIT", "BEGIN", "INSERT INTO orders (id) VALUES (3)", "ROLLBACK"),
    )
    run(bare_site)
    assert ids(bare_site) == [1]


def test_a_transaction_larger_than_a_range_comes_in_pieces(bare_site: Site, database: Database) -> None:
    database.run(TABLE)
    sink = {"file": {"path": "out.jsonl"}}
    bare_site.apply("a", {"source": database.changes("orders"), "sink": sink, "limits": {"range_records": 7_000}})
    run(bare_site)
    database.run("INSERT INTO orders (id) SELECT seq FROM seq_1_to_25000", "INSERT INTO orders (id) VALUES (0)")
    run(bare_site)
    assert ids(bare_site) == [*range(1, 25_001), 0]


def test_a_table_that_is_altered_on_the_way(bare_site: Site, database: Database) -> None:
    database.run(TABLE)
    to_file(bare_site, database)
    run(bare_site)
    database.run(
        *("INSERT INTO orders VALUES (1, 'a', 1)", "ALTER TABLE orders ADD more bigint unsigned FIRST, DROP price"),
        *("INSERT INTO orders VALUES (7, 2, 'b')", "RENAME TABLE orders TO others", "DROP TABLE others"),
    )
    run(bare_site)
    assert [after for _, _, after in told(bare_site)] == [
        {"id": 1, "note": "a", "price": "ZA=="},
        {"more": 7, "id": 2, "note": "b"},
    ]


def test_a_log_that_was_purged_is_a_loss_that_somebody_accepts(bare_site: Site, alone: Database) -> None:
    alone.run(TABLE)
    to_file(bare_site, alone)
    run(bare_site)
    alone.run("INSERT INTO orders (id) VALUES (1)")
    run(bare_site)
    alone.run("INSERT INTO orders (id) VALUES (2)", "FLUSH BINARY LOGS")
    [(file, *_)] = alone.run("SHOW MASTER STATUS")
    alone.run("INSERT INTO orders (id) VALUES (3)")
    wait_for(lambda: alone.run(f"PURGE BINARY LOGS TO '{file}'", "SHOW BINARY LOGS")[0][0] == file, "the purge")
    assert "has purged" in run(bare_site, code=5)
    run(bare_site, "--accept-gaps")
    run(bare_site)
    assert ids(bare_site) == [1, 3]


def test_a_log_that_was_begun_anew_is_noticed(bare_site: Site, alone: Database) -> None:
    alone.run(TABLE)
    to_file(bare_site, alone)
    run(bare_site)
    alone.run("INSERT INTO orders (id) VALUES (1)")
    run(bare_site)
    alone.run("RESET MASTER", "INSERT INTO orders (id) VALUES (2)", "INSERT INTO orders (id) VALUES (3)")
    assert "begun again" in run(bare_site, code=5)
    run(bare_site, "--accept-gaps")
    run(bare_site)
    assert ids(bare_site) == [1, 2, 3]


def test_a_server_that_was_killed_goes_on(bare_site: Site, alone: Database) -> None:
    alone.run(TABLE)
    to_file(bare_site, alone)
    run(bare_site)
    alone.run("INSERT INTO orders (id) VALUES (1)")
    run(bare_site)
    alone.run("INSERT INTO orders (id) VALUES (2)")
    alone.server.kill()
    run(bare_site, code=3)
    alone.server.start()
    alone.run("INSERT INTO orders (id) VALUES (3)")
    run(bare_site)
    assert ids(bare_site) == [1, 2, 3]


UNSEEN = [
    (["SET binlog_format = STATEMENT", "INSERT INTO orders (id) VALUES (2)"], "has set binlog_format"),
    (["SET binlog_row_image = MINIMAL", "UPDATE orders SET note = 'x'"], "binlog_row_image"),
    (
        ["XA START 'x'", "INSERT INTO orders (id) VALUES (2)", "XA END 'x'", "XA PREPARE 'x'", "XA ROLLBACK 'x'"],
        "was rolled back",
    ),
]


@pytest.mark.parametrize(("statements", "why"), UNSEEN)
def test_a_change_that_the_log_does_not_have_is_told(
    bare_site: Site, database: Database, statements: list[str], why: str
) -> None:
    database.run(TABLE, "INSERT INTO orders (id) VALUES (1)")
    to_file(bare_site, database)
    run(bare_site)
    database.run(*statements)
    assert why in run(bare_site, code=5)


def test_a_server_that_would_lose_changes_is_refused(bare_site: Site, alone: Database) -> None:
    alone.run(TABLE, "SET GLOBAL binlog_row_metadata = NO_LOG")
    try:
        to_file(bare_site, alone)
        assert "binlog_row_metadata is NO_LOG" in run(bare_site, code=2)
        [options] = alone.changes("orders").values()
        assert "binlog_row_metadata is NO_LOG" in " ".join(one.what for one in probe(options) if not one.ok)
    finally:
        alone.run("SET GLOBAL binlog_row_metadata = FULL")


def test_a_log_that_is_compressed(bare_site: Site, alone: Database) -> None:
    alone.run(TABLE, "SET GLOBAL log_bin_compress = ON, GLOBAL log_bin_compress_min_len = 10")
    try:
        to_file(bare_site, alone)
        run(bare_site)
        alone.run(
            f"INSERT INTO orders VALUES (1, '{'a' * 1000}', 1)", "UPDATE orders SET note = 'b'", "DELETE FROM orders"
        )
        alone.run("TRUNCATE TABLE orders")
        run(bare_site)
    finally:
        alone.run("SET GLOBAL log_bin_compress = OFF")
    assert [op for op, *_ in told(bare_site)] == ["c", "u", "d", "t"]
    assert told(bare_site)[0][2]["note"] == "a" * 1000


def test_transactions_of_several_domains_and_of_xa(bare_site: Site, database: Database) -> None:
    database.run(TABLE)
    to_file(bare_site, database)
    run(bare_site)
    database.run("SET gtid_domain_id = 7", "INSERT INTO orders (id) VALUES (1)")
    database.run("INSERT INTO orders (id) VALUES (2)")
    database.run("XA START 'x'", "INSERT INTO orders (id) VALUES (3)", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'")
    run(bare_site)
    assert ids(bare_site) == [1, 2, 3]
