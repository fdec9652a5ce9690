"""The line between a driver and a worker that stays: cut at each step, and one side that stands still for too long."""

from __future__ import annotations

import signal
import time
from itertools import product

import pytest

from tests.faults.kit import processes
from tests.faults.kit.checker import EXACT
from tests.faults.kit.engines import Engine
from tests.faults.kit.fixtures import MakeJourney, MakeSite
from tests.faults.kit.journeys import TRY_AGAIN, WAYS, Journey, database_of, made_up_for, run_until_done, start_changed
from tests.faults.kit.processes import ended, stopped_at
from tests.faults.rows import FaultRow

pytestmark = [pytest.mark.server, pytest.mark.fault]

CUTS = {
    "before": "before a lane is sent",
    "halfway": "in the middle of a lane that is sent",
    "meanwhile": "while the lane is at work",
    "answer": "when its answer has come",
}
RECORDS = 200
MORE = 40_000
LEASE_S = 6
SHORT = {
    "WAYBILL_QUANTUM_S": "1s",
    "WAYBILL_LEASE_TTL_S": f"{LEASE_S}s",
    "WAYBILL_LEASE_MARGIN_S": "2s",
    "WAYBILL_SEND_TIMEOUT_S": "2s",
    "WAYBILL_LINGER_S": "300ms",
}
DATABASES = ("PostgreSQL", "SQLite")


@pytest.fixture
def journey(request: pytest.FixtureRequest, site_on: MakeSite, own_engine: Engine, journey_of: MakeJourney) -> Journey:
    way, database = request.param
    site = site_on(database, own_engine)
    site.settings |= SHORT
    made = journey_of(way, site, records=RECORDS)
    run_until_done(made)
    made.feed(RECORDS, MORE)
    return made


def _choices(*kinds: str) -> list[object]:
    return [
        pytest.param((way, DATABASES[number % 2]), kind, id=f"{way}-{kind}-{DATABASES[number % 2]}")
        for number, (way, kind) in enumerate(product(WAYS, kinds))
    ]


@pytest.mark.parametrize(("journey", "when"), _choices(*CUTS), indirect=["journey"])
def test_a_line_that_is_cut_loses_and_repeats_nothing(journey: Journey, when: str, row: FaultRow) -> None:
    row.describe(f"a worker's line is cut {CUTS[when]}", where=journey.where, database=database_of(journey.site))
    row.strikes()
    driver = start_changed(journey, "cutting", when, "1")
    _, told = driver.communicate(timeout=120)
    assert driver.returncode in TRY_AGAIN, told
    assert made_up_for(journey, row) == EXACT


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize(("journey", "who"), _choices("driver", "worker"), indirect=["journey"])
def test_a_side_of_a_line_that_stands_still_past_its_lease_writes_nothing_when_it_goes_on(
    journey: Journey, who: str, row: FaultRow
) -> None:
    """In the middle of a lane. The kernel has killed the worker when its time was over; the driver learns that when it
    goes on, and somebody else has its lease by then."""
    row.describe(
        f"SIGSTOP of {who} for longer than its lease, in the middle of a lane that a worker who stays was sent",
        where=journey.where,
        database=database_of(journey.site),
    )
    site = journey.site
    site.fault("batch-written", "stop")
    driver = site.start("run", journey.name)
    worker = stopped_at(site, "batch-written", driver)
    assert worker is not None
    row.strikes()
    if who == "driver":
        driver.send_signal(signal.SIGSTOP)
        processes.go_on(worker)
    time.sleep(LEASE_S + 1)
    if who == "driver":
        driver.send_signal(signal.SIGCONT)
    else:
        processes.go_on(worker)
    assert ended(driver) in (0, *TRY_AGAIN)
    assert made_up_for(journey, row) == EXACT
