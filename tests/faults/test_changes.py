"""Changes of tables of PostgreSQL, while processes are killed and others write (tests.faults.kit.following)."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import psycopg2
import pytest

from tests.faults.kit.following import STEPS, Following, followed
from tests.faults.kit.journeys import SHORT_LEASES
from tests.faults.rows import FaultRow
from tests.postgres_tables import Database
from tests.side_by_side import side_by_side
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]

ROWS = 6_000
WRITERS = 6
INTO = ("file", "table", "mysql")
TABLES = (
    "CREATE TABLE orders (id bigint PRIMARY KEY, note text)",
    "ALTER TABLE orders REPLICA IDENTITY FULL",
    "CREATE TABLE noted (number bigserial, op text, was bigint, id bigint, note text)",
    """CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF tg_op = 'DELETE' THEN INSERT INTO noted VALUES (DEFAULT, 'd', old.id, NULL, NULL);
    ELSIF tg_op = 'UPDATE' THEN INSERT INTO noted VALUES (DEFAULT, 'u', old.id, new.id, new.note);
    ELSE INSERT INTO noted VALUES (DEFAULT, 'c', NULL, new.id, new.note); END IF; RETURN NULL; END $$""",
    "CREATE TRIGGER noting AFTER INSERT OR UPDATE OR DELETE ON orders FOR EACH ROW EXECUTE FUNCTION note()",
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
                for _ in range(chosen.randint(1, 6)):
                    session.execute(_statement(chosen))
                    stop.wait(chosen.choice((0, 0, 0.003, 0.02)))
            except (psycopg2.errors.UniqueViolation, psycopg2.errors.DeadlockDetected):
                connection.rollback()
                continue
            (connection.commit if chosen.random() < 0.85 else connection.rollback)()


def _statement(chosen: random.Random) -> str:
    row, how = chosen.randrange(300), chosen.random()
    if how < 0.35:
        return f"INSERT INTO orders VALUES ({row}, 'n{chosen.random()}') ON CONFLICT (id) DO NOTHING"
    if how < 0.7:
        return f"UPDATE orders SET note = 'u{chosen.random()}' WHERE id = {row}"
    if how < 0.8:
        return f"UPDATE orders SET id = {chosen.randrange(300)} WHERE id = {row}"
    return f"DELETE FROM orders WHERE id = {row}"


def feed(following: Following, count: int, first: int) -> None:
    following.database.run(f"INSERT INTO orders SELECT n, 'x' FROM generate_series({first}, {first + count - 1}) n")


@pytest.fixture(params=INTO)
def following(bare_site: Site, postgres_url: str, request: pytest.FixtureRequest) -> Iterator[Following]:
    bare_site.settings.update(SHORT_LEASES)
    database = Database(postgres_url)
    database.run(*TABLES)
    made = followed(bare_site, database, request.param, request)
    made.apply()
    assert made.attempt() == 0
    yield made
    database.drop_slots()


@pytest.mark.parametrize("step", STEPS)
def test_a_process_killed_at_a_step(following: Following, row: FaultRow, seeded: random.Random, step: str) -> None:
    row.describe(f"SIGKILL at {step}", where=following.where, database="SQLite")
    feed(following, ROWS // 2, 1)
    feed(following, ROWS // 2, 1 + ROWS // 2)
    following.site.fault(step, passes=seeded.randrange(2))
    following.attempt()
    row.strikes()
    feed(following, 500, 1 + ROWS)
    following.check(row)


@pytest.mark.parametrize("window", [False, True])
@pytest.mark.fault(costly=True)
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
    following.check(row)


@pytest.mark.fault(costly=True)
def test_connections_cut_beside_busy_writers(following: Following, row: FaultRow, seeded: random.Random) -> None:
    row.describe("all sessions of ours terminated, writers busy", where=following.where, database="SQLite")
    stop = threading.Event()

    def cut() -> None:
        while not stop.wait(seeded.uniform(0.3, 1.2)):
            following.database.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                " AND application_name LIKE 'waybill%' AND pid <> pg_backend_pid()"
            )

    with writing(following.database, seeded), ThreadPoolExecutor(1) as pool:
        cutting = pool.submit(cut)
        row.strikes()
        try:
            for _ in range(4):
                following.attempt("--window", "3s")
        finally:
            stop.set()
        cutting.result()
    following.check(row)


@pytest.mark.parametrize("into", INTO)
@pytest.mark.parametrize("kills", [False, True])
def test_a_snapshot_beside_busy_writers(
    bare_site: Site,
    postgres_url: str,
    row: FaultRow,
    seeded: random.Random,
    request: pytest.FixtureRequest,
    into: str,
    kills: bool,
) -> None:
    """Rows that are there come among the changes of others. Each is as the changes before it say."""
    bare_site.settings.update(SHORT_LEASES)
    database = Database(postgres_url)
    following = followed(bare_site, database, into, request, snapshot="initial", snapshot_rows=7)
    how = "SIGKILL at random steps, " * kills
    row.describe(f"{how}writers busy while rows are read", where=f"rows and {following.where}", database="SQLite")
    database.run(*TABLES, "INSERT INTO orders SELECT n, 'there' FROM generate_series(0, 299) n")
    with writing(database, seeded):
        row.strikes()
        following.apply()
        for _ in range(4):
            if kills:
                bare_site.fault(seeded.choice(STEPS), passes=seeded.randrange(3))
            following.attempt(*seeded.choice(((), ("--window", "2s"))))
    following.check_snapshot(row)
    database.drop_slots()


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize("number", range(4))
def test_a_table_joins_beside_busy_writers(
    bare_site: Site,
    postgres_url: str,
    row: FaultRow,
    seeded: random.Random,
    request: pytest.FixtureRequest,
    number: int,
) -> None:
    """Its rows come among its changes, the first of which are from before the run that hears of it."""
    bare_site.settings.update(SHORT_LEASES)
    database = Database(postgres_url)
    following = followed(bare_site, database, "file", request, snapshot="initial", snapshot_rows=7)
    words = "SIGKILL at random steps, writers busy while a table joins"
    row.describe(words, where=f"rows and {following.where}", database="SQLite")
    database.run(*TABLES, "INSERT INTO orders SELECT n, 'there' FROM generate_series(0, 299) n")
    database.run("CREATE TABLE others (id int PRIMARY KEY)")
    with writing(database, seeded):
        following.begin_without("others")
        row.strikes()
        following.attempts_with_kills(seeded)
    following.check_snapshot(row)
    database.drop_slots()
