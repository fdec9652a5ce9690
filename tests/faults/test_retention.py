"""Between two clusters, retention on either side takes what was not read, or what nobody had looked at."""

from __future__ import annotations

import time
from functools import partial

import pytest

from tests.faults.kit import processes
from tests.faults.kit.checker import EXACT, account
from tests.faults.kit.fixtures import MakeAcross
from tests.faults.kit.journeys import (
    Across,
    begun_and_stopped,
    numbered,
    receipts_of,
    run_until_done,
    told_exactly,
    worker_killed,
)
from tests.faults.kit.processes import ended
from tests.faults.kit.retention import WHILE_SERVING_S, expire_while_serving, expiring
from tests.faults.kit.topics import fill
from tests.faults.rows import FaultRow
from tests.servers import RocketMQ

pytestmark = [pytest.mark.server, pytest.mark.fault(costly=True)]

DATABASES = ("PostgreSQL", "SQLite")
DATA_IS_WRONG = 5
PATIENT = {
    "WAYBILL_QUANTUM_S": f"{WHILE_SERVING_S + 10:g}s",
    "WAYBILL_LEASE_TTL_S": f"{WHILE_SERVING_S + 40:g}s",
}
"""A worker may stand still until the broker has deleted what it was about to read."""


@pytest.mark.parametrize("database", DATABASES)
def test_messages_that_expire_under_their_reader_are_told_exactly(
    across: MakeAcross, database: str, row: FaultRow
) -> None:
    """What was read until then is delivered and settled; the run says from where to where the rest is gone."""
    journey = across(database, records=20_000, range_records=20_000)
    journey.site.settings.update(PATIENT)
    row.describe("source expired under the reader: exit code 5, then a gap", where=journey.where, database=database)
    driver, there = begun_and_stopped(journey, "batch-written")
    row.strikes()
    expire_while_serving(journey.old.rocketmq, journey.site.topic)
    processes.go_on(there)
    assert ended(driver) == DATA_IS_WRONG
    journey.feed(journey.records, journey.records + 1_000)
    go_on_behind_the_gap(journey, row)
    assert sum(int(str(one["passed"])) for one in receipts_of(journey)) > 4 * 1_000


@pytest.mark.parametrize("database", DATABASES)
def test_what_expires_between_two_attempts_is_settled_from_the_target_as_far_as_it_is_there(
    across: MakeAcross, database: str, row: FaultRow
) -> None:
    journey = across(database)
    row.describe("source expired between two attempts of a range", where=journey.where, database=database)
    worker_killed(journey, row, passes=1)
    with expiring(journey.old.rocketmq, journey.site.topic):
        journey.feed(journey.records, journey.records + 1_000)
    go_on_behind_the_gap(journey, row)
    assert any(one["reconstructed"] for one in receipts_of(journey))


def go_on_behind_the_gap(journey: Across, row: FaultRow) -> None:
    """The run moves nothing of a queue that has lost records until gaps are accepted; then all are accounted for."""
    before = journey.target()
    assert "(expired: from " in journey.site.waybill("run", journey.name, code=DATA_IS_WRONG)
    stopped = journey.target()
    journey.site.waybill("run", journey.name, "--accept-gaps")
    row.moves_again()
    gaps = journey.site.json("gaps", journey.name)["gaps"]
    assert {(gap["end"], gap["reason"]) for gap in gaps} == {(journey.records, "expired")}
    assert all(before.get(gap["partition"]) == stopped.get(gap["partition"]) for gap in gaps)
    expired = partial(numbered, begin=0, end=journey.records)
    assert told_exactly(journey, expired).into(row) == EXACT


