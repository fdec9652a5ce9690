"""Batches that are under way to the broker when their sender dies, or whose answer never comes (delivery rule 4)."""

from __future__ import annotations

import signal
from contextlib import ExitStack

import pytest

from tests.faults.kit import processes
from tests.faults.kit.checker import EXACT
from tests.faults.kit.fixtures import MakeSite
from tests.faults.kit.journeys import (
    SHORT_LEASES,
    TRY_AGAIN,
    Inward,
    begun_and_stopped,
    begun_and_trapped,
    made_up_for,
    run_until_done,
    settled_up,
    struck,
)
from tests.faults.kit.processes import ended
from tests.faults.kit.proxy import RocketMQProxy, Trap, kill_sender, sends_to
from tests.faults.kit.topics import JavaReader
from tests.faults.rows import FaultRow
from tests.servers import RocketMQ

pytestmark = [pytest.mark.server, pytest.mark.fault]

HELD = "a request was held until its sender was dead and its work taken over"
BATCH = 1_000
"""What the sink sends at once."""


@pytest.fixture(params=["PostgreSQL", "SQLite"])
def journey(
    request: pytest.FixtureRequest, site_on: MakeSite, java_reader: JavaReader, proxy: RocketMQProxy, row: FaultRow
) -> Inward:
    """Behind a line that can be broken; its row says where that is."""
    site = site_on(request.param)
    site.settings.update(SHORT_LEASES)
    row.where, row.database = Inward.where, request.param
    return Inward(site, java_reader, records=4_000, range_records=2_500, partitions=1, name_servers=[proxy.address])


@pytest.mark.parametrize("passes", [0, 1, 2])
def test_a_worker_killed_right_after_a_send_repeats_nothing(
    journey: Inward, proxy: RocketMQProxy, passes: int, row: FaultRow
) -> None:
    """Its last batch reaches the broker when it is dead already."""
    row.fault = "SIGKILL of the worker right after a send"
    trap = proxy.set(Trap(sends_to(journey.site.topic), passes, first=kill_sender))
    struck(journey, trap, row)
    assert made_up_for(journey, row) == EXACT


@pytest.mark.parametrize("cut", [False, True], ids=["silent", "cut"])
def test_an_answer_that_never_comes_repeats_nothing(
    journey: Inward, proxy: RocketMQProxy, cut: bool, row: FaultRow
) -> None:
    how = "the line is cut instead" if cut else "the line stays open"
    row.fault = f"answer to a send swallowed, {how}"
    trap = proxy.set(Trap(sends_to(journey.site.topic), passes=1, answer=False, cut=cut))
    struck(journey, trap, row)
    assert made_up_for(journey, row) == EXACT


@pytest.mark.parametrize("killed", [False, True], ids=["given up", "killed"])
@pytest.mark.fault(costly=True)
def test_a_request_that_arrives_before_the_next_attempt_looks_is_found(
    journey: Inward, proxy: RocketMQProxy, killed: bool, row: FaultRow
) -> None:
    row.fault = (
        f"send held back, its sender {'killed' if killed else 'gives up'}; forwarded before the next attempt looks"
    )
    held = hold(proxy, journey, killed)
    row.strikes()
    held.release()
    assert made_up_for(journey, row) == EXACT


@pytest.mark.parametrize("killed", [False, True], ids=["given up", "killed"])
def test_a_request_that_arrives_after_the_look_is_repeated_and_told_as_surplus(
    journey: Inward, proxy: RocketMQProxy, killed: bool, row: FaultRow
) -> None:
    """The stated condition. The sink finds the batch by the jump of the offsets that its own batches get."""
    row.fault = (
        f"send held back, its sender {'killed' if killed else 'gives up'}; forwarded after the next attempt has looked"
    )
    row.condition = HELD
    held = hold(proxy, journey, killed)
    row.strikes()
    driver, there = begun_and_stopped(journey, "lane-started")
    held.release()
    processes.go_on(there)
    assert ended(driver) in (0, *TRY_AGAIN)
    assert made_up_for(journey, row) == EXACT._replace(repeated=BATCH, duplicates=BATCH)


@pytest.mark.fault(costly=True)
def test_a_request_that_arrives_between_two_batches_is_repeated_and_told_as_surplus(
    journey: Inward, proxy: RocketMQProxy, row: FaultRow
) -> None:
    row.fault = "send held back; forwarded between two of the next attempt's batches"
    row.condition = HELD
    held = hold(proxy, journey, killed=False)
    row.strikes()
    second = proxy.set(Trap(sends_to(journey.site.topic), passes=1, forward=False))
    driver = begun_and_trapped(journey, second)
    held.release()
    second.release()
    assert ended(driver) in (0, *TRY_AGAIN)
    assert made_up_for(journey, row) == EXACT._replace(repeated=BATCH, duplicates=BATCH)


@pytest.mark.parametrize("killed_again", [False, True], ids=["", "killed again"])
@pytest.mark.fault(costly=True)
def test_a_request_that_arrives_after_everything_was_settled_is_told_by_the_next_receipt(
    journey: Inward, proxy: RocketMQProxy, killed_again: bool, row: FaultRow
) -> None:
    more = ", then SIGKILL of the driver in the next range" if killed_again else ""
    row.fault = f"send held back; forwarded when the next attempt has settled all{more}"
    row.condition = HELD
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
    assert made_up_for(journey, row) == EXACT._replace(repeated=BATCH, duplicates=BATCH)


@pytest.mark.parametrize("passes", [0, 1])
@pytest.mark.fault(costly=True)
def test_a_broker_that_stands_still_with_a_send_in_flight_repeats_nothing(
    journey: Inward, proxy: RocketMQProxy, rocketmq: RocketMQ, passes: int, row: FaultRow
) -> None:
    """What it had accepted is stored, or dropped, before the next attempt's barrier."""
    row.fault = "SIGSTOP of the broker with a send in flight, then SIGCONT"
    with ExitStack() as paused:
        trap = Trap(sends_to(journey.site.topic), passes, first=lambda _: paused.enter_context(rocketmq.paused()))
        proxy.set(trap)
        driver = begun_and_trapped(journey, trap)
        row.strikes()
        assert ended(driver) in TRY_AGAIN
        assert ended(journey.site.start("run", journey.name)) in TRY_AGAIN
    assert made_up_for(journey, row) == EXACT


def hold(proxy: RocketMQProxy, journey: Inward, killed: bool) -> Trap:
    """Runs the connector until its second batch is held back and the run has ended."""
    trap = Trap(sends_to(journey.site.topic), passes=1, forward=False)
    if killed:
        trap.first = kill_sender
    proxy.set(trap)
    driver = begun_and_trapped(journey, trap)
    assert ended(driver) in TRY_AGAIN
    return trap
