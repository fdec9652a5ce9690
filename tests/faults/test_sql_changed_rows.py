"""Rows of SQLite that are read by the time of the last change, of a table and of a query over two, and of several
tables, while processes are killed and other programs write the file: what arrives is compared with what these have
written down."""

from __future__ import annotations

import json
import random
import sqlite3
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

import pytest

from tests.faults.kit import attempts
from tests.faults.kit.journeys import SHORT_LEASES
from tests.faults.rows import FaultRow
from tests.side_by_side import side_by_side
from tests.site import Site
from tests.sqlite_files import Database

pytestmark = pytest.mark.fault
STEPS = ("batch-written", "found", "planned", "lane-started", "before-receipt", "executed", "settled")
WRITERS, ORDERS, ITEMS = 4, 80, 3
NOW = "strftime('%Y-%m-%d %H:%M:%f', 'now')"
TABLE = {"table": "orders"}
QUERY = {
    "query": "SELECT i.id, i.version + o.version AS version, max(i.at, o.at) AS at"
    " FROM items i JOIN orders o ON o.id = i.of_order",
    "incrementing": "id",
}
VERSIONS = {
    "orders": "SELECT id, version FROM orders",
    "items": f"SELECT id, version FROM ({QUERY['query']})",
}


@pytest.fixture(params=["delete", "wal"])
def database(request: pytest.FixtureRequest, bare_site: Site) -> Database:
    """Each version that is committed is in `history`, in the same transaction."""
    bare_site.settings.update(SHORT_LEASES)
    made = Database(bare_site.folder / "shop.db")
    columns = "id INTEGER PRIMARY KEY, version INTEGER NOT NULL, at DATETIME NOT NULL"
    made.run(
        f"PRAGMA journal_mode = {request.param}",
        f"CREATE TABLE orders ({columns})",
        f"CREATE TABLE items ({columns}, of_order INTEGER)",
        "CREATE TABLE history (of TEXT, id INTEGER, version INTEGER)",
        "CREATE INDEX items_of ON items (of_order)",
    )
    with closing(made.connected()) as session:
        session.execute("BEGIN")
        for order in range(1, ORDERS + 1):
            add(session, order)
        session.execute("COMMIT")
    return made


def add(session: sqlite3.Connection, order: int) -> None:
    session.execute(f"INSERT INTO orders VALUES ({order}, 0, {NOW})")
    for item in range(ITEMS):
        session.execute(f"INSERT INTO items VALUES ({order * 10 + item}, 0, {NOW}, {order})")
    write_down(session, order)


def write_down(session: sqlite3.Connection, order: int) -> None:
    session.execute(f"INSERT INTO history SELECT 'orders', id, version FROM orders WHERE id = {order}")
    changed = f"id BETWEEN {order * 10} AND {order * 10 + 9}"
    session.execute(f"INSERT INTO history SELECT 'items', id, version FROM ({VERSIONS['items']}) WHERE {changed}")


def changes(database: Database, writer: int, seed: float, stop: threading.Event) -> None:
    chosen, made = random.Random(seed), ORDERS + 1 + writer
    with closing(database.connected()) as session:
        while not stop.is_set():
            session.execute(chosen.choice(["BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"]))
            for order in chosen.sample(range(1, ORDERS + 1), 2):
                which = chosen.choice(
                    [f"orders SET version = version + 1, at = {NOW} WHERE id = {order}"] * 2
                    + [f"items SET version = version + 1, at = {NOW} WHERE of_order = {order}"]
                )
                session.execute(f"UPDATE {which}")
                write_down(session, order)
                time.sleep(chosen.choice([0, 0.001, 0.01, chosen.uniform(0, 0.3)]))
            if chosen.random() < 0.2:
                add(session, made)
                made += WRITERS
            session.execute(chosen.choice(["COMMIT", "COMMIT", "COMMIT", "ROLLBACK"]))
            time.sleep(chosen.choice([0, 0.001, 0.01, 0.1]))


def follow(
    site: Site, row: FaultRow, seeded: random.Random, busy: Callable[[int, float, threading.Event], None]
) -> None:
    """Runs and windows are killed at random steps while the programs are busy; then it is read to the end."""
    with side_by_side(busy, WRITERS, seeded):
        row.strikes()
        for number in range(5):
            site.fault(seeded.choice(STEPS), passes=seeded.randrange(3))
            attempts.attempt(site, "copy", *(("--window", "6s") if number % 2 else ()))
    attempts.run_until_done(site, "copy")
    row.moves_again()


