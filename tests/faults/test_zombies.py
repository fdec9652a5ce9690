"""Processes that stand still past their deadline and wake up when another attempt has done their work; runs that are
started twice."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.faults.kit import processes
from tests.faults.kit.checker import EXACT
from tests.faults.kit.fixtures import MakeJourney, MakeSite
from tests.faults.kit.journeys import (
    SHORT_LEASES,
    TRY_AGAIN,
    WAYS,
    Journey,
    begun_and_stopped,
    run_until_done,
    settled_up,
)
from tests.faults.kit.processes import ended, stopped_at
from tests.faults.rows import FaultRow

pytestmark = [pytest.mark.server, pytest.mark.fault]

"""A lane's deadline is 4.5 s after its lease was renewed."""

POINTS = (
    *("leased", "before-planned", "planned", "executed", "settled", "confirmed"),
    *("lane-started", "batch-written", "before-receipt"),
)
WORKERS_POINTS = POINTS[6:]
FRESH = 500


@pytest.fixture
def short_journey(site_on: MakeSite, journey_of: MakeJourney) -> Callable[..., Journey]:
    def make(way: str, database: str, **options: int) -> Journey:
        site = site_on(database)
        site.settings.update(SHORT_LEASES)
        return journey_of(way, site, **options)

    return make


@pytest.mark.parametrize("number", range(50))
def test_a_process_stopped_past_its_deadline_changes_nothing_when_it_wakes_up(
    short_journey: Callable[..., Journey], number: int, row: FaultRow, seeded: random.Random
) -> None:
    """A worker does not wake up: the kernel has killed it. A driver finds its lease taken. With SQLite it has one task:
    another one would stand still with it, perhaps while it writes to the ledger, and nobody else can write then."""
    database = ("PostgreSQL", "SQLite")[number // 2 % 2]
    alone = {"tasks": 1} if database == "SQLite" else {}
    journey = short_journey(list(WAYS)[number % 3], database, **alone)
    step, passes = seeded.choice(POINTS), seeded.randrange(2)
    driver, there = begun_and_stopped(journey, step, 0 if step == "leased" else passes)
    who = "driver" if there == driver.pid else "worker"
    row.describe(f"SIGSTOP of the {who} at {step} past its deadline", where=journey.where, database=database)
    row.strikes()
    run_until_done(journey)
    row.moves_again()
    if who == "worker":
        processes.wait_for(lambda: not processes.is_alive(there), "the worker's end by its timer")
    processes.go_on(there)
    assert ended(driver) in (0, *TRY_AGAIN)  # 0: woken up behind the last settle, it found nothing to do
    journey.feed(journey.records, journey.records + FRESH)
    run_until_done(journey)
    assert settled_up(journey, row) == EXACT


@pytest.mark.parametrize("database", ["PostgreSQL", "SQLite"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("step", WORKERS_POINTS)
def test_a_worker_that_stands_still_outlives_its_killed_driver_and_does_nothing_any_more(
    short_journey: Callable[..., Journey], way: str, step: str, database: str, row: FaultRow
) -> None:
    """The next run waits until it is gone, then finds what it wrote."""
    journey = short_journey(way, database)
    row.describe(f"SIGSTOP of the worker at {step}, then SIGKILL of the driver", where=journey.where, database=database)
    driver, there = begun_and_stopped(journey, step)
    assert there != driver.pid
    row.strikes()
    processes.kill(driver.pid)
    ended(driver)
    run_until_done(journey)
    row.moves_again()
    assert not processes.is_alive(there)
    assert settled_up(journey, row) == EXACT


@pytest.mark.parametrize("database", ["PostgreSQL", "SQLite"])
@pytest.mark.parametrize("way", WAYS)
def test_a_run_that_is_started_twice_is_told_that_somebody_is_at_work(
    site_on: MakeSite, journey_of: MakeJourney, way: str, database: str, row: FaultRow
) -> None:
    """Of one task: another one would stand still with it, anywhere, and hold the ledger or be taken over."""
    journey = journey_of(way, site_on(database), tasks=1)
    row.describe("the same run started twice", where=journey.where, database=database)
    first, there = begun_and_stopped(journey, "planned")
    assert there == first.pid
    row.strikes()
    second = journey.site.start("run", journey.name)
    assert second.stderr is not None
    assert "waiting for" in second.stderr.readline()
    journey.site.fault("executed", "stop")  # the first must not end before the second has seen it alive
    processes.go_on(there)
    assert ended(second) == 4
    assert stopped_at(journey.site, "executed", first) == first.pid
    processes.go_on(first.pid)
    assert ended(first) == 0
    row.moves_again()
    assert settled_up(journey, row) == EXACT
