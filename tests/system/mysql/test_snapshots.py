"""Rows of MariaDB that are there when a connector begins, or that somebody asks for, among the changes."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import pytest

from connect_core.systems.mysql.binlog.probing import probe
from tests.faults.kit.journeys import SHORT_LEASES
from tests.faults.kit.processes import ended, wait_for
from tests.mariadb import Database, MariaDB
from tests.mysql import MySQL
from tests.site import Site
from tests.system.mysql.test_change_types import KINDS, filled, made, of_server
from tests.table_connectors import run

pytestmark = pytest.mark.server

TABLE = "CREATE TABLE orders (id int PRIMARY KEY, note text, price decimal(10,2))"
GRANTED = (("SELECT", "orders"), ("INSERT", "hidden"), ("SELECT", "plain"))


@pytest.fixture
def database(mariadb: MariaDB) -> Database:
    return Database(mariadb)


def to_file(site: Site, database: Database, *tables: str, **options: Any) -> None:
    source = database.changes(*(tables or ("orders",)), **{"snapshot": "initial", **options})
    site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}})


def events(site: Site) -> list[Any]:
    path = site.folder / "out.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def told(site: Site) -> list[Any]:
    return [(one["op"], one["source"]["table"], (one["after"] or one["before"])["id"]) for one in events(site)]


def run_and_hear(site: Site) -> str:
    with site.start("run", "a", "--engine", "inline") as process:
        _, said = process.communicate(timeout=90)
    assert process.returncode == 0, said
    return str(said)


def test_rows_that_are_there_come_first(bare_site: Site, database: Database) -> None:
    database.run(
        TABLE, "CREATE TABLE nothing (id int PRIMARY KEY)", "CREATE TABLE pairs (b varchar(9), id int, KEY (b))"
    )
    database.run("ALTER TABLE pairs ADD PRIMARY KEY (id, b)")
    database.run("INSERT INTO orders SELECT seq, CONCAT('note ', seq), seq FROM seq_1_to_25")
    database.run("INSERT INTO pairs SELECT CHAR(96 + seq % 3), seq DIV 3 FROM seq_0_to_9")
    to_file(bare_site, database, "nothing", "orders", "pairs", snapshot_rows=4)
    assert "35 delivered" in run(bare_site)
    database.run("INSERT INTO orders VALUES (26, NULL, NULL)", "INSERT INTO nothing VALUES (1)")
    database.run("DELETE FROM pairs WHERE id = 0")
    run(bare_site)
    assert [(one["op"], one["source"]["snapshot"]) for one in events(bare_site)][:35] == [("r", "incremental")] * 35
    assert told(bare_site)[:25] == [("r", "orders", one) for one in range(1, 26)]
    assert events(bare_site)[3]["after"] == {"id": 4, "note": "note 4", "price": "AZA="}
    assert [op for op, *_ in told(bare_site)[35:]] == ["c", "c", "d", "d", "d"]
    assert database.run("SELECT * FROM waybill_snapshots") == []
    assert database.run("SHOW TABLES LIKE 'waybill_snapshot_rows'") == []


def test_rows_come_once_more_when_somebody_asks(bare_site: Site, database: Database) -> None:
    database.run(TABLE, "CREATE TABLE others (id int PRIMARY KEY)")
    to_file(bare_site, database, "orders", "oth*", snapshot="never")
    assert "has not begun" in bare_site.waybill("snapshot", "a", code=2)
    run(bare_site)
    database.run("INSERT INTO orders (id) VALUES (1)", "INSERT INTO others VALUES (2)")
    assert f"all rows of {database.name}.orders" in bare_site.waybill("snapshot", "a", "--table", "orders")
    assert "does not read table" in bare_site.waybill("snapshot", "a", "--table", "wrong", code=2)
    database.run("UPDATE orders SET note = 'later'")
    run(bare_site)
    bare_site.waybill("snapshot", "a")
    run(bare_site)
    assert told(bare_site) == [
        *(("c", "orders", 1), ("c", "others", 2), ("u", "orders", 1)),
        *(("r", "orders", 1), ("r", "orders", 1), ("r", "others", 2)),
    ]


def test_rows_that_wait_and_a_table_that_becomes_unfit(bare_site: Site, database: Database) -> None:
    """Of the first a run says why, and ends well; of the second it says why, fails, and has moved all the others."""
    database.run(TABLE, "CREATE TABLE others (id int PRIMARY KEY)", "INSERT INTO others VALUES (1)")
    database.run("INSERT INTO orders (id) VALUES (1), (2)")
    to_file(bare_site, database, "orders", "others")
    with closing(database.connected()) as session, session.cursor() as writing:
        session.begin()
        writing.execute("UPDATE orders SET note = 'new' WHERE id = 1")
        with bare_site.start("run", "a", "--engine", "inline") as process:
            _, said = process.communicate(timeout=60)
        session.rollback()
    assert process.returncode == 0
    assert f"rows of table {database.name}.orders and 1 more are still to come" in said
    assert "another session has locked the next row; the next run goes on" in said
    assert told(bare_site) == []
    database.run("ALTER TABLE orders DROP PRIMARY KEY", "UPDATE orders SET note = 'new' WHERE id = 1")
    for _ in range(2):
        said = run(bare_site, code=2)
        assert f"it has no primary key [127.0.0.1:{database.server.port}/{database.name}, table" in said
    assert told(bare_site) == [("u", "orders", 1), ("r", "others", 1)]
    assert bare_site.json("lag", "a")["connectors"][0]["snapshot"] == [
        {"table": f"{database.name}.orders", "left": 2, "rows": 2, "where": ""}
    ]
    database.run("ALTER TABLE orders ADD PRIMARY KEY (id)")
    run(bare_site)
    assert told(bare_site)[2:] == [("r", "orders", 1), ("r", "orders", 2)]
    assert database.run("SELECT * FROM waybill_snapshots") == []


def test_a_connector_that_is_deleted_leaves_no_request_behind(bare_site: Site, database: Database) -> None:
    database.run(TABLE, "CREATE TABLE others (id int PRIMARY KEY)", "INSERT INTO others VALUES (1)")
    for name in ("a", "b"):
        source = database.changes("orders", "others", snapshot="never")
        bare_site.apply(name, {"source": source, "sink": {"file": {"path": f"{name}.jsonl"}}})
        bare_site.waybill("run", name, "--engine", "inline")
        bare_site.waybill("snapshot", name)
    database.run("CREATE TABLE waybill_snapshot_rows (id int PRIMARY KEY)")
    assert [of for _, of in requests(database)] == [1, 1]
    bare_site.waybill("connectors", "delete", "a", "--yes")
    assert [of for _, of in requests(database)] == [1]
    assert database.run("SHOW TABLES LIKE 'waybill_snapshot_rows'") == []
    bare_site.waybill("run", "b", "--engine", "inline")
    assert len((bare_site.folder / "b.jsonl").read_text().splitlines()) == 1


def requests(database: Database) -> list[Any]:
    return database.run("SELECT connector, COUNT(*) FROM waybill_snapshots GROUP BY 1")


def test_who_has_never_run_is_deleted_without_its_server(bare_site: Site, database: Database) -> None:
    to_file(bare_site, database, port=1)
    bare_site.waybill("connectors", "delete", "a", "--yes")


def test_lag_says_how_many_rows_are_still_to_come(bare_site: Site, database: Database) -> None:
    bare_site.settings.update(SHORT_LEASES)
    database.run(TABLE, "CREATE TABLE pairs (a int, id int, PRIMARY KEY (a, id))")
    database.run("INSERT INTO orders (id) SELECT seq FROM seq_1_to_1000", "INSERT INTO pairs VALUES (1, 1)")
    database.run("ANALYZE TABLE orders, pairs")
    source = database.changes("orders", "pairs", snapshot="initial", snapshot_rows=50)
    limits = {"range_records": 300}
    bare_site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}, "limits": limits})
    assert bare_site.json("lag", "a")["connectors"][0]["snapshot"] == [
        {"table": f"{database.name}.orders", "left": 1000, "rows": 1000, "where": ""},
        {"table": f"{database.name}.pairs", "left": 1, "rows": 1, "where": ""},
    ]
    bare_site.fault("settled")
    run(bare_site, code=-9)
    assert bare_site.json("lag", "a")["connectors"][0]["snapshot"] == [
        {"table": f"{database.name}.orders", "left": 750, "rows": 1000, "where": ""},
        {"table": f"{database.name}.pairs", "left": 1, "rows": 1, "where": ""},
    ]
    run(bare_site)
    assert len(events(bare_site)) == 1001
    assert bare_site.json("lag", "a")["connectors"][0]["snapshot"] == []


def test_lag_of_who_has_never_run_says_what_is_wrong(bare_site: Site, database: Database) -> None:
    """And nothing of rows where none are to come."""
    database.run("CREATE TABLE orders (id int)", "INSERT INTO orders VALUES (1)")
    to_file(bare_site, database)
    assert "it has no primary key" in bare_site.waybill("lag", "a", code=2)
    to_file(bare_site, database, snapshot="never")
    assert bare_site.json("lag", "a")["connectors"][0]["snapshot"] == []


def test_a_row_is_read_as_its_changes_are(bare_site: Site, database: Database) -> None:
    """Of each type, whatever else the table has. What an event has of a row does not depend on how it came."""
    kinds = of_server(database, KINDS)
    made(database, kinds)
    database.run(
        "ALTER TABLE kinds ADD twice int AS (number * 2) VIRTUAL, ADD thrice int AS (number * 3) STORED,"
        " ADD hidden int INVISIBLE DEFAULT 7, ADD e enum('a','select ''it'' %s'), ADD day date, ADD at datetime"
        " COMMENT 'select', ADD big bigint unsigned, ADD UNIQUE (hidden, number), ADD CHECK (number < 9)"
    )
    filled(database, kinds, "number, " + ", ".join(f"c{number}" for number in range(len(kinds))))
    database.run(
        "SET sql_mode = ''",
        "UPDATE kinds SET e = 2, day = '0000-00-00', at = '2026-02-00 00:00:00', big = 18446744073709551615"
        " WHERE number = 0",
        "UPDATE kinds SET e = 0, day = '2026-01-31' WHERE number = 1",
    )
    source = database.changes("kinds", snapshot="initial")
    bare_site.apply("a", {"source": source, "sink": {"file": {"path": "out.jsonl"}}, "errors": {"tolerance": "all"}})
    run(bare_site)
    database.run("UPDATE kinds SET hidden = 8", "UPDATE kinds SET hidden = 7")
    run(bare_site)
    by_op: dict[str, list[Any]] = {"r": [], "u": []}
    for one in events(bare_site):
        by_op[one["op"]].append(one["after"])
    assert len(by_op["r"]) == 2
    assert by_op["r"] == by_op["u"][-2:]


KEYS = {
    "numbers": ("a bigint unsigned, b tinyint", "seq * 300000000000000000, seq % 2"),
    "texts": ("a varchar(20) COLLATE utf8mb4_general_ci", "CONCAT(ELT(1 + seq % 4, 'Ä', 'b', 'ß', '\\\\\"'), seq)"),
    "latin": (
        "a char(9) CHARACTER SET latin1 COLLATE latin1_german2_ci",
        "CONCAT(ELT(1 + seq % 3, 'ä', 'ae', 'z'), seq)",
    ),
    "exact": ("a varchar(9) COLLATE utf8mb4_bin", "ELT(1 + seq % 31, 'A', 'a', '', 'ä', 'Ä', CONCAT('x', seq))"),
    "moments": (
        "a datetime(6), b date, c time(3)",
        "'2026-01-01' + INTERVAL (seq DIV 3) * 0.25 SECOND, '2026-01-31', SEC_TO_TIME(seq - 9.5)",
    ),
    "zones": ("a timestamp(6), b year", "'2026-10-25 00:00:00' + INTERVAL seq MINUTE, 2000 + seq"),
    "bytes": ("a binary(4), b varbinary(9)", "CHAR(seq % 2), CHAR(seq, 0)"),
    "uuids": (
        "a uuid, b inet6",
        "CONCAT(LPAD(HEX(seq * 7919 % 251), 8, '0'), '-0000-1000-8000-', LPAD(HEX(seq), 12, '0')), '::1'",
    ),
    "fractions": ("a float, b double, c decimal(20,10)", "seq / 7, seq / 3, seq / 9"),
    "choices": ("a enum('z','b','a'), b set('q','p','o'), c bit(6)", "1 + seq % 3, seq % 8, seq"),
}
"""Columns of a key, and rows of it."""


def test_rows_of_any_key_come_in_chunks(bare_site: Site, database: Database) -> None:
    """Each once, and none twice, however the server compares."""
    keys = {one: how for one, how in KEYS.items() if one != "uuids" or not isinstance(database.server, MySQL)}
    for table, (columns, values) in keys.items():
        names = ", ".join(one.split()[0] for one in columns.split(", "))
        database.run(
            f"CREATE TABLE {table} ({columns}, number int, PRIMARY KEY ({names})) CHARACTER SET utf8mb4",
            f"INSERT IGNORE INTO {table} SELECT {values}, seq FROM seq_1_to_30",
        )
    to_file(bare_site, database, *keys, snapshot_rows=4)
    run(bare_site)
    for table in keys:
        came = [one["after"]["number"] for one in events(bare_site) if one["source"]["table"] == table]
        there = [number for (number,) in database.run(f"SELECT number FROM {table}")]
        assert len(there) > 4
        assert sorted(came) == sorted(there), table


def test_a_probe_names_what_is_missing(database: Database) -> None:
    name, user = database.name, f"p{database.name[-8:]}"
    database.run(
        *(TABLE, "CREATE TABLE hidden (id int PRIMARY KEY)", "CREATE TABLE plain (id int)"),
        f"CREATE USER {user}@'127.0.0.1'",
        f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user}@'127.0.0.1'",
        f"GRANT SELECT ON performance_schema.* TO {user}@'127.0.0.1'",  # which MySQL asks for
        *(f"GRANT {right} ON {name}.{one} TO {user}@'127.0.0.1'" for right, one in GRANTED),
    )
    [options] = database.changes("orders", "hidden", "plain", snapshot="initial", user=user).values()
    wrong = [one.what for one in probe(options) if not one.ok]
    assert len(wrong) == 4
    assert f"GRANT SELECT ON {name}.hidden" in wrong[0]
    assert "it has no primary key" in wrong[1]
    for table, words in zip(("waybill_snapshot_rows", "waybill_snapshots"), wrong[2:], strict=True):
        assert f"GRANT SELECT, INSERT, DELETE, CREATE, DROP ON {name}.{table} TO {user};" in words
    assert [one.what for one in probe({**options, "snapshot": "never"}) if not one.ok] == []
    [options] = database.changes("orders", snapshot="initial").values()
    assert [one.what for one in probe(options) if not one.ok] == []
    assert database.run("SHOW TABLES LIKE 'waybill%'") == []
    database.run(f"DROP USER {user}@'127.0.0.1'")


def test_two_connectors_of_one_database_take_turns(bare_site: Site, database: Database) -> None:
    database.run(TABLE, "CREATE TABLE others (id int PRIMARY KEY)")
    database.run("INSERT INTO orders (id) SELECT seq FROM seq_1_to_3000", "INSERT INTO others SELECT id FROM orders")
    for name, tables in (("a", ("orders",)), ("b", ("others", "orders"))):
        source = database.changes(*tables, snapshot="initial", snapshot_rows=50)
        bare_site.apply(name, {"source": source, "sink": {"file": {"path": f"{name}.jsonl"}}})
    for _ in range(3):
        with (
            bare_site.start("run", "a", "--engine", "inline") as one,
            bare_site.start("run", "b", "--engine", "inline") as two,
        ):
            assert [ended(one), ended(two)] == [0, 0]
    for name, count in (("a", 3_000), ("b", 6_000)):
        lines = (bare_site.folder / f"{name}.jsonl").read_text().splitlines()
        came = [(one["source"]["table"], one["after"]["id"]) for one in map(json.loads, lines)]
        assert len(came) == len(set(came)) == count


def test_rows_that_somebody_asks_for_come_within_a_window(bare_site: Site, database: Database) -> None:
    database.run(TABLE, "INSERT INTO orders (id) SELECT seq FROM seq_1_to_300")
    to_file(bare_site, database, snapshot="never")
    run(bare_site)
    with bare_site.start("run", "a", "--engine", "inline", "--window", "60s") as driver:
        database.run("UPDATE orders SET note = 'a' WHERE id = 1")
        wait_for(lambda: len(events(bare_site)) == 1, "the change")
        bare_site.waybill("snapshot", "a")
        wait_for(lambda: len(events(bare_site)) == 301, "the rows")
        driver.terminate()
        ended(driver)
    assert [op for op, *_ in told(bare_site)] == ["u", *["r"] * 300]


@pytest.mark.parametrize("named", ["o*", "orders"])
def test_a_table_that_gets_another_name_while_its_rows_come_is_told(
    bare_site: Site, database: Database, named: str
) -> None:
    """Once, wherever the run is killed that says it."""
    bare_site.settings.update(SHORT_LEASES)
    database.run(TABLE, "CREATE TABLE others (id int PRIMARY KEY)", "INSERT INTO others VALUES (1)")
    database.run("INSERT INTO orders (id) SELECT seq FROM seq_1_to_30")
    to_file(bare_site, database, named, "others", snapshot_rows=1)
    with closing(database.connected()) as session, session.cursor() as writing:
        session.begin()
        writing.execute("UPDATE orders SET note = 'new' WHERE id = 5")
        run(bare_site)
        session.rollback()
    database.run("RENAME TABLE orders TO olders")
    bare_site.fault("planned")
    run(bare_site, code=-9)
    run(bare_site)
    gaps = [gap["reason"] for gap in bare_site.json("gaps", "a")["gaps"]]
    assert len(gaps) == 1
    assert (
        f"of table {database.name}.orders not all rows have come, and no more do: it was dropped, or has another name"
        in gaps[0]
    )
    assert ("r", "others", 1) in told(bare_site)
    to_file(bare_site, database, "o*", "others", snapshot_rows=1)
    bare_site.waybill("snapshot", "a", "--table", "olders")
    run(bare_site)
    assert {number for op, table, number in told(bare_site) if (op, table) == ("r", "olders")} == {*range(1, 31)}
