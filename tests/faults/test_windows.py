"""SIGKILL of a run that stays, and of its workers, while records trickle in or while nobody sends any."""

from __future__ import annotations

import random
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

import pytest

from connect_core.ledger import Ledger
from connect_core.rocketmq import Client, ClientOptions
from tests.faults.kit import processes
from tests.faults.kit.checker import EXACT
from tests.faults.kit.engines import Engine
from tests.faults.kit.fixtures import MakeJourney, MakeSite
from tests.faults.kit.journeys import (
    TRY_AGAIN,
    WAYS,
    Journey,
    Outward,
    database_of,
    made_up_for,
    receipts_of,
    run_until_done,
    settled_up,
)
from tests.faults.kit.processes import ended, stopped_at, wait_for
from tests.faults.rows import FaultRow
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]

POINTS = {
    "planned": ("after planned", 1),
    "batch-written": ("between two batches", 12),
    "before-receipt": ("after the last write, before the receipt", 2),
    "executed": ("after the receipt, before settle", 1),
    "settled": ("after settle", 1),
}
"""In words, and how often it is passed at least: the first quantum of a run that stays is closed."""
FIRST = 200
EACH = 10
PAUSE_S = 0.05


class Trickle:
    """Feeds a journey a few records at a time, from another thread, while the block lasts."""

    def __init__(self, journey: Journey) -> None:
        self.fed = FIRST
        self._journey = journey
        self._over = threading.Event()

    def more(self) -> None:
        self._journey.feed(self.fed, self.fed + EACH)
        self.fed += EACH

    @contextmanager
    def going_on(self) -> Iterator[None]:
        thread = threading.Thread(target=self._feed)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _feed(self) -> None:
        while not self._over.wait(PAUSE_S):
            self.more()


def made(way: str, site: Site, journey_of: MakeJourney) -> Journey:
    """With short quanta, and one record in the target for a beginning."""
    site.settings |= {"WAYBILL_QUANTUM_S": "1s", "WAYBILL_LINGER_S": "300ms"}
    journey = journey_of(way, site, records=FIRST)
    run_until_done(journey)
    return journey


def arrived(journey: Journey) -> int:
    """While records come: two readers of a topic, one after the other, would not see the same."""
    if isinstance(journey, Outward):
        return sum(map(len, journey.target().values()))
    with Client(ClientOptions(name_servers=tuple(journey.site.name_servers))) as client:
        return sum(seen.end - seen.begin for seen in client.offsets.bounds(journey.site.topic).values())


def open_ranges(journey: Journey) -> list[tuple[int, bool]]:
    with Ledger.open(journey.site.database_url) as ledger:
        uid = ledger.connector(journey.name).uid
        return [(item.range.begin, item.range.live) for item in ledger.open_ranges(uid, "live")]


@pytest.fixture
def journey(request: pytest.FixtureRequest, site_on: MakeSite, own_engine: Engine, journey_of: MakeJourney) -> Journey:
    way, database = request.param
    return made(way, site_on(database, own_engine), journey_of)


def _choices(*kinds: object) -> list[object]:
    """Every one in both directions; the databases take turns."""
    return [
        pytest.param((way, database), *kind, id=f"{way}-{'-'.join(map(str, kind))}-{database}")
        for number, (way, *kind) in enumerate(product(WAYS, *kinds))
        for database in [("PostgreSQL", "SQLite")[number % 2]]
    ]


@pytest.mark.parametrize("way", WAYS)
def test_a_window_under_a_trickle(way: str, site: Site, journey_of: MakeJourney, row: FaultRow) -> None:
    """Nothing breaks: what comes is moved at once, and the window leaves two receipts a partition and nothing open."""
    journey = made(way, site, journey_of)
    row.describe("no fault: records trickle in, and fall silent, while a run stays", where=journey.where)
    receipts = len(receipts_of(journey))
    trickle = Trickle(journey)
    driver = site.start("run", journey.name, "--window", "8s")
    for _ in range(2):
        trickle.more()
        moved = journey.partitions * trickle.fed
        wait_for(
            lambda moved=moved: arrived(journey) >= moved or driver.poll() is not None, "records that came in a window"
        )
    assert driver.poll() is None
    with trickle.going_on():
        assert ended(driver) == 0
    run_until_done(journey)
    assert settled_up(journey, row) == EXACT
    assert open_ranges(journey) == []
    assert len(receipts_of(journey)) - receipts <= journey.partitions * (1 + 2 + 1)


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize(
    ("journey", "step", "victim"), _choices(POINTS, ("driver", "worker", "both")), indirect=["journey"]
)
def test_a_process_that_is_killed_in_a_window_loses_and_repeats_nothing(
    journey: Journey, own_engine: Engine, step: str, victim: str, row: FaultRow, seeded: random.Random
) -> None:
    words, passes = POINTS[step]
    row.describe(f"SIGKILL of {victim} in a window, {words}", where=journey.where, database=database_of(journey.site))
    with Trickle(journey).going_on():
        driver, there = _stopped(journey, step, passes + seeded.randrange(3))
        workers = own_engine.workers() if there == driver.pid else [there]
        row.strikes()
        processes.kill(*{"driver": [driver.pid], "worker": workers, "both": [driver.pid, *workers]}[victim])
        processes.go_on(there)
        if victim == "worker":  # idle workers are replaced, and a task that lost none stays: pausing ends the window
            journey.site.waybill("connectors", "pause", journey.name)
            assert ended(driver) in ((0, *TRY_AGAIN) if there == driver.pid else TRY_AGAIN)
            journey.site.waybill("connectors", "resume", journey.name)
        else:
            assert ended(driver) == -signal.SIGKILL
    assert made_up_for(journey, row) == EXACT
    assert open_ranges(journey) == []


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize(("journey", "then"), _choices(("closed", "window")), indirect=["journey"])
def test_a_run_that_is_killed_while_it_waits_loses_and_repeats_nothing(
    journey: Journey, then: str, row: FaultRow
) -> None:
    """It waits at its source with live ranges open, into which nothing has come."""
    row.describe(
        f"SIGKILL of driver while its source is silent, then a {then} run",
        where=journey.where,
        database=database_of(journey.site),
    )
    trickle = Trickle(journey)
    driver = journey.site.start("run", journey.name, "--window", "60s")
    for _ in range(2):
        trickle.more()
        wait_for(
            lambda: arrived(journey) == journey.partitions * trickle.fed and not _is_open(journey),
            "a quantum that was settled",
        )
    row.strikes()
    processes.kill(driver.pid)
    assert ended(driver) == -signal.SIGKILL
    trickle.more()
    if then == "window":
        assert ended(journey.site.start("run", journey.name, "--window", "5s")) == 0
    else:
        assert made_up_for(journey, row) == EXACT
    assert open_ranges(journey) == []


def _is_open(journey: Journey) -> bool:
    """Whether a partition into which something has come has an open range."""
    told = sum(int(str(receipt["delivered"])) for receipt in receipts_of(journey))
    return told < arrived(journey)


def _stopped(journey: Journey, step: str, passes: int) -> tuple[subprocess.Popen[str], int]:
    """A run in a window, and the pid of the process that stands still at the step in it."""
    journey.site.fault(step, "stop", passes)
    driver = journey.site.start("run", journey.name, "--window", "120s")
    there = stopped_at(journey.site, step, driver)
    assert there is not None, f"the run ended with {driver.poll()} and nobody had come to {step}"
    return driver, there
