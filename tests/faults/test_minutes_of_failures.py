"""Minutes under load from one cluster to another, while brokers of both and whoever works are killed in turn."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Sequence

import pytest

from connect_core.errors import WaybillError
from tests.faults.kit import processes
from tests.faults.kit.checker import EXACT
from tests.faults.kit.engines import Engine
from tests.faults.kit.fixtures import MakeAcross
from tests.faults.kit.journeys import TRY_AGAIN, Across, run_until_done, settled_up
from tests.faults.kit.processes import ended
from tests.faults.kit.writers import beside
from tests.faults.rows import FaultRow
from tests.servers import RocketMQ

pytestmark = [pytest.mark.server, pytest.mark.fault(costly=True)]


class Trouble:
    """Brokers of both clusters are killed in turn, and between them whoever works for the connector."""

    BROKER_EVERY_S, AWAY_S, TASK_EVERY_S = 15.0, 3.0, 20.0

    def __init__(self, journey: Across, brokers: Sequence[RocketMQ], engine: Engine, chance: random.Random) -> None:
        self.journey, self.brokers, self.engine, self.chance = journey, brokers, engine, chance
        self.fed = journey.records
        self.kills = {"brokers": 0, "tasks": 0}

    def feed(self) -> None:
        """What a producer does not hear of may be stored or not: it is not sent again, and the topic tells."""
        begin, self.fed = self.fed, self.fed + 100
        try:
            self.journey.feed(begin, self.fed)
        except WaybillError:
            time.sleep(0.5)

    def break_a_broker(self) -> None:
        broker = self.brokers[self.kills["brokers"] % len(self.brokers)]
        broker.kill()
        self.kills["brokers"] += 1
        time.sleep(self.AWAY_S)
        broker.start()

    def run(self, seconds: float) -> None:
        """As a scheduler does: one run after the other, each of them killed when its time has come."""
        over = time.monotonic() + seconds
        strike = time.monotonic() + self.TASK_EVERY_S
        while time.monotonic() < over:
            driver = self.journey.site.start("run", self.journey.name, "--window", "10s")
            while driver.poll() is None and time.monotonic() < strike:
                time.sleep(0.05)
            if driver.poll() is None:
                workers = self.engine.workers()
                processes.kill(self.chance.choice([driver.pid, *workers]))
                self.kills["tasks"] += 1
            if time.monotonic() >= strike:
                strike += self.TASK_EVERY_S
            assert ended(driver) in (0, -signal.SIGKILL, *TRY_AGAIN)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("seconds", "database"), [(60, "SQLite"), (300, "PostgreSQL")])
def test_brokers_killed_in_turn_under_load_while_tasks_are_killed(
    across: MakeAcross,
    own_engine: Engine,
    rocketmq: RocketMQ,
    seconds: int,
    database: str,
    row: FaultRow,
    seeded: random.Random,
) -> None:
    journey = across(database, own_engine, records=1_000)
    row.describe(
        f"{seconds} s under load: brokers killed in turn, a driver or worker every 20 s",
        where=journey.where,
        database=database,
    )
    trouble = Trouble(journey, (journey.old.rocketmq, rocketmq), own_engine, seeded)
    row.strikes()
    with beside(trouble.feed, 0.05), beside(trouble.break_a_broker, Trouble.BROKER_EVERY_S):
        trouble.run(seconds)
    for broker in trouble.brokers:
        broker.start()
    run_until_done(journey)
    row.moves_again()
    row.seconds = None  # it moved all the while
    assert min(trouble.kills.values()) >= seconds // 60  # a busy machine starts a broker in half a minute
    assert settled_up(journey, row) == EXACT
