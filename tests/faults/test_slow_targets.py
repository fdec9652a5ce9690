"""A broker that takes five records a second, while the connector is killed again and again."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable

import pytest

from tests.faults.kit import processes
from tests.faults.kit.checker import EXACT
from tests.faults.kit.journeys import TRY_AGAIN, Inward, begun_and_stopped, made_up_for
from tests.faults.kit.processes import ended
from tests.faults.kit.proxy import RocketMQProxy
from tests.faults.kit.topics import JavaReader
from tests.faults.rows import FaultRow
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]

A_SECOND = 5
RECORD_BYTES = 150_000
"""So large that five make one batch of the sink, of which it hears a second later."""
SETTINGS = {
    "WAYBILL_QUANTUM_S": "1s",
    "WAYBILL_LEASE_TTL_S": "9s",
    "WAYBILL_LEASE_MARGIN_S": "3s",
    "WAYBILL_SEND_TIMEOUT_S": "3s",
}
STEPS = ("planned", "lane-started", "before-receipt", "executed", "settled")
COSTLY = pytest.mark.fault(costly=True)


@pytest.mark.parametrize(
    ("records", "kills", "database"),
    [
        (40, 1, "SQLite"),
        pytest.param(200, 4, "SQLite", marks=COSTLY),
        pytest.param(200, 4, "PostgreSQL", marks=COSTLY),
    ],
)
def test_a_slow_target_is_filled_whatever_is_killed(
    site_on: Callable[..., Site],
    java_reader: JavaReader,
    proxy: RocketMQProxy,
    records: int,
    kills: int,
    database: str,
    row: FaultRow,
    seeded: random.Random,
) -> None:
    """A quantum is much shorter than what is planned: each closes its range where it got to."""
    row.describe(f"{kills} kills of the process that reaches a chosen step, target takes {A_SECOND} records a second")
    row.where, row.database = Inward.where, database
    proxy.seconds_a_record = 1 / A_SECOND
    site = site_on(database)
    site.settings.update(SETTINGS)
    journey = Inward(
        site, java_reader, records=records, record_bytes=RECORD_BYTES, partitions=1, name_servers=[proxy.address]
    )
    for _ in range(kills):
        driver, there = begun_and_stopped(journey, seeded.choice(STEPS), seeded.randrange(3))
        row.strikes()
        processes.kill(there)
        assert ended(driver) in (-signal.SIGKILL, *TRY_AGAIN)
    assert made_up_for(journey, row) == EXACT
