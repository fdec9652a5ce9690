"""Files into tables of SQLite, and rows of these into files, while processes are killed or stand still, and other
programs write the file."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from tests.faults.kit import attempts
from tests.faults.kit.filling import ROWS, TABLES, Filling, FillingFaults
from tests.faults.kit.journeys import SHORT_LEASES, TRY_AGAIN
from tests.faults.kit.processes import ended
from tests.faults.rows import FaultRow
from tests.site import Site
from tests.sqlite_files import Database

pytestmark = pytest.mark.fault


@pytest.fixture
def filling(bare_site: Site) -> Filling:
    database = Database(bare_site.folder / "shop.db")
    for table in TABLES:
        database.run(
            f"CREATE TABLE {table} (number INTEGER PRIMARY KEY AUTOINCREMENT, place TEXT, n BIGINT, v BIGINT,"
            " UNIQUE (place, n))"
        )
    bare_site.settings.update(SHORT_LEASES)
    refusing = "CREATE TRIGGER refuses BEFORE INSERT ON t WHEN NEW.n % 40 = 0 BEGIN SELECT RAISE(ABORT, 'refused'); END"
    return Filling(bare_site, "SQLite", database, _locking, refusing=refusing)


@contextmanager
def _locking(database: Database, seeded: random.Random) -> Iterator[list[int]]:
    """Another program has the file at random moments, sometimes for longer than anybody waits."""
    ends, taken = threading.Event(), [0]

    def lock() -> None:
        with closing(database.connected()) as other:
            while not ends.wait(seeded.uniform(0, 0.2)):
                other.execute("BEGIN IMMEDIATE")
                taken[0] += 1
                time.sleep(seeded.choice([0.01, 0.1, 0.5, 3.0]))
                other.execute("ROLLBACK")

    thread = threading.Thread(target=lock)
    thread.start()
    try:
        yield taken
    finally:
        ends.set()
        thread.join()


class TestTheTable(FillingFaults):
    test_the_server_ends_sessions = None  # there is no server

    @pytest.mark.parametrize(
        "number", [0, *(pytest.param(one, marks=pytest.mark.fault(costly=True)) for one in (1, 2))]
    )
    def test_another_program_has_the_file(
        self, filling: Filling, row: FaultRow, seeded: random.Random, number: int
    ) -> None:
        row.describe("the file is locked by another program at random", where=filling.where, database="SQLite")
        filling.feed(ROWS)
        filling.apply()
        row.strikes()
        with filling.ending_sessions(filling.database, seeded) as taken:
            for _ in range(4):
                with filling.start() as driver:
                    assert ended(driver) in (0, *TRY_AGAIN)
                filling.feed(500)
        filling.run_until_done()
        row.moves_again()
        assert taken[0] > 0
        filling.check(row)


SOURCE_STEPS = ("planned", "lane-started", "batch-written", "before-receipt", "settled")


@pytest.mark.parametrize("step", [SOURCE_STEPS[2], *SOURCE_STEPS[:2], *SOURCE_STEPS[3:]])
def test_rows_are_read_while_writers_are_busy(bare_site: Site, row: FaultRow, seeded: random.Random, step: str) -> None:
    """Several programs, of whose transactions some are rolled back."""
    row.describe(f"SIGKILL at {step}, beside busy writers", where="table of SQLite → file", database="SQLite")
    bare_site.settings.update(SHORT_LEASES)
    database = Database(bare_site.folder / "shop.db")
    database.run("PRAGMA journal_mode = WAL", "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, w INTEGER)")
    sink = {"file": {"path": "out.jsonl", "format": "lines"}}
    bare_site.apply("read", {"source": database.source(table="t"), "sink": sink, "limits": {"range_records": 300}})
    ends, seeds = threading.Event(), [seeded.random() for _ in range(3)]

    def write(seed: float) -> None:
        mine = random.Random(seed)
        with closing(database.connected()) as connection:
            while not ends.wait(mine.uniform(0, 0.01)):
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany("INSERT INTO t (w) VALUES (?)", [(one,) for one in range(mine.randrange(1, 40))])
                connection.execute(mine.choice(["COMMIT", "COMMIT", "ROLLBACK"]))

    threads = [threading.Thread(target=write, args=(seed,)) for seed in seeds]
    for thread in threads:
        thread.start()
    try:
        for _ in range(2):
            bare_site.fault(step, passes=seeded.randrange(2))
            with attempts.start(bare_site, "read") as driver:
                ended(driver)
            row.strikes()
    finally:
        ends.set()
        for thread in threads:
            thread.join()
    attempts.run_until_done(bare_site, "read")
    row.moves_again()
    there = [f'{{"id":{number},"w":{w}}}' for number, w in database.run("SELECT id, w FROM t ORDER BY id")]
    found = (bare_site.folder / "out.jsonl").read_text().splitlines()
    row.lost, row.repeated = len(set(there) - set(found)), len(found) - len(set(found))
    assert found == there
    assert len(there) > 100
