"""Files into tables of PostgreSQL, while processes are killed or stand still and the server ends sessions."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.faults.kit.filling import TABLES, Filling, FillingFaults
from tests.faults.kit.filling_several import SeveralFilling, SeveralFillingFaults
from tests.faults.kit.journeys import SHORT_LEASES
from tests.postgres_tables import Database
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]


@pytest.fixture
def filling(bare_site: Site, postgres_url: str) -> Filling:
    database = Database(postgres_url)
    for table in TABLES:
        database.run(f"CREATE TABLE {table} (number bigserial, place text, n bigint, v bigint, PRIMARY KEY (place, n))")
    bare_site.settings.update(SHORT_LEASES)
    return Filling(bare_site, "PostgreSQL", database, _terminating)


@pytest.fixture
def several(bare_site: Site, postgres_url: str) -> SeveralFilling:
    database = Database(postgres_url)
    database.run("CREATE TABLE t (n bigint)", "CREATE TABLE u (n bigint)")
    bare_site.settings.update(SHORT_LEASES)
    waiting = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 't'::regclass"
    return SeveralFilling(bare_site, "PostgreSQL", database, "LOCK TABLE t IN SHARE MODE", waiting)


@contextmanager
def _terminating(database: Database, seeded: random.Random) -> Iterator[list[int]]:
    """The server ends sessions of the sink at random moments, before, in and behind COMMIT; the list says how many."""
    ends, ended_ones = threading.Event(), [0]
    mine = f"datname = '{database.options['database']}' AND application_name = 'waybill'"

    def terminate() -> None:
        while not ends.wait(seeded.uniform(0.01, 0.2)):
            [(count,)] = database.run(f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {mine}")
            ended_ones[0] += count

    thread = threading.Thread(target=terminate)
    thread.start()
    try:
        yield ended_ones
    finally:
        ends.set()
        thread.join()


class TestTheTable(FillingFaults):
    pass


class TestTwoTables(SeveralFillingFaults):
    pass
