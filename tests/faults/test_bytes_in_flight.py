"""Batches that are under way to the broker when their sender dies, or whose answer never comes (delivery rule 4)."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.faults.kit import processes
from tests.faults.kit.checker import EXACT
from tests.faults.kit.journeys import (
    TRY_AGAIN,
    Inward,
    begun_and_stopped,
    begun_and_trapped,
    run_until_done,
    settled_up,
)
from tests.faults.kit.processes import ended
from tests.faults.kit.proxy import RocketMQProxy, Trap, kill_sender, sends_to
from tests.faults.kit.topics import JavaReader
from tests.faults.rows import FaultRow
from tests.servers import RocketMQ
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]

DATABASES = ("PostgreSQL", "SQLite")
SHORT = {
    "WAYBILL_QUANTUM_S": "1.5s",
    "WAYBILL_LEASE_TTL_S": "6.5s",
    "WAYBILL_LEASE_MARGIN_S": "2s",
    "WAYBILL_SEND_TIMEOUT_S": "2s",
}
HELD = "a request was held until its sender was dead and its work taken over"
BATCH = 1_000
"""What the sink sends at once."""
MakeSite = Callable[..., Site]


def journey_through(proxy: RocketMQProxy, site: Site, reader: JavaReader) -> Inward:
    site.settings.update(SHORT)
    return Inward(site, reader, records=4_000, range_records=2_500, partitions=1, name_servers=[proxy.address])


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("passes", [0, 1, 2])
def test_a_worker_killed_right_after_a_send_repeats_nothing(
    site_on: MakeSite,
    java_reader: JavaReader,
    proxy: RocketMQProxy,
    passes: int,
    database: str,
    row: FaultRow,
) -> None:
    """Its last batch reaches the broker when it is dead already."""
    row.describe("SIGKILL of the worker right after a send", where=Inward.where, database=database)
    journey = journey_through(proxy, site_on(database), java_reader)
    trap = proxy.set(Trap(sends_to(journey.site.topic), passes, first=kill_sender))
    driver = begun_and_trapped(journey, trap)
    row.strikes()
    assert ended(driver) in TRY_AGAIN
    run_until_done(journey)
    row.moves_again()
    assert settled_up(journey, row) == EXACT


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("cut", [False, True], ids=["silent", "cut"])
def test_an_answer_that_never_comes_repeats_nothing(
    site_on: MakeSite, java_reader: JavaReader, proxy: RocketMQProxy, cut: bool, database: str, row: FaultRow
) -> None:
    how = "the line is cut instead" if cut else "the line stays open"
    row.describe(f"answer to a send swallowed, {how}", where=Inward.where, database=database)
    journey = journey_through(proxy, site_on(database), java_reader)
    trap = proxy.set(Trap(sends_to(journey.site.topic), passes=1, answer=False, cut=cut))
    driver = begun_and_trapped(journey, trap)
    row.strikes()
    assert ended(driver) in TRY_AGAIN
    run_until_done(journey)
    row.moves_again()
    assert settled_up(journey, row) == EXACT


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("killed", [False, True], ids=["given up", "killed"])
def test_a_request_that_arrives_before_the_next_attempt_looks_is_found(
    site_on: MakeSite, java_reader: JavaReader, proxy: RocketMQProxy, killed: bool, database: str, row: FaultRow
) -> None:
    row.describe(
        f"send held back, its sender {'killed' if killed else 'gives up'}; forwarded before the next attempt looks",
        where=Inward.where,
        database=database,
    )
    journey = journey_through(proxy, site_on(database), java_reader)
    held = hold(proxy, journey, killed)
    row.strikes()
    held.release()
    run_until_done(journey)
    row.moves_again()
    assert settled_up(journey, row) == EXACT


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("killed", [False, True], ids=["given up", "killed"])
def test_a_request_that_arrives_after_the_look_is_repeated_and_told_as_surplus(
    site_on: MakeSite, java_reader: JavaReader, proxy: RocketMQProxy, killed: bool, database: str, row: FaultRow
) -> None:
    """The stated condition. The sink finds the batch by the jump of the offsets that its own batches get."""
    row.describe(
        f"send held back, its sender {'killed' if killed else 'gives up'}; forwarded behind the next attempt's look",
        where=Inward.where,
        database=database,
    )
    row.condition = HELD
    journey = journey_through(proxy, site_on(database), java_reader)
    held = hold(proxy, journey, killed)
    row.strikes()
    driver, there = begun_and_stopped(journey, "lane-started")
    held.release()
    processes.go_on(there)
    assert ended(driver) in (0, *TRY_AGAIN)
    run_until_done(journey)
    row.moves_again()
    assert settled_up(journey, row) == EXACT._replace(repeated=BATCH, surplus=BATCH)


@pytest.mark.parametrize("database", DATABASES)
def test_a_request_that_arrives_between_two_batches_is_repeated_and_told_as_surplus(
    site_on: MakeSite, java_reader: JavaReader, proxy: RocketMQProxy, database: str, row: FaultRow
) -> None:
    row.describe("send held back; forwarded between two of the next attempt's batches", where=Inward.where)
    row.condition, row.database = HELD, database
    journey = journey_through(proxy, site_on(database), java_reader)
    held = hold(proxy, journey, killed=False)
    row.strikes()
    second = proxy.set(Trap(sends_to(journey.site.topic), passes=1, forward=False))
    driver = begun_and_trapped(journey, second)
    held.release()
    second.release()
    assert ended(driver) in (0, *TRY_AGAIN)
    run_until_done(journey)
    row.moves_again()
    assert settled_up(journey, row) == EXACT._replace(repeated=BATCH, surplus=BATCH)


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("killed_again", [False, True], ids=["", "killed again"])
def test_a_request_that_arrives_after_everything_was_settled_is_told_by_the_next_receipt(
    site_on: MakeSite, java_reader: JavaReader, proxy: RocketMQProxy, killed_again: bool, database: str, row: FaultRow
) -> None:
    more = ", then SIGKILL of the driver in the next range" if killed_again else ""
    row.describe(f"send held back; forwarded when the next attempt has settled all{more}", where=Inward.where)
    row.condition, row.database = HELD, database
    journey = journey_through(proxy, site_on(database), java_reader)
    held = hold(proxy, journey, killed=False)
    row.strikes()
    run_until_done(journey)
    assert settled_up(journey, row) == EXACT
    held.release()
    assert settled_up(journey, row) == EXACT._replace(repeated=BATCH)
    journey.feed(journey.records, journey.records + BATCH)
    if killed_again:
        journey.site.fault("executed")
        assert ended(journey.site.start("run", journey.name)) == -signal.SIGKILL
    run_until_done(journey)
    row.moves_again()
    assert settled_up(journey, row) == EXACT._replace(repeated=BATCH, surplus=BATCH)


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("passes", [0, 1])
def test_a_broker_that_stands_still_with_a_send_in_flight_repeats_nothing(
    site_on: MakeSite,
    java_reader: JavaReader,
    proxy: RocketMQProxy,
    rocketmq: RocketMQ,
    passes: int,
    database: str,
    row: FaultRow,
) -> None:
    """What it had accepted is stored, or dropped, before the next attempt's barrier."""
    row.describe("SIGSTOP of the broker with a send in flight, then SIGCONT", where=Inward.where, database=database)
    journey = journey_through(proxy, site_on(database), java_reader)
    with ExitStack() as paused:
        trap = Trap(sends_to(journey.site.topic), passes, first=lambda _: paused.enter_context(rocketmq.paused()))
        proxy.set(trap)
        driver = begun_and_trapped(journey, trap)
        row.strikes()
        assert ended(driver) in TRY_AGAIN
        assert ended(journey.site.start("run", journey.name)) in TRY_AGAIN
    run_until_done(journey)
    row.moves_again()
    assert settled_up(journey, row) == EXACT


def hold(proxy: RocketMQProxy, journey: Inward, killed: bool) -> Trap:
    """Runs the connector until its second batch is held back and the run has ended."""
    trap = Trap(sends_to(journey.site.topic), passes=1, forward=False)
    if killed:
        trap.first = kill_sender
    proxy.set(trap)
    driver = begun_and_trapped(journey, trap)
    assert ended(driver) in TRY_AGAIN
    return trap
