"""Changes of tables of MariaDB, while processes are killed and others write (tests.faults.kit.following)."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pymysql
import pytest
from pymysql.cursors import Cursor

from tests import mysql_writers
from tests.faults.kit import attempts
from tests.faults.kit.following import STEPS, Following, followed
from tests.faults.kit.journeys import SHORT_LEASES
from tests.faults.kit.processes import ended
from tests.faults.rows import FaultRow
from tests.mariadb import Database, MariaDB
from tests.side_by_side import side_by_side
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]

WRITERS = 4
INTO = ("file", "table", "postgresql")
NOTE = "CREATE TRIGGER noting_{0} AFTER {0} ON orders FOR EACH ROW INSERT INTO noted VALUES (NULL, {1})"
TABLES = (
    "CREATE TABLE orders (id bigint PRIMARY KEY, note varchar(99))",
    "CREATE TABLE noted (number bigint AUTO_INCREMENT PRIMARY KEY, op text, was bigint, id bigint, note text)",
    NOTE.format("INSERT", "'c', NULL, NEW.id, NEW.note"),
    NOTE.format("UPDATE", "'u', OLD.id, NEW.id, NEW.note"),
    NOTE.format("DELETE", "'d', OLD.id, NULL, NULL"),
)


@contextmanager
def writing(database: Database, seeded: random.Random) -> Iterator[None]:
    """Programs that insert, update, move and delete rows in transactions that end late, or not well."""
    with side_by_side(lambda _, seed, stop: _write(database, seed, stop), WRITERS, seeded):
        yield


def _write(database: Database, seed: float, stop: threading.Event) -> None:
    chosen = random.Random(seed)
    with closing(database.connected()) as connection, connection.cursor() as session:
        while not stop.is_set():
            try:
                connection.begin()
                for _ in range(chosen.randint(1, 6)):
                    session.execute(_statement(chosen))
                    stop.wait(chosen.choice((0, 0, 0.003, 0.02)))
                if chosen.random() < 0.3:
                    _take_back(session, chosen)
            except pymysql.Error:
                connection.rollback()
                continue
            (connection.commit if chosen.random() < 0.85 else connection.rollback)()


def _take_back(session: Cursor, chosen: random.Random) -> None:
    """What the server leaves in its log, because of a temporary table."""
    session.execute("SAVEPOINT a")
    session.execute(_statement(chosen))
    session.execute("CREATE OR REPLACE TEMPORARY TABLE of_a_session (a int)")
    if chosen.random() < 0.7:
        session.execute("ROLLBACK TO a")


def _statement(chosen: random.Random) -> str:
    """An update that changes nothing fires the trigger, and is no change: none is the same."""
    row, how = chosen.randrange(300), chosen.random()
    if how < 0.35:
        return f"INSERT INTO orders VALUES ({row}, 'n{chosen.random()}')"
    if how < 0.7:
        return f"UPDATE orders SET note = 'u{chosen.random()}' WHERE id = {row}"
    if how < 0.8:
        return f"UPDATE orders SET id = {chosen.randrange(300)}, note = 'm{chosen.random()}' WHERE id = {row}"
    return f"DELETE FROM orders WHERE id = {row}"


def feed(following: Following, count: int, first: int) -> None:
    following.database.run(f"INSERT INTO orders SELECT seq, 'x' FROM seq_{first}_to_{first + count - 1}")


@pytest.fixture(params=INTO)
def following(bare_site: Site, mariadb: MariaDB, request: pytest.FixtureRequest) -> Following:
    bare_site.settings.update(SHORT_LEASES)
    made = followed(bare_site, Database(mariadb), request.param, request)
    made.database.run(*TABLES)
    made.apply()
    assert made.attempt() == 0
    return made


@pytest.mark.parametrize("step", STEPS)
def test_a_process_killed_at_a_step(following: Following, row: FaultRow, seeded: random.Random, step: str) -> None:
    row.describe(f"SIGKILL at {step}", where=following.where, database="SQLite")
    feed(following, 3_000, 1)
    following.site.fault(step, passes=seeded.randrange(2))
    following.attempt()
    row.strikes()
    feed(following, 500, 3_001)
    following.check(row)


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize("window", [False, True])
def test_kills_beside_busy_writers(following: Following, row: FaultRow, seeded: random.Random, window: bool) -> None:
    words = ("--window", "4s") if window else ()
    row.describe(
        f"SIGKILL at random steps, writers busy{', windows' * window}", where=following.where, database="SQLite"
    )
    with writing(following.database, seeded):
        row.strikes()
        for _ in range(5):
            following.site.fault(seeded.choice(STEPS), passes=seeded.randrange(2))
            following.attempt(*words)
            following.database.run("FLUSH BINARY LOGS")
    following.check(row)


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize("into", INTO)
@pytest.mark.parametrize("kills", [False, True])
def test_a_snapshot_beside_busy_writers(
    bare_site: Site,
    mariadb: MariaDB,
    row: FaultRow,
    seeded: random.Random,
    request: pytest.FixtureRequest,
    into: str,
    kills: bool,
) -> None:
    """Rows that are there come among the changes of others. Each is as the changes before it say."""
    bare_site.settings.update(SHORT_LEASES)
    database = Database(mariadb)
    following = followed(bare_site, database, into, request, snapshot="initial", snapshot_rows=7)
    how = "SIGKILL at random steps, " * kills
    row.describe(f"{how}writers busy while rows are read", where=f"rows and {following.where}", database="SQLite")
    database.run(*TABLES, "INSERT INTO orders SELECT seq, 'there' FROM seq_0_to_299")
    with writing(database, seeded):
        row.strikes()
        following.apply()
        for _ in range(4):
            if kills:
                bare_site.fault(seeded.choice(STEPS), passes=seeded.randrange(3))
            following.attempt(*seeded.choice(((), ("--window", "2s"))))
    following.check_snapshot(row)
    assert database.run("SELECT COUNT(*) FROM waybill_snapshots") == [(0,)]


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize("number", range(4))
def test_a_table_joins_beside_busy_writers(
    bare_site: Site,
    mariadb: MariaDB,
    row: FaultRow,
    seeded: random.Random,
    request: pytest.FixtureRequest,
    number: int,
) -> None:
    """Its rows come among its changes, the first of which are from before the run that hears of it."""
    bare_site.settings.update(SHORT_LEASES)
    database = Database(mariadb)
    following = followed(bare_site, database, "file", request, snapshot="initial", snapshot_rows=7)
    words = "SIGKILL at random steps, writers busy while a table joins"
    row.describe(words, where=f"rows and {following.where}", database="SQLite")
    database.run(*TABLES, "INSERT INTO orders SELECT seq, 'there' FROM seq_0_to_299")
    database.run("CREATE TABLE others (id int PRIMARY KEY)")
    with writing(database, seeded):
        following.begin_without("others")
        row.strikes()
        following.attempts_with_kills(seeded)
    following.check_snapshot(row)


@pytest.mark.parametrize("number", range(3))
@pytest.mark.fault(costly=True)
def test_the_server_is_killed_while_rows_are_read(
    bare_site: Site,
    mariadb: MariaDB,
    row: FaultRow,
    seeded: random.Random,
    request: pytest.FixtureRequest,
    number: int,
) -> None:
    """Within chunks, before they are in the log and behind that."""
    where = "rows and changes of MariaDB → file"
    row.describe("SIGKILL of the server while rows are read", where=where, database="SQLite")
    bare_site.settings.update(SHORT_LEASES)
    database = Database(mariadb)
    following = followed(bare_site, database, "file", request, snapshot="initial", snapshot_rows=20)
    database.run(*TABLES, "INSERT INTO orders SELECT seq, 'there' FROM seq_0_to_19999")
    following.apply()
    for strike in range(3):
        with attempts.start(bare_site, "copy") as driver:
            time.sleep(seeded.uniform(0.6, 2.0))
            mariadb.kill()
            row.strikes()
            mariadb.start()
            ended(driver)
        database.run(f"UPDATE orders SET note = 'strike {strike}' WHERE id % 7 = {strike}")
    following.check_snapshot(row)
    assert sum('"op":"r"' in line for line in following.lines()) == 20_000


@pytest.mark.parametrize("number", range(2))
def test_the_server_is_killed_while_it_writes_large_transactions(
    bare_site: Site, mariadb: MariaDB, row: FaultRow, seeded: random.Random, request: pytest.FixtureRequest, number: int
) -> None:
    """MariaDB leaves what it has written of one in its log, mostly up to within an event."""
    row.describe("SIGKILL of the server in large transactions", where="changes of MariaDB → file", database="SQLite")
    bare_site.settings.update(SHORT_LEASES)
    following = followed(bare_site, Database(mariadb), "file", request)
    following.database.run(*TABLES, "ALTER TABLE orders MODIFY note text")
    following.apply()
    assert following.attempt() == 0
    with side_by_side(lambda _, seed, stop: _write_much(following.database, seed, stop), 1, seeded):
        for _ in range(4):
            with attempts.start(bare_site, "copy") as driver:
                time.sleep(seeded.uniform(0.0, 2.0))
                _until_it_writes(mariadb, seeded.randrange(1, 3_000_000))
                mariadb.kill()
                row.strikes()
                mariadb.start()
                ended(driver)
    following.check(row)


def _until_it_writes(server: MariaDB, much: int) -> None:
    """So many bytes more into its log. No sleep: it writes megabytes in a few milliseconds."""
    newest = max((server.folder / "data").glob("bin.[0-9]*"))
    before = newest.stat().st_size
    while newest.stat().st_size < before + much:
        pass


def _write_much(database: Database, seed: float, stop: threading.Event) -> None:
    """Transactions of some megabytes, one after the other, whatever happens to the server."""
    chosen, first = random.Random(seed), 0
    while not stop.is_set():
        rows = chosen.randint(500, 2_000)
        first += rows
        try:
            note, last = f"REPEAT('{chosen.choice('abc')}', 2000)", first + rows - 1
            database.run(f"INSERT INTO orders SELECT seq, {note} FROM seq_{first}_to_{last}")
        except pymysql.Error:
            stop.wait(0.05)


@pytest.mark.parametrize("kills", [False, True])
@pytest.mark.fault(costly=True)
def test_a_snapshot_beside_who_inserts(
    bare_site: Site,
    mariadb: MariaDB,
    row: FaultRow,
    seeded: random.Random,
    request: pytest.FixtureRequest,
    kills: bool,
) -> None:
    """It comes to its end while they go on. A row comes once as one that was there, and once as a change; both ways
    where it was inserted before its table was read."""
    how = "SIGKILL at random steps, " * kills
    where = "rows and changes of MariaDB → file"
    row.describe(f"{how}writers insert while rows are read", where=where, database="SQLite")
    bare_site.settings.update(SHORT_LEASES)
    database = Database(mariadb)
    database.run(mysql_writers.TABLE, "INSERT INTO orders (writer) SELECT -1 FROM seq_1_to_3000")
    following = followed(bare_site, database, "file", request, snapshot="initial", snapshot_rows=500)
    with mysql_writers.writing(database, seeded):
        time.sleep(0.5)
        row.strikes()
        following.apply()
        for _ in range(4 if kills else 0):
            bare_site.fault(seeded.choice(STEPS), passes=seeded.randrange(3))
            following.attempt()
        attempts.run_until_done(bare_site, "copy")
        attempts.run_until_done(bare_site, "copy")
        assert bare_site.json("lag", "copy")["connectors"][0]["snapshot"] == []
    attempts.run_until_done(bare_site, "copy")
    row.moves_again()
    came = [(event["op"], event["after"]["id"]) for event in map(json.loads, following.lines())]
    there, arrived = {number for (number,) in database.run("SELECT id FROM orders")}, {number for _, number in came}
    row.lost, row.repeated = len(there - arrived), len(came) - len({*came})
    assert (row.lost, row.repeated, arrived - there) == (0, 0, set())
