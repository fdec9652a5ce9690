"""Packed transactions of MySQL, larger than a range, while processes are killed that read them."""

from __future__ import annotations

import random
from contextlib import closing

import pytest

from tests.faults.kit.following import STEPS, Following, followed
from tests.faults.kit.journeys import SHORT_LEASES
from tests.faults.rows import FaultRow
from tests.faults.test_mysql_changes import TABLES
from tests.mariadb import Database, MariaDB
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]

ROWS = "WITH RECURSIVE s(n) AS (SELECT {0} UNION ALL SELECT n + 1 FROM s WHERE n < {0} + {1} - 1) SELECT n, 'x' FROM s"


def feed(database: Database, first: int, count: int) -> None:
    """One packed transaction, with what it takes back of itself."""
    with closing(database.connected()) as connection, connection.cursor() as session:
        session.execute("SET SESSION binlog_transaction_compression = ON, cte_max_recursion_depth = 1000000")
        connection.begin()
        session.execute(f"INSERT INTO orders {ROWS.format(first, count)}")
        session.execute("SAVEPOINT a")
        session.execute("DELETE FROM orders WHERE id % 3 = 0")
        session.execute("ROLLBACK TO a")
        session.execute(f"UPDATE orders SET note = 'y' WHERE id >= {first} AND id % 2 = 0")
        connection.commit()


@pytest.fixture(params=["file", "table"])
def following(bare_site: Site, mysql: MariaDB, request: pytest.FixtureRequest) -> Following:
    bare_site.settings.update(SHORT_LEASES)
    made = followed(bare_site, Database(mysql), request.param, request)
    made.database.run(*TABLES)
    made.apply()
    assert made.attempt() == 0
    return made


@pytest.mark.parametrize("step", STEPS)
def test_a_process_killed_within_a_packed_transaction(
    following: Following, row: FaultRow, seeded: random.Random, step: str
) -> None:
    """Its ranges end within it."""
    where = following.where.replace("MariaDB", "MySQL")
    row.describe(f"SIGKILL at {step}, within a packed transaction", where=where, database="SQLite")
    feed(following.database, 1, 4_000)
    following.site.fault(step, passes=seeded.randrange(4))
    following.attempt()
    row.strikes()
    feed(following.database, 4_001, 500)
    following.check(row)
