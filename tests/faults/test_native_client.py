"""The sink's `client: native`: RocketMQ's own client sends, and its process is killed in mid-send."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from connect_core.rocketmq.wire.header import Command
from tests.faults.kit.checker import EXACT
from tests.faults.kit.journeys import SHORT_LEASES, Inward, made_up_for, run_until_done, struck
from tests.faults.kit.proxy import RocketMQProxy, Trap, kill_sender
from tests.faults.kit.topics import JavaReader
from tests.faults.rows import FaultRow
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]

WHERE = f"{Inward.where}, client: native"
SENDS = {10: "topic", 310: "b"}
"""Both codes of a single message, and where the topic stands."""
HELD = "a request was held until its sender was dead and its work taken over"


def single_sends_to(topic: str) -> Callable[[Command], bool]:
    """Those of the native client's: never batches."""
    return lambda command: command.code in SENDS and command.fields[SENDS[command.code]] == topic


@pytest.fixture
def journey(bare_site: Site, proxy: RocketMQProxy, java_reader: JavaReader, native_packages: Path) -> Inward:
    bare_site.settings |= {**SHORT_LEASES, "WAYBILL_ENGINE": "inline", "PYTHONPATH": str(native_packages)}
    bare_site.name_servers = [proxy.address]
    return Inward(
        bare_site,
        java_reader,
        records=300,
        range_records=200,
        partitions=1,
        name_servers=[proxy.address],
        sink={"client": "native"},
    )


@pytest.mark.parametrize("passes", [0, 1, 40, 210])
def test_a_worker_killed_right_after_a_native_send_repeats_nothing(
    journey: Inward, proxy: RocketMQProxy, passes: int, row: FaultRow
) -> None:
    row.describe("SIGKILL of the worker right after a send", where=WHERE, database="SQLite")
    trap = proxy.set(Trap(single_sends_to(journey.site.topic), passes, first=kill_sender))
    struck(journey, trap, row)
    assert made_up_for(journey, row) == EXACT


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize("cut", [False, True], ids=["silent", "cut"])
def test_an_answer_that_never_comes_to_the_native_client_repeats_nothing(
    journey: Inward, proxy: RocketMQProxy, cut: bool, row: FaultRow
) -> None:
    """The library tells every failure alike, and would reconnect for the next message: there is none."""
    how = "the line is cut instead" if cut else "the line stays open"
    row.describe(f"answer to a send swallowed, {how}", where=WHERE, database="SQLite")
    trap = proxy.set(Trap(single_sends_to(journey.site.topic), passes=40, answer=False, cut=cut))
    struck(journey, trap, row)
    assert made_up_for(journey, row) == EXACT


@pytest.mark.fault(costly=True)
def test_a_native_send_that_was_held_back_is_told_as_surplus(
    journey: Inward, proxy: RocketMQProxy, row: FaultRow
) -> None:
    """The stated condition, as with our own client: the range that finds it behind its floor tells of it."""
    row.describe("send held back, its sender killed; forwarded when all is settled", where=WHERE, database="SQLite")
    row.condition = HELD
    held = proxy.set(Trap(single_sends_to(journey.site.topic), passes=40, forward=False, first=kill_sender))
    struck(journey, held, row)
    run_until_done(journey)
    held.release()
    journey.feed(journey.records, journey.records + 50)
    assert made_up_for(journey, row) == EXACT._replace(repeated=1, duplicates=1)
