"""A target topic that somebody deletes and creates anew while a range is written: what went with it is not taken for
delivered, and everything that is not settled arrives in the new one (delivery rule 7)."""

from __future__ import annotations

import time

import pytest

from tests.faults.kit import processes
from tests.faults.kit.fixtures import MakeSite
from tests.faults.kit.journeys import Inward, begun_and_stopped, receipts_of, run_until_done
from tests.faults.kit.processes import ended
from tests.faults.kit.topics import JavaReader, delete, fill
from tests.faults.kit.writers import FOREIGN, client_of, without_foreign
from tests.faults.rows import FaultRow
from tests.servers import RocketMQ

pytestmark = [pytest.mark.server, pytest.mark.fault]

DATA_IS_WRONG = 5
FIRST, SECOND = 4_000, 400
"""Records of the range's two batches: the topic is made anew between them."""


GROWN = pytest.mark.parametrize(
    "grown", [0, 200, FIRST, 6_000], ids=["empty", "filled a bit", "filled as far", "filled past what was written"]
)


def made_anew_between_two_batches(journey: Inward, rocketmq: RocketMQ, grown: int, row: FaultRow) -> None:
    """The run ends, and settles nothing of that range. The topic has this many messages of others then."""
    others = f" and filled with {grown:,} messages of others" if grown else ""
    row.describe(f"target topic deleted, created{others} between two batches of a range: exit code 5")
    row.where, row.database = "file → RocketMQ", "SQLite"
    topic, before = journey.site.topic, len(receipts_of(journey))
    driver, there = begun_and_stopped(journey, "batch-written")
    row.strikes()
    with client_of(rocketmq) as client:  # what a broker has not indexed yet comes into the new topic, out of order
        client.barrier(rocketmq.broker_name, deadline=time.monotonic() + 60)
    delete(rocketmq.name_servers, topic)
    fill(rocketmq.name_servers, topic, [[FOREIGN + b"%d" % n for n in range(grown)]])
    processes.go_on(there)
    assert ended(driver) == DATA_IS_WRONG
    assert len(receipts_of(journey)) == before, "nothing of the range is settled"


def check(journey: Inward, given: list[bytes], row: FaultRow) -> None:
    """Each of these is in the topic that is there now, once."""
    [arrived] = without_foreign(journey.target()).values()
    row.lost, row.repeated = len(set(given) - set(arrived)), len(arrived) - len(set(arrived))
    row.reordered, row.duplicates = 0, sum(int(str(one["duplicates"])) for one in receipts_of(journey))
    assert (row.lost, row.repeated, row.duplicates) == (0, 0, 0)
    assert set(arrived) <= set(given)


@GROWN
def test_a_target_topic_made_anew_within_a_range(
    site_on: MakeSite, java_reader: JavaReader, rocketmq: RocketMQ, grown: int, row: FaultRow
) -> None:
    """Of which nothing was settled before: the next run delivers all of it."""
    journey = Inward(site_on("SQLite"), java_reader, records=FIRST + SECOND, partitions=1)
    made_anew_between_two_batches(journey, rocketmq, grown, row)
    run_until_done(journey)
    row.moves_again()
    [given] = journey.source().values()
    check(journey, given, row)


@pytest.mark.parametrize("grown", [0, 6_000], ids=["empty", "filled past what was written"])
@pytest.mark.fault(costly=True)
def test_a_target_topic_made_anew_within_a_range_behind_what_was_settled(
    site_on: MakeSite, java_reader: JavaReader, rocketmq: RocketMQ, grown: int, row: FaultRow
) -> None:
    """That went with the topic: a person gives the open range up, and says that the new topic is gone on with."""
    journey = Inward(site_on("SQLite"), java_reader, records=500, partitions=1)
    run_until_done(journey)
    journey.feed(500, 500 + FIRST + SECOND)
    made_anew_between_two_batches(journey, rocketmq, grown, row)
    assert "on_replaced: continue" in journey.site.waybill("run", journey.name, code=DATA_IS_WRONG)
    [log], [lines] = journey.source(), journey.source().values()
    [part] = journey.site.json("plan", journey.name)["partitions"]
    begin = str(part["committed"])
    # Confirmed: a broker may take away what it still has of the deleted topic when the new one is being filled. Then
    # messages of others are gone as well, and the command asks, for they might have been of the range.
    why = ("--why", "the topic was made anew", "--yes")
    journey.site.waybill("offsets", "set", journey.name, log, begin, "--abandon", *why)
    sink = {"name_servers": journey.name_servers, "topic": journey.site.topic, "queues": 1, "on_replaced": "continue"}
    journey.site.apply(journey.name, {"source": {"file": {"path": "logs/*.log"}}, "sink": {"rocketmq": sink}})
    run_until_done(journey)
    row.moves_again()
    check(journey, lines[500:], row)