def check_receipts(site: Site, row: FaultRow, lines: int) -> None:
    receipts = site.json("receipts", "copy", "--last", "1000")["receipts"]
    row.duplicates = sum(one["possible_duplicates"] for one in receipts)
    assert sum(one["delivered"] + one["deduplicated"] for one in receipts) == lines
    assert row.duplicates == 0


def lines_of(site: Site) -> list[Any]:
    """Of each task's file."""
    return [json.loads(line) for path in site.folder.glob("out*.jsonl") for line in path.read_text().splitlines()]


@pytest.mark.parametrize(("of", "read"), [("orders", TABLE), ("items", QUERY)], ids=["table", "query"])
def test_each_last_version_arrives_once(
    bare_site: Site, database: Database, row: FaultRow, seeded: random.Random, of: str, read: dict[str, str]
) -> None:
    where = f"{'table' if read is TABLE else 'query'} of SQLite → file"
    row.describe("SIGKILL at random steps, rows changed in long transactions", where=where, database="SQLite")
    source = database.source(**read, timestamp="at", lock_timeout_s=2)
    sink = {"file": {"path": "out.jsonl"}}
    bare_site.apply("copy", {"source": source, "sink": sink, "limits": {"range_records": 70}})
    follow(bare_site, row, seeded, partial(changes, database))
    lines, seen = lines_of(bare_site), defaultdict[int, list[int]](list)
    for line in lines:
        seen[line["id"]].append(line["version"])
    committed = set(database.run(f"SELECT id, version FROM history WHERE of = '{of}'"))
    times = Counter((number, version) for number, versions in seen.items() for version in versions)
    row.lost = sum(seen[number][-1:] != [version] for number, version in database.run(VERSIONS[of]))
    row.repeated = sum(count - 1 for count in times.values())
    row.reordered = sum(versions != sorted(versions) for versions in seen.values())
    assert (row.lost, row.repeated, row.reordered) == (0, 0, 0)
    assert set(times) <= committed
    assert len(lines) > len(seen)
    check_receipts(bare_site, row, len(lines))


def fills(database: Database, writer: int, seed: float, stop: threading.Event) -> None:
    """Now and then there is one table more."""
    chosen, tables = random.Random(seed), 0
    with closing(database.connected()) as session:
        while not stop.is_set():
            session.execute("BEGIN IMMEDIATE")
            if not tables or chosen.random() < 0.02:
                tables += 1
                session.execute(f"CREATE TABLE t_{writer}_{tables} (id INTEGER PRIMARY KEY AUTOINCREMENT, of TEXT)")
            table = f"t_{writer}_{chosen.randrange(tables) + 1}"
            session.executemany(f"INSERT INTO {table} (of) VALUES (?)", [(table,)] * chosen.randrange(1, 30))
            session.execute(chosen.choice(["COMMIT", "COMMIT", "COMMIT", "ROLLBACK"]))
            tables = len(session.execute(f"SELECT 1 FROM sqlite_schema WHERE name GLOB 't_{writer}_*'").fetchall())
            time.sleep(chosen.choice([0, 0.01, 0.1]))


def test_rows_of_several_tables_arrive_once(
    bare_site: Site, database: Database, row: FaultRow, seeded: random.Random
) -> None:
    row.describe("SIGKILL at random steps, tables are made", where="tables of SQLite → file", database="SQLite")
    source, sink = database.source(tables=["t_*"]), {"file": {"path": "out.jsonl"}}
    bare_site.apply("copy", {"source": source, "sink": sink, "tasks": 2, "limits": {"range_records": 70}})
    follow(bare_site, row, seeded, partial(fills, database))
    lines, seen = lines_of(bare_site), defaultdict[str, list[int]](list)
    for line in lines:
        seen[line["of"]].append(line["id"])
    tables = [name for (name,) in database.run("SELECT name FROM sqlite_schema WHERE name GLOB 't_*'")]
    there = {name: [number for (number,) in database.run(f"SELECT id FROM {name} ORDER BY id")] for name in tables}
    row.lost = sum(len(set(numbers) - set(seen[name])) for name, numbers in there.items())
    row.repeated = sum(len(numbers) - len(set(numbers)) for numbers in seen.values())
    row.reordered = sum(numbers != sorted(numbers) for numbers in seen.values())
    assert (row.lost, row.repeated, row.reordered) == (0, 0, 0)
    assert seen == there
    assert len(tables) >= WRITERS
    check_receipts(bare_site, row, len(lines))
