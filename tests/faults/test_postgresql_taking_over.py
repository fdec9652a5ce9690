"""A PostgreSQL is killed, and its streaming standby takes over: tables as the target, and as the source."""

from __future__ import annotations

import json
import random
import shutil
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg2
import pytest

from tests.faults.kit import attempts
from tests.faults.kit.filling import PLACES, TABLES, Filling
from tests.faults.kit.fronts import Front, both_ways
from tests.faults.kit.journeys import SHORT_LEASES, TRY_AGAIN
from tests.faults.kit.processes import LIMIT_S, ended, go_on, stopped_at
from tests.faults.rows import FaultRow
from tests.postgres_standbys import Pair, a_pair
from tests.postgres_tables import Database
from tests.side_by_side import side_by_side
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]


class Address:
    """Of the server that is the primary."""

    def __init__(self, pair: Pair) -> None:
        self.pair, self.front = pair, Front(("127.0.0.1", pair.primary.port), both_ways)
        self.database = pair.database(self.front.port)

    def moves(self) -> None:
        """SIGKILL of the primary; the standby takes over."""
        self.pair.primary.kill()
        self.pair.promote()
        self.front.lead_to(("127.0.0.1", self.pair.standby.port))


@pytest.fixture
def address(worker_folder: Path) -> Iterator[Address]:
    folder = worker_folder / f"standby-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    folder.chmod(0o711)
    with a_pair(folder) as pair:
        made = Address(pair)
        with closing(made.front):
            yield made
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def filling(bare_site: Site, address: Address) -> Filling:
    for table in TABLES:
        columns = "number bigserial, place text, n bigint, v bigint, PRIMARY KEY (place, n)"
        address.database.run(f"CREATE TABLE {table} ({columns})")
    bare_site.settings.update(SHORT_LEASES)
    return Filling(bare_site, "PostgreSQL", address.database, _no_ends)


@contextmanager
def _no_ends(database: Database, seeded: random.Random) -> Iterator[list[int]]:
    yield [0]


@pytest.mark.parametrize("step", ["batch-written", "lane-started", "before-receipt", "executed"])
def test_a_standby_that_has_all_takes_over_from_the_target(
    filling: Filling, address: Address, row: FaultRow, seeded: random.Random, step: str
) -> None:
    row.describe(f"SIGKILL of the server at {step}, its standby takes over", where=filling.where, database="SQLite")
    address.pair.waits_for_the_standby()
    filling.feed(4_000)
    filling.apply()
    filling.site.fault(step, "stop", passes=seeded.randrange(2))
    with filling.start() as driver:
        there = stopped_at(filling.site, step, driver)
        address.moves()
        row.strikes()
        if there is not None:
            go_on(there)
        assert ended(driver, LIMIT_S) in (0, *TRY_AGAIN)
    filling.feed(500)
    filling.run_until_done()
    row.moves_again()
    filling.check(row)


@pytest.mark.parametrize("number", range(4))
@pytest.mark.fault(costly=True)
def test_a_standby_takes_over_at_any_moment(
    filling: Filling, address: Address, row: FaultRow, seeded: random.Random, number: int
) -> None:
    words = "SIGKILL of the server at a random moment, its standby takes over"
    row.describe(words, where=filling.where, database="SQLite")
    address.pair.waits_for_the_standby()
    filling.feed(20_000)
    filling.apply()
    with filling.start() as driver:
        time.sleep(seeded.uniform(0.8, 3))
        address.moves()
        row.strikes()
        assert ended(driver, LIMIT_S) in (0, *TRY_AGAIN)
    filling.feed(500)
    filling.run_until_done()
    row.moves_again()
    filling.check(row)


def test_a_standby_that_lacks_rows_takes_over_from_the_target(
    filling: Filling, address: Address, row: FaultRow
) -> None:
    """Each partition is told of, also where there is nothing to move."""
    row.describe("SIGKILL of the server, a standby that lags takes over", where=filling.where, database="SQLite")
    filling.feed(1_000)
    filling.apply()
    filling.run_until_done()
    address.pair.cut_off()
    filling.feed(500)
    filling.run_until_done()
    address.moves()
    row.strikes()
    there = Counter(place for (place,) in address.database.run("SELECT place FROM t"))
    said = filling.site.waybill("run", "fill", "--engine", "inline", code=5)
    row.moves_again()
    assert there == dict.fromkeys(PLACES, 1_000)
    assert all(place in said for place in PLACES), said


def test_a_standby_that_has_all_takes_over_from_the_source(
    bare_site: Site, address: Address, row: FaultRow, seeded: random.Random
) -> None:
    """Beside writers. A server logs the numbers of a sequence ahead: some are never given out."""
    where = "table of PostgreSQL → file"
    row.describe("SIGKILL of the server, its standby takes over", where=where, database="SQLite")
    bare_site.settings.update(SHORT_LEASES)
    address.pair.waits_for_the_standby()
    database = address.database
    database.run("CREATE TABLE rows (id bigserial PRIMARY KEY, body text)")
    source = database.source("rows", open_transactions_s=5)
    bare_site.apply("copy", {"source": source, "sink": {"file": {"path": "out.jsonl"}}})
    with side_by_side(lambda _, seed, stop: _insert(database, seed, stop), 3, seeded):
        time.sleep(0.5)
        assert attempts.attempt(bare_site, "copy") == 0
        with attempts.start(bare_site, "copy", "--window", "10s") as driver:
            time.sleep(seeded.uniform(1, 3))
            address.moves()
            row.strikes()
            ended(driver, LIMIT_S)
    attempts.run_until_done(bare_site, "copy")
    row.moves_again()
    arrived = Counter(json.loads(line)["id"] for line in (bare_site.folder / "out.jsonl").read_text().splitlines())
    there = Counter(one for (one,) in database.run("SELECT id FROM rows"))
    row.lost, row.repeated = sum((there - arrived).values()), sum((arrived - there).values())
    assert (row.lost, row.repeated) == (0, 0)


def _insert(database: Database, seed: float, stop: threading.Event) -> None:
    chosen = random.Random(seed)
    while not stop.is_set():
        try:
            with closing(database.connected()) as session, session.cursor() as cursor:
                while not stop.wait(chosen.choice((0.0, 0.01))):
                    for _ in range(chosen.randint(1, 4)):
                        cursor.execute("INSERT INTO rows (body) VALUES ('x')")
                    session.commit()
        except psycopg2.Error:
            stop.wait(0.05)
