"""Files into a table of MySQL, while processes are killed or stand still, and the server ends sessions or is killed:
the table is compared row by row with what was written into the files, by the driver of the database alone.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import pymysql
import pytest

from tests.faults.kit.filling import ATTEMPTS, ROWS, STEPS, Filling
from tests.faults.kit.journeys import SHORT_LEASES, TRY_AGAIN
from tests.faults.kit.processes import LIMIT_S, ended, go_on, is_alive, stopped_at, wait_for
from tests.faults.rows import FaultRow
from tests.mariadb import Database, MariaDB
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]


@pytest.fixture
def filling(bare_site: Site, mariadb: MariaDB) -> Filling:
    database = Database(mariadb)
    database.run(
        "CREATE TABLE t (number bigint AUTO_INCREMENT UNIQUE, place varchar(9), n bigint, v bigint,"
        " PRIMARY KEY (place, n))"
    )
    bare_site.settings.update(SHORT_LEASES)
    return Filling(bare_site, database)


@contextmanager
def _killing(database: Database, seeded: random.Random) -> Iterator[list[int]]:
    """The server ends sessions of the sink at random moments, before, in and behind COMMIT; the list says how many."""
    ends, ended_ones = threading.Event(), [0]
    mine = f"SELECT id FROM information_schema.processlist WHERE db = '{database.name}' AND id <> connection_id()"

    def kill() -> None:
        with closing(database.connected()) as connection, connection.cursor() as killing:
            while not ends.wait(seeded.uniform(0, 0.008)):  # a session of the sink is there for 20 ms
                killing.execute(mine)
                for (session,) in killing.fetchall():
                    with suppress(pymysql.Error):  # it has ended by itself
                        killing.execute(f"KILL {session}")
                        ended_ones[0] += 1

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield ended_ones
    finally:
        ends.set()
        thread.join()


@pytest.mark.parametrize("step", [STEPS[3], *STEPS[:3], *STEPS[4:]])
def test_a_process_killed_at_a_step(filling: Filling, row: FaultRow, seeded: random.Random, step: str) -> None:
    row.describe(f"SIGKILL at {step}", where="file → MySQL", database="SQLite")
    filling.feed(ROWS)
    filling.apply()
    filling.site.fault(step, passes=seeded.randrange(2))
    with filling.start() as driver:
        ended(driver)
    row.strikes()
    filling.feed(500)
    filling.run_until_done()
    row.moves_again()
    filling.check(row)


@pytest.mark.parametrize("step", ["batch-written", "before-receipt", "lane-started"])
def test_a_process_that_stood_still_writes_nothing_when_it_wakes_up(filling: Filling, row: FaultRow, step: str) -> None:
    row.describe(f"SIGSTOP at {step} past the deadline", where="file → MySQL", database="SQLite")
    filling.feed(ROWS)
    filling.apply()
    filling.site.fault(step, "stop")
    with filling.start() as driver:
        there = stopped_at(filling.site, step, driver)
        assert there is not None
        row.strikes()
        filling.run_until_done()
        row.moves_again()
        go_on(there)
        wait_for(lambda: there == driver.pid or not is_alive(there), "the end of the worker")
        assert ended(driver, LIMIT_S) in (0, *TRY_AGAIN)
    filling.feed(500)
    filling.run_until_done()
    filling.check(row)


@pytest.mark.parametrize("number", range(4))
def test_the_server_ends_sessions(filling: Filling, row: FaultRow, seeded: random.Random, number: int) -> None:
    row.describe("sessions ended by the server at random", where="file → MySQL", database="SQLite")
    filling.feed(ROWS)
    filling.apply()
    row.strikes()
    with _killing(filling.database, seeded) as killed:
        for attempt in range(ATTEMPTS):
            if attempt >= 4 and killed[0]:
                break
            with filling.start() as driver:
                assert ended(driver) in (0, *TRY_AGAIN)
            filling.feed(2_000)
    filling.run_until_done()
    row.moves_again()
    assert killed[0] > 0
    filling.check(row)


@pytest.mark.parametrize("number", range(4))
def test_the_server_is_killed(
    filling: Filling, mariadb: MariaDB, row: FaultRow, seeded: random.Random, number: int
) -> None:
    row.describe("SIGKILL of the server while rows are written", where="file → MySQL", database="SQLite")
    filling.feed(ROWS)
    filling.apply()
    for _ in range(3):
        with filling.start() as driver:
            time.sleep(seeded.uniform(0.5, 2.0))
            mariadb.kill()
            row.strikes()
            time.sleep(seeded.uniform(0, 0.5))
            mariadb.start()
            assert ended(driver) in (0, *TRY_AGAIN)
        filling.feed(1_000)
    filling.run_until_done()
    row.moves_again()
    filling.check(row)


@pytest.mark.parametrize("number", range(4))
def test_changes_with_kills(filling: Filling, row: FaultRow, seeded: random.Random, number: int) -> None:
    """Inserts, updates, also of keys, and deletes of few keys: the table ends as the rows would have."""
    row.describe("SIGKILL at random steps, with change events", where="file → MySQL, upsert", database="SQLite")
    filling.feed_changes(ROWS, seeded)
    filling.apply(mode="upsert")
    row.strikes()
    for _ in range(3):
        filling.site.fault(seeded.choice(STEPS[2:]), passes=seeded.randrange(3))
        with filling.start() as driver:
            ended(driver)
        filling.feed_changes(300, seeded)
    filling.run_until_done()
    row.moves_again()
    filling.check_changes(row)


@pytest.mark.parametrize("number", range(4))
def test_refused_rows_with_kills(filling: Filling, row: FaultRow, seeded: random.Random, number: int) -> None:
    """Each of them is a dead letter of the attempt that has a receipt, whichever attempts were refused it before."""
    row.describe("SIGKILL at random steps, with rows that it refuses", where="file → MySQL", database="SQLite")
    filling.database.run("ALTER TABLE t ADD CHECK (n % 40 <> 0)")
    filling.feed(2_000)
    filling.apply(errors={"tolerance": "all"})
    row.strikes()
    for _ in range(3):
        filling.site.fault(seeded.choice(STEPS[2:]), passes=seeded.randrange(3))
        with filling.start() as driver:
            ended(driver)
        filling.feed(300)
    filling.run_until_done()
    row.moves_again()
    filling.check_refused(row, 40)
