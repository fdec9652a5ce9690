"""Engines whose slots are taken when a driver dies, and engines that try a task twice (delivery rules 1 to 3)."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from connect_core import stack
from tests.faults.kit import processes
from tests.faults.kit.checker import EXACT
from tests.faults.kit.engines import Engine
from tests.faults.kit.journeys import (
    TRY_AGAIN,
    Inward,
    Journey,
    Outward,
    made_up_for,
    settled_up,
    start_changed,
)
from tests.faults.kit.processes import ended, stopped_at
from tests.faults.kit.topics import JavaReader
from tests.faults.rows import FaultRow
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]

LONG = {"WAYBILL_LEASE_TTL_S": "120s"}
PATIENT = {"WAYBILL_QUANTUM_S": "20s", "WAYBILL_LEASE_TTL_S": "60s"}
"""For the first job of an engine, which loads everything."""
SHORT = {
    "WAYBILL_QUANTUM_S": "1.5s",
    "WAYBILL_LEASE_TTL_S": "8s",
    "WAYBILL_LEASE_MARGIN_S": "2s",
    "WAYBILL_SEND_TIMEOUT_S": "2s",
}
LANE_S = 6.0
"""A lane's deadline is so long after its lease was renewed."""

WAYS = {"in": Inward, "out": Outward}
CHOICES = [("in", "PostgreSQL"), ("out", "SQLite")]
REFUSED = 6
MakeSite = Callable[..., Site]


@pytest.fixture(scope="module")
def small_engine(worker_folder: Path) -> Iterator[Engine]:
    """One slot: a second lane waits for the first."""
    engine = Engine(worker_folder / "small-engine" / ".waybill", slots=1)
    engine.start()
    yield engine
    stack.down(engine.home)


class Blocker:
    """A connector of the same home whose worker stands still in the only slot until it is told to go on."""

    def __init__(self, site: Site) -> None:
        (site.folder / "blocker.log").write_bytes(b"a line\n")
        site.apply("blocker", {"source": {"file": {"path": "blocker.log"}}, "sink": {"file": {"path": "blocked.log"}}})
        usual = dict(site.settings)
        site.settings.update(LONG)
        site.fault("lane-started", "stop")
        self._driver = site.start("run", "blocker")
        worker = stopped_at(site, "lane-started", self._driver)
        assert worker is not None
        self._worker = worker
        site.settings = usual

    def free_the_slot(self) -> None:
        processes.go_on(self._worker)
        assert ended(self._driver) in (0, 1)  # 1: its own quantum was over when it went on


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize(("way", "database"), CHOICES)
@pytest.mark.parametrize("late", [False, True], ids=["before expiry", "after expiry"])
def test_a_lane_that_was_queued_when_its_driver_died_writes_nothing(
    site_on: MakeSite,
    java_reader: JavaReader,
    small_engine: Engine,
    way: str,
    database: str,
    late: bool,
    row: FaultRow,
) -> None:
    """All slots are taken. The next attempt has taken over when the old lane gets its slot, or the slot comes so late
    that the lane is over."""
    when = "after" if late else "before"
    site = site_on(database, small_engine)
    journey: Journey = WAYS[way](site, java_reader)
    row.describe(f"all slots taken, SIGKILL of the driver, slots freed {when} the lease's expiry", where=journey.where)
    row.database = database
    blocker = Blocker(site)
    if late:
        site.settings.update(SHORT)
    driver = start_queued(journey)
    over = time.monotonic() + LANE_S
    row.strikes()
    processes.kill(driver.pid)
    ended(driver)
    if late:
        processes.wait_for(lambda: time.monotonic() > over, "the end of the lane's time")
        blocker.free_the_slot()
    else:
        second = start_queued(journey)
        blocker.free_the_slot()
        assert ended(second) in (0, *TRY_AGAIN)
    assert made_up_for(journey, row) == EXACT


def start_queued(journey: Journey) -> subprocess.Popen[str]:
    """A run whose first job (a lane, or looking for what is there) waits for a slot."""
    note = journey.site.folder / "queued"
    note.unlink(missing_ok=True)
    driver = start_changed(journey, "queued", str(note))
    processes.wait_for(lambda: note.exists() or driver.poll() is not None, "a job in the queue")
    assert note.exists(), driver.communicate()
    return driver


@pytest.fixture(scope="module")
def repeating_engine(worker_folder: Path) -> Iterator[Engine]:
    """Somebody else's: it tries a task twice."""
    engine = Engine(worker_folder / "repeating-engine" / ".waybill", slots=2, tries=2)
    engine.start()
    yield engine
    stack.down(engine.home)


@pytest.mark.parametrize(("way", "database"), CHOICES)
def test_an_engine_that_tries_tasks_twice_is_refused(
    site_on: MakeSite,
    java_reader: JavaReader,
    repeating_engine: Engine,
    way: str,
    database: str,
    row: FaultRow,
) -> None:
    site = site_on(database, repeating_engine)
    journey: Journey = WAYS[way](site, java_reader)
    row.describe("engine that tries tasks twice: exit code 6", where=journey.where, database=database)
    row.strikes()
    assert "tries a task 2 times" in site.waybill("run", journey.name, code=REFUSED)
    site.waybill("run", journey.name, "--engine", "inline")
    row.moves_again()
    assert settled_up(journey, row) == EXACT


@pytest.mark.parametrize(("way", "database"), CHOICES)
@pytest.mark.fault(costly=True)
def test_a_lane_that_spark_tries_a_second_time_is_refused(
    site_on: MakeSite,
    java_reader: JavaReader,
    repeating_engine: Engine,
    way: str,
    database: str,
    row: FaultRow,
) -> None:
    """Also where nobody has asked the engine whether it does so."""
    site = site_on(database, repeating_engine)
    journey: Journey = WAYS[way](site, java_reader)
    row.describe("SIGKILL of the worker, Spark tries its lane again", where=journey.where, database=database)
    site.settings.update(PATIENT)
    fault = site.fault("batch-written")
    row.strikes()
    driver = start_changed(journey, "trusting")
    _, told = driver.communicate(timeout=60)
    assert driver.returncode == 1
    assert not fault.exists()
    assert "Attempt 1 of a lane was refused" in told
    site.waybill("run", journey.name, "--engine", "inline")
    row.moves_again()
    assert settled_up(journey, row) == EXACT
