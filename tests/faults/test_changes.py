"""Changes of tables of PostgreSQL, while processes are killed and others write: the target is compared with the table,
and the history of each row with what a trigger of the test has noted."""

from __future__ import annotations

import json
import random
import threading
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg2
import pytest

from tests.faults.kit import attempts
from tests.faults.kit.journeys import SHORT_LEASES
from tests.faults.kit.row_events import contradictions, state_of
from tests.faults.rows import FaultRow
from tests.postgres_tables import Database
from tests.side_by_side import side_by_side
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]

ROWS = 6_000
WRITERS = 6
STEPS = ("batch-written", "found", "planned", "lane-started", "before-receipt", "executed", "settled", "confirmed")
FIELDS = {"id": "int64", "note": "text"}
TABLES = (
    "CREATE TABLE orders (id bigint PRIMARY KEY, note text)",
    "ALTER TABLE orders REPLICA IDENTITY FULL",
    "CREATE TABLE copies (LIKE orders INCLUDING INDEXES)",
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


@dataclass
class Following:
    """The changes of a table into a file, or into another table."""

    site: Site
    database: Database
    into: str
    snapshot: str = "never"
    snapshot_rows: int = 10_000

    def apply(self) -> None:
        sink = self.database.sink("copies", mode="upsert") if self.into == "table" else {"file": {"path": "out.jsonl"}}
        parse = {"parse": {"format": "debezium", "fields": FIELDS}} if self.into == "table" else {}
        limits = {"range_records": 1_500}
        source = self.database.changes(
            "orders",
            every_s=0.05,
            snapshot=self.snapshot,
            snapshot_rows=self.snapshot_rows,
            schemas=self.into == "table",
        )
        self.site.apply("copy", {"source": source, "sink": sink, "limits": limits, **parse})

    def feed(self, count: int, first: int) -> None:
        self.database.run(f"INSERT INTO orders SELECT n, 'x' FROM generate_series({first}, {first + count - 1}) n")

    def attempt(self, *words: str) -> int:
        return attempts.attempt(self.site, "copy", *words)

    def run_until_done(self) -> None:
        attempts.run_until_done(self.site, "copy")

    def check(self, row: FaultRow) -> None:
        row.lost, row.repeated, row.reordered = self.differences()
        assert (row.lost, row.repeated, row.reordered) == (0, 0, 0)
        receipts = self.site.json("receipts", "copy", "--last", "1000")["receipts"]
        row.duplicates = sum(one["possible_duplicates"] for one in receipts)
        assert row.duplicates == 0
        [(changes,)] = self.database.run("SELECT count(*) FROM noted")
        assert sum(one["delivered"] + one["deduplicated"] for one in receipts) == changes

    def differences(self) -> tuple[int, int, int]:
        if self.into == "table":
            [(lost,)] = self.database.run("SELECT count(*) FROM (TABLE orders EXCEPT TABLE copies) d")
            [(more,)] = self.database.run("SELECT count(*) FROM (TABLE copies EXCEPT TABLE orders) d")
            return lost, more, 0
        noted = self.database.run("SELECT op, was, id, note FROM noted ORDER BY number")
        arrived = [_as_noted(line) for line in (self.site.folder / "out.jsonl").read_text().splitlines()]
        lost, more = sorted(set(noted) - set(arrived), key=str), len(arrived) - len(noted)
        return len(lost), more, int(_histories(noted) != _histories(arrived))


def _as_noted(line: str) -> tuple[Any, ...]:
    event = json.loads(line)
    before, after = event["before"] or {}, event["after"] or {}
    return event["op"], before.get("id"), after.get("id"), after.get("note")


def _histories(changes: list[tuple[Any, ...]]) -> dict[Any, list[tuple[Any, ...]]]:
    """By row what happened to it, in order."""
    by_row = defaultdict(list)
    for one in changes:
        for number in {one[1], one[2]} - {None}:
            by_row[number].append(one)
    return by_row


@pytest.fixture(params=["file", "table"])
def following(bare_site: Site, postgres_url: str, request: pytest.FixtureRequest) -> Iterator[Following]:
    bare_site.settings.update(SHORT_LEASES)
    made = Following(bare_site, Database(postgres_url), request.param)
    made.database.run(*TABLES)
    made.apply()
    assert made.attempt() == 0
    yield made
    made.database.drop_slots()


@pytest.mark.parametrize("step", STEPS)
def test_a_process_killed_at_a_step(following: Following, row: FaultRow, seeded: random.Random, step: str) -> None:
    row.describe(f"SIGKILL at {step}", where=f"changes of PostgreSQL → {following.into}", database="SQLite")
    following.feed(ROWS // 2, 1)
    following.feed(ROWS // 2, 1 + ROWS // 2)
    following.site.fault(step, passes=seeded.randrange(2))
    following.attempt()
    row.strikes()
    following.feed(500, 1 + ROWS)
    following.run_until_done()
    row.moves_again()
    following.check(row)


@pytest.mark.parametrize("window", [False, True])
@pytest.mark.fault(costly=True)
def test_kills_beside_busy_writers(following: Following, row: FaultRow, seeded: random.Random, window: bool) -> None:
    words = ("--window", "4s") if window else ()
    where = f"changes of PostgreSQL → {following.into}"
    row.describe(f"SIGKILL at random steps, writers busy{', windows' * window}", where=where, database="SQLite")
    with writing(following.database, seeded):
        row.strikes()
        for _ in range(5):
            following.site.fault(seeded.choice(STEPS), passes=seeded.randrange(2))
            following.attempt(*words)
    following.run_until_done()
    row.moves_again()
    following.check(row)


@pytest.mark.fault(costly=True)
def test_connections_cut_beside_busy_writers(following: Following, row: FaultRow, seeded: random.Random) -> None:
    where = f"changes of PostgreSQL → {following.into}"
    row.describe("all sessions of ours terminated, writers busy", where=where, database="SQLite")
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
    following.run_until_done()
    row.moves_again()
    following.check(row)


@pytest.mark.parametrize("into", ["file", "table"])
@pytest.mark.parametrize("kills", [False, True])
def test_a_snapshot_beside_busy_writers(
    bare_site: Site, postgres_url: str, row: FaultRow, seeded: random.Random, into: str, kills: bool
) -> None:
    """Rows that are there come among the changes of others. Each is as the changes before it say."""
    how = "SIGKILL at random steps, " * kills
    where = f"rows and changes of PostgreSQL → {into}"
    row.describe(f"{how}writers busy while rows are read", where=where, database="SQLite")
    bare_site.settings.update(SHORT_LEASES)
    database = Database(postgres_url)
    following = Following(bare_site, database, into, snapshot="initial", snapshot_rows=7)
    database.run(*TABLES, "INSERT INTO orders SELECT n, 'there' FROM generate_series(0, 299) n")
    with writing(database, seeded):
        row.strikes()
        following.apply()
        for _ in range(4):
            if kills:
                bare_site.fault(seeded.choice(STEPS), passes=seeded.randrange(3))
            following.attempt(*seeded.choice(((), ("--window", "2s"))))
    following.run_until_done()
    row.moves_again()
    if into == "file":
        lines = (bare_site.folder / "out.jsonl").read_text().splitlines()
        state = state_of(lines)
        there = dict(database.run("TABLE orders"))
        row.lost, row.repeated = len(there.items() - state.items()), len(state.items() - there.items())
        row.reordered = contradictions(lines)
        assert any('"op":"r"' in line for line in lines)
    else:
        row.lost, row.repeated, row.reordered = following.differences()
    database.drop_slots()
    assert (row.lost, row.repeated, row.reordered) == (0, 0, 0)
