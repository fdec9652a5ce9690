"""What happens to rows of MariaDB as the source of connectors that people run with the command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from connect_core.systems.mysql.binlog.probing import probe
from tests.faults.kit.processes import wait_for
from tests.mariadb import Database, MariaDB, running
from tests.mysql import ONLY_MARIADB, MySQL
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
    database.run("CREATE TABLE other (id int)", "INSERT INTO other VALUES (1)")
    run(bare_site)  # a range without a record
    database.run("INSERT INTO orders (id) VALUES (9999)")
    run(bare_site)
    assert database.run(rows.format("copies")) == database.run(rows.format("orders"))


def test_two_tables_follow_two_others(bare_site: Site, mariadb: MariaDB, database: Database) -> None:
    """One connector, into another database: with deletes, keys that change, and rows that were there."""
    tables = (TABLE, "CREATE TABLE customers (id int PRIMARY KEY, note text, born date)")
    copy = Database(mariadb)
    copy.run(*tables)
    database.run(*tables, "INSERT INTO customers SELECT seq, 'first', '2000-02-29' FROM seq_1_to_700")
    of_tables = {"orders": {"fields": ["id", "note", "price"]}, "customers": {"fields": ["id", "note", "born"]}}
    bare_site.apply(
        "a",
        {
            "source": database.changes("orders", "customers", snapshot="initial"),
            "sink": copy.sink("orders", mode="upsert", tables=of_tables),
            "parse": {"format": "debezium", "fields": {**FIELDS, "born": "date"}},
            "rules": [
                {"name": "orders", "filter": f"{database.name}.orders"},
                {"name": "customers", "when": "change:table = 'customers'", "to": "customers"},
            ],
        },
    )
    run(bare_site)
    database.run("INSERT INTO orders SELECT seq, CONCAT('note ', seq), seq / 4 FROM seq_1_to_500")
    database.run("UPDATE orders SET note = 'later' WHERE id % 3 = 0", "UPDATE customers SET born = NULL WHERE id < 9")
    database.run("DELETE FROM orders WHERE id % 5 = 0", "DELETE FROM customers WHERE id % 5 = 0")
    database.run("UPDATE customers SET id = id + 1000 WHERE id > 600")
    run(bare_site)
    for table, count in (("orders", 400), ("customers", 560)):
        rows = database.run(f"SELECT * FROM {table} ORDER BY id")
        assert copy.run(f"SELECT * FROM {table} ORDER BY id") == rows
        assert len(rows) == count


@pytest.mark.parametrize("schemas", [False, True])
def test_statements_about_tables_come_at_their_place_among_the_changes(
    bare_site: Site, database: Database, schemas: bool
) -> None:
    """Of tables that are read, with the database as topic; others, and tables of a session, tell nothing."""
    database.run(TABLE)
    bare_site.apply(
        "a",
        {
            "source": database.changes("orders", "former", schema_changes=True, schemas=schemas),
            "sink": {"file": {"path": "out.jsonl"}},
        },
    )
    run(bare_site)
    database.run(
        "INSERT INTO orders (id) VALUES (1)",
        "ALTER TABLE orders ADD COLUMN born date DEFAULT '2026-01-31'",
        "INSERT INTO orders (id) VALUES (2)",
        *("CREATE TABLE others (id int)", "CREATE TEMPORARY TABLE former (id int)", "DROP TEMPORARY TABLE former"),
        *("RENAME TABLE orders TO former", "DROP TABLE former, others"),
    )
    run(bare_site)
    lines = [json.loads(line) for line in (bare_site.folder / "out.jsonl").read_text().splitlines()]
    told = [one["payload"] if schemas else one for one in lines]
    named = [one.get("op") or [f"{change['type']} {change['id']}" for change in one["tableChanges"]] for one in told]
    orders, former = (f'"{database.name}"."{table}"' for table in ("orders", "former"))
    assert named == ["c", [f"ALTER {orders}"], "c", [f"ALTER {orders}", f"ALTER {former}"], [f"DROP {former}"]]
    assert told[1]["ddl"] == "ALTER TABLE orders ADD COLUMN born date DEFAULT '2026-01-31'"
    assert (told[1]["databaseName"], told[1]["source"]["table"]) == (database.name, "orders")
    assert told[2]["after"]["born"] is not None
    assert "nothing to move" in run(bare_site)


def test_statements_about_tables_do_not_come_unasked(bare_site: Site, database: Database) -> None:
    database.run(TABLE)
    to_file(bare_site, database)
    run(bare_site)
    database.run("ALTER TABLE orders ADD COLUMN born date", "INSERT INTO orders (id) VALUES (1)")
    run(bare_site)
    assert ids(bare_site) == [1]


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


TEMPORARY = ("CREATE TEMPORARY TABLE t (a int)", "DROP TEMPORARY TABLE t")
"""What cannot be undone: the server leaves what it rolls back in its log."""
MANY = "INSERT INTO orders (id) SELECT seq FROM seq_100_to_25000"
LOGGED = [
    ["BEGIN", "INSERT INTO orders (id) VALUES (2)", *TEMPORARY, "DELETE FROM orders", "ROLLBACK"],
    ["BEGIN", "SAVEPOINT a", "DELETE FROM orders", *TEMPORARY, "ROLLBACK TO a", "COMMIT"],
    pytest.param(
        [
            *("BEGIN", "INSERT INTO orders (id) VALUES (2)", "SAVEPOINT a", "DELETE FROM orders"),
            *("INSERT INTO counts VALUES (7)", "ROLLBACK TO a", "INSERT INTO orders (id) VALUES (3)", "COMMIT"),
        ],
        marks=ONLY_MARIADB,  # MySQL with GTIDs refuses what is half in a transaction
    ),
    pytest.param(
        [
            *("UPDATE orders, counts SET note = 'x', counts.id = 8 WHERE orders.id = 1", "BEGIN"),
            *("UPDATE orders, counts SET note = 'y', counts.id = 9 WHERE orders.id = 1", *TEMPORARY, "ROLLBACK"),
        ],
        marks=ONLY_MARIADB,
    ),
    ["BEGIN", MANY, *TEMPORARY, MANY.replace("seq FROM", "-seq FROM"), "ROLLBACK"],
    ["BEGIN", "SAVEPOINT a", "INSERT INTO orders (id) VALUES (2)", "SAVEPOINT b", MANY, *TEMPORARY, "ROLLBACK TO b"],
]


@pytest.mark.parametrize("statements", LOGGED)
def test_what_is_rolled_back_and_stays_in_the_log_never_comes(
    bare_site: Site, database: Database, statements: list[str]
) -> None:
    database.run(TABLE, "CREATE TABLE counts (id int) ENGINE = MyISAM", "INSERT INTO counts VALUES (0)")
    source = database.changes("orders", "counts")
    bare_site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}})
    run(bare_site)
    database.run("INSERT INTO orders (id) VALUES (1)", *statements, "COMMIT")
    run(bare_site)
    copies: dict[str, set[int]] = {"orders": set(), "counts": {0}}
    for line in (bare_site.folder / "out.jsonl").read_text().splitlines():
        event = json.loads(line)
        copy = copies[event["source"]["table"]]
        if event["before"]:
            copy.remove(event["before"]["id"])
        if event["after"]:
            assert event["after"]["id"] not in copy
            copy.add(event["after"]["id"])
    assert copies == {table: {row[0] for row in database.run(f"SELECT id FROM {table}")} for table in copies}


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


def test_a_log_that_is_damaged_says_where_and_what_to_do(bare_site: Site, alone: Database) -> None:
    alone.run(TABLE)
    to_file(bare_site, alone)
    run(bare_site)
    [(file, place, *_)] = alone.run("SHOW MASTER STATUS")
    alone.run("INSERT INTO orders VALUES (1, 'a bit of this is flipped', 1)", "FLUSH BINARY LOGS")
    path = alone.server.folder / "data" / file
    sound = path.read_bytes()
    path.write_bytes(sound.replace(b"a bit of this", b"a cit of this"))
    says = run(bare_site, code=1)
    [reached, *_] = re.findall(rf"{file}:(\d+)]", says)
    assert place < int(reached) < len(sound)
    assert "the file is damaged: look at it with mariadb-binlog" in says
    path.write_bytes(sound)
    run(bare_site)
    assert ids(bare_site) == [1]


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
    alone.run(TABLE, "SET GLOBAL binlog_row_metadata = MINIMAL")
    try:
        to_file(bare_site, alone)
        assert "binlog_row_metadata is MINIMAL" in run(bare_site, code=2)
        assert "binlog_row_metadata is MINIMAL" in findings(alone.changes("orders"))
    finally:
        alone.run("SET GLOBAL binlog_row_metadata = FULL")


CHILD = "CREATE TABLE orders (id int PRIMARY KEY, p int, FOREIGN KEY (p) REFERENCES parents (id) ON DELETE CASCADE)"
VERSIONED = f"{TABLE} WITH SYSTEM VERSIONING"
UNFIT = [
    pytest.param(["CREATE TABLE parents (id int PRIMARY KEY)", CHILD], "foreign keys do to rows", marks=ONLY_MARIADB),
    pytest.param([VERSIONED], "no ordinary table: SYSTEM VERSIONED", marks=ONLY_MARIADB),
    pytest.param(["CREATE SEQUENCE orders"], "no ordinary table: SEQUENCE", marks=ONLY_MARIADB),
    ([TABLE, "CREATE VIEW others AS SELECT * FROM orders", "RENAME TABLE orders TO a, others TO orders"], ": VIEW"),
]


@pytest.mark.parametrize(("made", "why"), UNFIT)
def test_a_table_whose_changes_the_log_does_not_have_is_refused(
    bare_site: Site, database: Database, made: list[str], why: str
) -> None:
    database.run(*made)
    to_file(bare_site, database)
    assert why in run(bare_site, code=2)
    assert why in findings(database.changes("orders"))


def findings(source: dict[str, Any]) -> str:
    """What a probe says that is wrong."""
    [options] = source.values()
    return " ".join(one.what for one in probe(options) if not one.ok)


def test_what_mysql_does_by_foreign_keys_comes(bare_site: Site, mysql: MariaDB) -> None:
    database = Database(mysql)
    database.run("CREATE TABLE parents (id int PRIMARY KEY)", CHILD, "INSERT INTO parents VALUES (1)")
    to_file(bare_site, database)
    run(bare_site)
    database.run("INSERT INTO orders VALUES (1, 1)", "DELETE FROM parents")
    run(bare_site)
    assert [op for op, *_ in told(bare_site)] == ["c", "d"]
    assert findings(database.changes("orders")) == ""


@pytest.mark.usefixtures("mysql")
def test_what_innodb_does_by_foreign_keys_is_missing_in_mysql_too(bare_site: Site, worker_folder: Path) -> None:
    for server in running(MySQL(worker_folder / "mysql-native", settings={"innodb-native-foreign-keys": "ON"})):
        database = Database(server)
        database.run("CREATE TABLE parents (id int PRIMARY KEY)", CHILD)
        to_file(bare_site, database)
        assert "foreign keys do to rows" in run(bare_site, code=2)


def test_who_needs_no_change_by_a_foreign_key_says_so(bare_site: Site, database: Database) -> None:
    database.run("CREATE TABLE parents (id int PRIMARY KEY)", CHILD, "INSERT INTO parents VALUES (1)")
    to_file(bare_site, database, foreign_key_actions="leave_out")
    run(bare_site)
    database.run("INSERT INTO orders VALUES (1, 1)", "DELETE FROM parents")
    run(bare_site)
    logged = ["d"] if isinstance(database.server, MySQL) else []  # by MySQL since 9.6
    assert [op for op, *_ in told(bare_site)] == ["c", *logged]
    assert findings(database.changes("orders", foreign_key_actions="leave_out")) == ""


@ONLY_MARIADB
def test_by_a_pattern_a_table_with_a_history_is_left_out(bare_site: Site, database: Database) -> None:
    database.run(TABLE, VERSIONED.replace("orders", "kept", 1), "CREATE SEQUENCE numbers")
    source = database.changes("*")
    bare_site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}})
    run(bare_site)
    database.run("INSERT INTO kept (id) VALUES (1)", "UPDATE kept SET id = 2", "SELECT NEXTVAL(numbers)")
    database.run("INSERT INTO orders (id) VALUES (3)", "ALTER TABLE orders ADD SYSTEM VERSIONING")
    database.run("UPDATE orders SET id = 4")
    assert "system-versioned" in run(bare_site, code=5)
    assert told(bare_site) == []
    [left_out] = [one.what for one in probe(source["mysql_changes"]) if "left out" in one.what]
    assert all(f"{database.name}.{name}" in left_out for name in ("kept", "numbers", "orders"))


RIGHTS = "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO reader@'127.0.0.1'"


def test_the_rights_that_a_reader_needs(bare_site: Site, database: Database) -> None:
    """It may not read a row."""
    database.run("CREATE TABLE parents (id int PRIMARY KEY)", CHILD)
    database.run("DROP USER IF EXISTS reader@'127.0.0.1'", "CREATE USER reader@'127.0.0.1'", RIGHTS)
    to_file(bare_site, database, user="reader")
    assert "has no right on the database, or it is not there" in run(bare_site, code=2)
    database.run(f"GRANT SHOW VIEW ON {database.name}.* TO reader@'127.0.0.1'")
    if not isinstance(database.server, MySQL):
        assert "foreign keys do to rows" in run(bare_site, code=2)
    database.run("DROP TABLE orders", TABLE)
    run(bare_site)
    database.run("BEGIN", "INSERT INTO orders (id) VALUES (2)", *TEMPORARY, "ROLLBACK")
    database.run("INSERT INTO orders (id) VALUES (1)")
    run(bare_site)
    assert ids(bare_site) == [1]
    assert findings(database.changes("orders", user="reader")) == ""
    assert f"SHOW VIEW ON {database.name}.*" in findings(database.changes("nosuch", user="reader"))


@pytest.mark.parametrize("setting", ["binlog-ignore-db", "binlog-do-db", "a replica"])
def test_a_server_whose_log_does_not_have_the_tables_is_refused(
    bare_site: Site, worker_folder: Path, mariadb: MariaDB, setting: str
) -> None:
    settings = {"binlog-ignore-db": "shop"} if setting == "binlog-ignore-db" else {}
    settings = {"binlog-do-db": "other"} if setting == "binlog-do-db" else settings
    for server in running(MariaDB(worker_folder / f"mariadb-{setting.replace(' ', '-')}", settings=settings)):
        shop = Database(server, "shop")
        shop.run(TABLE)
        to_file(bare_site, shop)
        if setting == "a replica":
            run(bare_site)
            primary = f"MASTER_HOST = '127.0.0.1', MASTER_PORT = {mariadb.port}, MASTER_USER = 'tester'"
            shop.run(f"CHANGE MASTER TO {primary}")
        wrong = "log of this replica" if setting == "a replica" else setting.replace("-", "_")
        assert wrong in run(bare_site, code=2)
        assert wrong in findings(shop.changes("orders"))


def test_a_server_with_names_in_small_letters(bare_site: Site, worker_folder: Path) -> None:
    """A statement has them in its log as they were typed."""
    small = MariaDB(worker_folder / "mariadb-small", settings={"lower-case-table-names": "1"})
    for server in running(small):
        shop = Database(server, "shop")
        shop.run(TABLE)
        to_file(bare_site, shop)
        run(bare_site)
        shop.run("INSERT INTO Orders (id) VALUES (1)", "TRUNCATE Shop.ORDERS", "INSERT INTO ORDERS (id) VALUES (2)")
        run(bare_site)
    assert [op for op, *_ in told(bare_site)] == ["c", "t", "c"]


@ONLY_MARIADB
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


@ONLY_MARIADB
def test_transactions_of_several_domains_and_of_xa(bare_site: Site, database: Database) -> None:
    database.run(TABLE)
    to_file(bare_site, database)
    run(bare_site)
    database.run("SET gtid_domain_id = 7", "INSERT INTO orders (id) VALUES (1)")
    database.run("INSERT INTO orders (id) VALUES (2)")
    database.run("XA START 'x'", "INSERT INTO orders (id) VALUES (3)", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'")
    run(bare_site)
    assert ids(bare_site) == [1, 2, 3]
