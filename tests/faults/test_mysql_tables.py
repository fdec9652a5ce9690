"""Files into tables of MySQL, while processes are killed or stand still, and the server ends sessions or is killed."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import pymysql
import pytest

from tests.faults.kit.filling import ROWS, TABLES, Filling, FillingFaults
from tests.faults.kit.filling_several import SeveralFilling, SeveralFillingFaults
from tests.faults.kit.journeys import SHORT_LEASES, TRY_AGAIN
from tests.faults.kit.processes import ended
from tests.faults.rows import FaultRow
from tests.mariadb import Database, MariaDB
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]


@pytest.fixture
def filling(bare_site: Site, mariadb: MariaDB) -> Filling:
    database = Database(mariadb)
    for table in TABLES:
        database.run(
            f"CREATE TABLE {table} (number bigint AUTO_INCREMENT UNIQUE, place varchar(9), n bigint, v bigint,"
            " PRIMARY KEY (place, n))"
        )
    bare_site.settings.update(SHORT_LEASES)
    return Filling(bare_site, "MySQL", database, _killing)


@pytest.fixture
def several(bare_site: Site, mariadb: MariaDB) -> SeveralFilling:
    database = Database(mariadb)
    database.run("CREATE TABLE t (n bigint)", "CREATE TABLE u (n bigint)")
    bare_site.settings.update(SHORT_LEASES)
    lock = f"GET_LOCK('{database.name}', 60)"
    database.run(f"CREATE TRIGGER waits BEFORE INSERT ON t FOR EACH ROW DO {lock}")
    waiting = f"SELECT 1 FROM information_schema.processlist WHERE db = '{database.name}' AND state = 'User lock'"
    return SeveralFilling(bare_site, "MySQL", database, f"DO {lock}", waiting)


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


@pytest.mark.fault(costly=True)  # `make test` has them of PostgreSQL, by the same kit
class TestTheTable(FillingFaults):
    pass


@pytest.mark.parametrize("number", range(4))
def test_the_server_is_killed(
    filling: Filling, mariadb: MariaDB, row: FaultRow, seeded: random.Random, number: int
) -> None:
    row.describe("SIGKILL of the server while rows are written", where=filling.where, database="SQLite")
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


class TestTwoTables(SeveralFillingFaults):
    pass
