"""SIGKILL of driver, worker, both, or the Spark server, at every step of a run and twice in a row."""

from __future__ import annotations

import random
import signal
from itertools import product

import pytest

from tests.faults.kit import processes
from tests.faults.kit.checker import EXACT
from tests.faults.kit.engines import Engine
from tests.faults.kit.fixtures import MakeJourney, MakeSite
from tests.faults.kit.journeys import TRY_AGAIN, WAYS, Journey, begun_and_stopped, database_of, made_up_for
from tests.faults.kit.processes import ended
from tests.faults.rows import FaultRow

pytestmark = [pytest.mark.server, pytest.mark.fault]

POINTS = {
    "before-planned": "before planned",
    "planned": "after planned",
    "batch-written": "between two batches",
    "before-receipt": "after the last write, before the receipt",
    "executed": "after the receipt, before settle",
    "settled": "after settle",
}
NO_WORKER_YET = ("before-planned", "planned", "found")
"""In its first round a driver comes there before its engine has had anything to do for it."""
VICTIMS = ("driver", "worker", "both", "server")
COSTLY = pytest.mark.fault(costly=True)


def strike(journey: Journey, engine: Engine, step: str, victim: str, passes: int, row: FaultRow) -> None:
    """Runs the connector until somebody is at the step, kills the victim there and waits until the driver has ended.

    Where the one at the step is the driver, the workers are those that have worked for it and wait for more.
    """
    driver, there = begun_and_stopped(journey, step, passes)
    workers = engine.workers() if there == driver.pid else [there]
    assert workers or victim in ("driver", "server")
    pids = {"driver": [driver.pid], "worker": workers, "both": [driver.pid, *workers], "server": [engine.pid]}
    row.strikes()
    processes.kill(*pids[victim])
    processes.go_on(there)
    assert ended(driver) in ([-signal.SIGKILL] if victim in ("driver", "both") else [0, *TRY_AGAIN])


@pytest.fixture
def journey(request: pytest.FixtureRequest, site_on: MakeSite, own_engine: Engine, journey_of: MakeJourney) -> Journey:
    way, database = request.param
    return journey_of(way, site_on(database, own_engine))


def _choices() -> list[object]:
    """Every victim at every step in every direction; the databases take turns. A server has to be started again."""
    return [
        pytest.param(
            (way, database),
            step,
            victim,
            id=f"{way}-{step}-{victim}-{database}",
            marks=COSTLY if victim == "server" else (),
        )
        for number, (way, step, victim) in enumerate(product(WAYS, POINTS, VICTIMS))
        for database in [("PostgreSQL", "SQLite")[(number + number // 4) % 2]]
    ]


@pytest.mark.parametrize(("journey", "step", "victim"), _choices(), indirect=["journey"])
def test_a_process_that_is_killed_loses_and_repeats_nothing(
    journey: Journey, own_engine: Engine, step: str, victim: str, row: FaultRow, seeded: random.Random
) -> None:
    row.describe(f"SIGKILL of {victim}, {POINTS[step]}", where=journey.where, database=database_of(journey.site))
    passes = journey.tasks if step in NO_WORKER_YET and victim in ("worker", "both") else seeded.randrange(2)
    strike(journey, own_engine, step, victim, passes, row)
    own_engine.start()
    assert made_up_for(journey, row) == EXACT


def _steps_behind(first: str) -> list[str]:
    """What an attempt comes to; it looks for what is there when the one before it left something open."""
    return [*POINTS, "found"] if first not in ("before-planned", "settled") else list(POINTS)


def _fatal_victims(step: str) -> tuple[str, ...]:
    """Those without whom a run cannot end well: idle workers are replaced."""
    if step in ("batch-written", "before-receipt"):
        return ("driver", "worker", "both")
    return ("driver",) if step in NO_WORKER_YET else ("driver", "both")


def _pairs() -> list[object]:
    databases = ("PostgreSQL", "SQLite")
    return [
        pytest.param((way, databases[number % 2]), id=f"{way}-{number}-{databases[number % 2]}")
        for way, number in product(WAYS, range(6))
    ]


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize("journey", _pairs(), indirect=True)
def test_two_kills_in_a_row_lose_and_repeat_nothing(
    journey: Journey, own_engine: Engine, row: FaultRow, seeded: random.Random
) -> None:
    """The second strikes the attempt that takes over from the first."""
    first = seeded.choice(list(POINTS))
    second = seeded.choice([step for step in _steps_behind(first) if step != first])
    victims = [seeded.choice(_fatal_victims(step)) for step in (first, second)]
    told = " and then ".join(
        f"of {victim}, {POINTS.get(step, 'after scan')}" for step, victim in zip((first, second), victims, strict=True)
    )
    row.describe(f"SIGKILL {told}", where=journey.where, database=database_of(journey.site))
    for step, victim in zip((first, second), victims, strict=True):
        strike(journey, own_engine, step, victim, 0, row)
    assert made_up_for(journey, row) == EXACT
