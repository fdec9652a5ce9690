"""From one cluster to another while the target has no room for what it is sent, or does not say that it is safe: what
takes long. A target that is busy for a while is in `test_clusters`."""

from __future__ import annotations

import pytest

from tests.faults.kit import processes
from tests.faults.kit.checker import EXACT
from tests.faults.kit.fixtures import MakeAcross
from tests.faults.kit.journeys import (
    TRY_AGAIN,
    begun_and_stopped,
    made_up_for,
    receipts_of,
    run_until_done,
    settled_up,
)
from tests.faults.kit.processes import ended
from tests.faults.kit.refusals import busy
from tests.faults.kit.writers import flood
from tests.faults.rows import FaultRow
from tests.servers import RocketMQ

pytestmark = [pytest.mark.server, pytest.mark.fault(costly=True)]

DATABASES = ("PostgreSQL", "SQLite")
SHORT = {
    "WAYBILL_QUANTUM_S": "3s",
    "WAYBILL_LEASE_TTL_S": "9s",
    "WAYBILL_LEASE_MARGIN_S": "3s",
    "WAYBILL_SEND_TIMEOUT_S": "2s",
}


@pytest.mark.parametrize("database", DATABASES)
def test_a_target_that_stays_busy_ends_the_run(
    across: MakeAcross, rocketmq: RocketMQ, database: str, row: FaultRow
) -> None:
    journey = across(database)
    journey.site.settings.update(SHORT)
    row.describe("target answers SYSTEM_BUSY to every send, for two runs", where=journey.where, database=database)
    driver, there = begun_and_stopped(journey, "batch-written")
    with busy(rocketmq, journey.site.topic):
        row.strikes()
        processes.go_on(there)
        assert ended(driver) in TRY_AGAIN
        assert "busy" in journey.site.waybill("run", journey.name, code=1)
    assert made_up_for(journey, row) == EXACT


def test_a_target_that_drops_what_it_has_no_room_for(across: MakeAcross, rocketmq: RocketMQ, row: FaultRow) -> None:
    """One thread takes sends and one send may wait. When another one comes, RocketMQ forgets the one that waits and
    answers nothing: nobody knows of it until somebody looks."""
    journey = across("SQLite")
    journey.site.settings.update(SHORT)
    row.describe("target overloaded, sends dropped without an answer", where=journey.where, database="SQLite")
    with rocketmq.changed(sendMessageThreadPoolNums="1", sendThreadPoolQueueCapacity="1"):
        row.strikes()
        with flood(rocketmq, f"{journey.site.topic}-flood", 4) as outcomes:
            run_until_done(journey, attempts=30)
            row.moves_again()
        assert outcomes["SendUnknown"] > 0
        assert settled_up(journey, row) == EXACT


@pytest.mark.parametrize("database", DATABASES)
def test_a_target_that_does_not_flush_in_time_has_stored(
    across: MakeAcross, rocketmq: RocketMQ, database: str, row: FaultRow
) -> None:
    """Every batch is answered with `FLUSH_DISK_TIMEOUT`, and is there: to send it again would be to send it twice."""
    journey = across(database)
    row.describe("target answers FLUSH_DISK_TIMEOUT to every send", where=journey.where, database=database)
    with rocketmq.changed(flushDiskType="SYNC_FLUSH", syncFlushTimeout="0"):
        row.strikes()
        run_until_done(journey)
        row.moves_again()
        assert settled_up(journey, row) == EXACT
    told = {place for receipt in receipts_of(journey) for place in receipt["where"]}  # type: ignore[attr-defined]
    assert {place for place in told if place.endswith(" FLUSH_DISK_TIMEOUT")}