@pytest.mark.parametrize("database", DATABASES)
def test_a_target_that_forgets_what_nobody_has_looked_at_stops_the_run_until_it_may_be_repeated(
    across: MakeAcross, rocketmq: RocketMQ, database: str, row: FaultRow
) -> None:
    """What was delivered of the open range is gone from the target, and nobody can know how much it was. Its consumers
    may have had it: the receipt says how many records they may get twice."""
    journey = across(database)
    row.describe("target expired what a killed worker had delivered: exit code 5", where=journey.where)
    row.database, row.condition = database, "on_unknown: redeliver, possible_duplicates counted"
    worker_killed(journey, row, passes=1)
    forgotten = journey.target()
    row.strikes()
    with expiring(rocketmq, journey.site.topic):
        pass
    said = journey.site.waybill("run", journey.name, code=DATA_IS_WRONG)
    assert "deleted by retention" in said
    assert "on_unknown: redeliver" in said
    assert not forgotten.keys() & journey.target().keys()  # the others may have gone on
    journey.sink["on_unknown"] = "redeliver"
    journey.apply()
    run_until_done(journey)
    row.moves_again()
    now = journey.target()
    ever = {queue: forgotten.get(queue, []) + now.get(queue, []) for queue in journey.source()}
    receipts = receipts_of(journey)
    repeats = sum(int(str(one["possible_duplicates"])) for one in receipts)
    assert repeats > 0
    assert account(journey.source(), ever, receipts, journey.spans()).into(row) == EXACT._replace(repeated=repeats)


@pytest.mark.parametrize("database", DATABASES)
def test_a_range_that_is_given_up_does_not_stop_the_runs_behind_it(
    across: MakeAcross, rocketmq: RocketMQ, database: str, row: FaultRow
) -> None:
    """A person has found out what arrived before it was deleted: all of what the worker had written is not read again,
    and the run goes on behind it though nobody can look where it stood."""
    journey = across(database)
    row.describe("target expired what a killed worker had delivered: given up behind it", where=journey.where)
    row.database = database
    worker_killed(journey, row, passes=1)
    forgotten = at_rest(journey)
    row.strikes()
    with expiring(rocketmq, journey.site.topic):
        pass
    assert "offsets set --abandon" in journey.site.waybill("run", journey.name, code=DATA_IS_WRONG)
    for partition in journey.source():
        behind = str(len(forgotten.get(partition, [])))
        journey.site.waybill("offsets", "set", journey.name, partition, behind, "--abandon", "--yes")
    run_until_done(journey)
    row.moves_again()
    now = journey.target()
    ever = {queue: forgotten.get(queue, []) + now.get(queue, []) for queue in journey.source()}
    assert ever == journey.source()


def at_rest(journey: Across) -> dict[str, list[bytes]]:
    """What has arrived, as a person finds it out: when no request of a killed process is under way any more."""
    before: dict[str, list[bytes]] | None = None
    while (now := journey.target()) != before:
        before = now
        time.sleep(1)
    return now


@pytest.mark.parametrize("database", DATABASES)
def test_a_run_that_is_killed_before_it_wrote_where_all_had_expired_is_made_up_for(
    across: MakeAcross, rocketmq: RocketMQ, database: str, row: FaultRow
) -> None:
    """What was settled long ago may go: of the range that is open nothing can be among it."""
    journey = across(database)
    row.describe("target expired what was settled, then the driver is killed behind its plan", where=journey.where)
    row.database = database
    run_until_done(journey)
    settled = journey.target()
    fill(journey.site.name_servers, journey.site.topic, [[b"of others"] * 100] * journey.partitions)
    with expiring(rocketmq, journey.site.topic):
        pass
    journey.feed(journey.records, journey.records + 1_000)
    driver, there = begun_and_stopped(journey, "planned")
    row.strikes()
    processes.kill(there)
    ended(driver)
    run_until_done(journey)
    row.moves_again()
    now = journey.target()
    ever = {queue: settled.get(queue, []) + now.get(queue, []) for queue in journey.source()}
    assert account(journey.source(), ever, receipts_of(journey), journey.spans()).into(row) == EXACT
