"""Brokers that are killed in the middle of a send or a pull, that lose what was not read yet, and topics that go."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from functools import partial

import pytest

from tests.faults.kit import processes, topics
from tests.faults.kit.checker import EXACT
from tests.faults.kit.fixtures import MakeJourney, MakeSite
from tests.faults.kit.journeys import (
    TRY_AGAIN,
    Across,
    Outward,
    begun_and_stopped,
    made_up_for,
    numbered,
    told_exactly,
)
from tests.faults.kit.processes import ended
from tests.faults.kit.retention import expiring
from tests.faults.kit.topics import JavaReader
from tests.faults.kit.torn import DAMAGED
from tests.faults.rows import FaultRow
from tests.servers import RocketMQ
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]

DATABASES = ("PostgreSQL", "SQLite")
DATA_IS_WRONG, REFUSED = 5, 6
LONG = pytest.mark.fault(costly=True)


@pytest.mark.parametrize(
    ("way", "side", "seconds", "database"),
    [
        ("in", "target", 5, "PostgreSQL"),
        ("in", "target", 5, "SQLite"),
        ("out", "source", 5, "PostgreSQL"),
        ("out", "source", 5, "SQLite"),
        ("across", "source", 5, "SQLite"),
        ("across", "target", 5, "PostgreSQL"),
        pytest.param("in", "target", 40, "PostgreSQL", marks=LONG),
        pytest.param("out", "source", 40, "SQLite", marks=LONG),
        pytest.param("across", "source", 40, "PostgreSQL", marks=LONG),
        pytest.param("across", "target", 40, "SQLite", marks=LONG),
    ],
)
def test_a_broker_killed_at_work_loses_and_repeats_nothing(
    site_on: MakeSite,
    journey_of: MakeJourney,
    rocketmq: RocketMQ,
    way: str,
    side: str,
    seconds: int,
    database: str,
    row: FaultRow,
) -> None:
    """A batch or a pull is under way. Runs go on being started while it is away. A broker that dies within a message
    may keep it, damaged: that is told."""
    journey = journey_of(way, site_on(database))
    broker = journey.old.rocketmq if isinstance(journey, Across) and side == "source" else rocketmq
    doing = "send" if side == "target" else "pull"
    row.describe(f"SIGKILL of the broker in mid-{doing}, back after {seconds} s", where=journey.where)
    row.database = database
    driver, there = begun_and_stopped(journey, "batch-written", passes=1)
    row.strikes()
    back = time.monotonic() + seconds
    broker.kill()
    try:
        processes.go_on(there)
        assert ended(driver) in TRY_AGAIN
        while time.monotonic() < back:
            assert ended(journey.site.start("run", journey.name)) in TRY_AGAIN
    finally:
        broker.start()
    found = made_up_for(journey, row)
    if side == "target" and found == DAMAGED:
        row.condition = "it died within a message"
    else:
        assert found == EXACT


MOVED, UNREAD, NEW = (0, 1_000), (1_000, 2_000), (2_000, 3_500)
"""Which records of each queue were moved, which stood in the topic when it was struck, and which came afterwards."""


def half_read(site: Site, reader: JavaReader) -> Outward:
    """RocketMQ → file with a topic of which half was moved. The connector stops at gaps."""
    journey = Outward(site, reader, records=MOVED[1])
    site.waybill("run", journey.name)
    journey.feed(*UNREAD)
    return journey


def expire(rocketmq: RocketMQ, journey: Outward) -> None:
    """Newer records stay."""
    with expiring(rocketmq, journey.site.topic):
        journey.feed(*NEW)


def recreate(rocketmq: RocketMQ, journey: Outward) -> None:
    """The topic is another one, in which the committed offset lies in the middle."""
    topics.delete(rocketmq.name_servers, journey.site.topic)
    journey.feed(*NEW)


def recreate_shorter(rocketmq: RocketMQ, journey: Outward) -> None:
    """The topic is another one, which ends before the committed offset."""
    topics.delete(rocketmq.name_servers, journey.site.topic)
    journey.feed(NEW[0], NEW[0] + 100)


@pytest.mark.parametrize(
    ("strike", "words", "reason"),
    [
        (expire, "unread messages expired at the source", "expired"),
        (recreate, "source topic deleted and recreated, grown past the committed offset", "recreated"),
        (recreate_shorter, "source topic deleted and recreated, shorter than the committed offset", "rewound"),
    ],
    ids=["expired", "recreated", "recreated shorter"],
)
@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.fault(costly=True)
def test_unread_messages_that_are_gone_are_told_exactly(
    site_on: MakeSite,
    java_reader: JavaReader,
    rocketmq: RocketMQ,
    strike: Callable[[RocketMQ, Outward], None],
    words: str,
    reason: str,
    database: str,
    row: FaultRow,
) -> None:
    """The run stops with a defined error and moves nothing; told to accept gaps, it goes on behind them."""
    row.describe(f"{words}: exit code 5, then a gap", where=Outward.where, database=database)
    journey = half_read(site_on(database), java_reader)
    moved = journey.target()
    row.strikes()
    strike(rocketmq, journey)
    assert reason in journey.site.waybill("run", journey.name, code=DATA_IS_WRONG)
    assert journey.target() == moved
    journey.site.waybill("run", journey.name, "--accept-gaps")
    row.moves_again()
    gaps = journey.site.json("gaps", journey.name)["gaps"]
    told = {(gap["partition"], gap["begin"], gap["end"], gap["reason"]) for gap in gaps}
    end = UNREAD[1] if reason == "expired" else None
    assert told == {(queue, MOVED[1], end, reason) for queue in journey.spans()}
    former = partial(numbered, begin=MOVED[0], end=MOVED[1])
    assert told_exactly(journey, former).into(row) == EXACT


@pytest.mark.parametrize("database", DATABASES)
def test_where_a_topic_begins_outlives_its_broker(
    site_on: MakeSite, java_reader: JavaReader, rocketmq: RocketMQ, database: str, row: FaultRow
) -> None:
    """`start: latest`: the broker forgets what our group was told in its last seconds; the first run has kept it."""
    row.describe("SIGKILL of the broker right after the first look of start: latest", where=Outward.where)
    row.database = database
    journey = Outward(site_on(database), java_reader, records=MOVED[1], start="latest")
    journey.site.waybill("run", journey.name)
    row.strikes()
    rocketmq.kill()
    for kept in rocketmq.home.rglob("consumerOffset.json*"):
        kept.unlink()  # as they were before its last seconds, in which it may not have written them
    rocketmq.start()
    journey.feed(*UNREAD)
    journey.site.waybill("run", journey.name)
    row.moves_again()
    assert journey.site.json("gaps", journey.name)["gaps"] == []
    left_out = partial(numbered, begin=MOVED[0], end=MOVED[1])
    wanted = sorted(record for queue in journey.source().values() for record in queue)
    never = {record for number in range(journey.partitions) for record in left_out(number)}
    assert sorted(journey.path.read_bytes().splitlines()) == [record for record in wanted if record not in never]
    row.lost = row.repeated = row.reordered = 0


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.fault(costly=True)
def test_a_topic_made_anew_behind_a_position_that_a_person_has_set(
    site_on: MakeSite, java_reader: JavaReader, rocketmq: RocketMQ, database: str, row: FaultRow
) -> None:
    """The position was one in the topic as it was then: another topic that has grown past it is told."""
    row.describe("offsets set, then the source topic recreated and grown past them", where=Outward.where)
    row.database = database
    journey = half_read(site_on(database), java_reader)
    moved, queues = journey.target(), journey.spans()
    for queue in queues:
        for place in (MOVED[1] + 200, MOVED[1]):  # there and back, so that the receipts adjoin
            journey.site.waybill("offsets", "set", journey.name, queue, str(place), "--yes")
    row.strikes()
    recreate(rocketmq, journey)
    assert "recreated" in journey.site.waybill("run", journey.name, code=DATA_IS_WRONG)
    assert journey.target() == moved
    journey.site.waybill("run", journey.name, "--accept-gaps")
    row.moves_again()
    gaps = journey.site.json("gaps", journey.name)["gaps"]
    assert {(gap["begin"], gap["end"], gap["reason"]) for gap in gaps} == {(MOVED[1], None, "recreated")}
    former = partial(numbered, begin=MOVED[0], end=MOVED[1])
    assert told_exactly(journey, former).into(row) == EXACT


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("reading", [False, True], ids=["before the next attempt", "while it is read"])
@pytest.mark.fault(costly=True)
def test_a_source_topic_that_is_deleted_in_mid_range_stops_every_run_until_gaps_are_accepted(
    site_on: MakeSite, java_reader: JavaReader, reading: bool, database: str, row: FaultRow
) -> None:
    when = "while it is read" if reading else "between a killed driver and the next attempt"
    row.describe(f"source topic deleted {when}: exit code 6, then a gap", where=Outward.where, database=database)
    journey = Outward(site_on(database), java_reader)
    driver, there = begun_and_stopped(journey, "batch-written")
    row.strikes()
    if not reading:
        processes.kill(driver.pid)
    topics.delete(journey.site.name_servers, journey.site.topic)
    processes.go_on(there)
    assert ended(driver) == (REFUSED if reading else -signal.SIGKILL)
    journey.site.waybill("run", journey.name, code=REFUSED)
    journey.feed(journey.records, journey.records + 500)
    assert journey.site.waybill("run", journey.name, code=DATA_IS_WRONG)
    journey.site.waybill("run", journey.name, "--accept-gaps")
    row.moves_again()
    assert told_exactly(journey, lambda number: numbered(number, 0, journey.records)).into(row) == EXACT
