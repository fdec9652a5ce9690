"""From one cluster to another while either of them changes or breaks: rights and queues taken away, a target that is
busy, foreign writers, other names in the middle of a range."""

from __future__ import annotations

import time

import pytest

from connect_core import stack
from connect_core.rocketmq import TopicConfig
from connect_core.rocketmq.wire.commands import PERM_READ, PERM_WRITE
from tests.faults.kit import processes
from tests.faults.kit.checker import EXACT, account
from tests.faults.kit.fixtures import MakeAcross, MakeSite
from tests.faults.kit.journeys import (
    TRY_AGAIN,
    Inward,
    begun_and_stopped,
    made_up_for,
    numbered,
    receipts_of,
    run_until_done,
    settled_up,
    worker_killed,
)
from tests.faults.kit.processes import ended, wait_for
from tests.faults.kit.refusals import busy
from tests.faults.kit.topics import JavaReader, delete, fill
from tests.faults.kit.writers import FOREIGN, client_of, foreign_writer, without_foreign
from tests.faults.rows import FaultRow
from tests.servers import RocketMQ

pytestmark = [pytest.mark.server, pytest.mark.fault]

COSTLY = pytest.mark.fault(costly=True)
DATA_IS_WRONG, REFUSED = 5, 6


# ------------------------------------------------------------------------------------------------- what is taken away


@COSTLY
@pytest.mark.parametrize(("side", "database"), [("source", "PostgreSQL"), ("target", "SQLite")])
def test_a_name_server_that_is_gone(
    across: MakeAcross, rocketmq: RocketMQ, side: str, database: str, row: FaultRow
) -> None:
    """A run that is under way knows its brokers; one that begins does not."""
    journey = across(database)
    row.describe(f"name server of the {side} killed in mid-range", where=journey.where, database=database)
    cluster = journey.old.rocketmq if side == "source" else rocketmq
    driver, there = begun_and_stopped(journey, "batch-written")
    row.strikes()
    stack.kill(cluster.home, stack.NAME_SERVER)
    try:
        processes.go_on(there)
        assert ended(driver) in (0, *TRY_AGAIN)
        assert cluster.name_servers[0] in journey.site.waybill("run", journey.name, code=3)
    finally:
        cluster.start()
    wait_for(lambda: knows(cluster, journey.site.topic), "brokers that have told the new name server of themselves")
    assert made_up_for(journey, row) == EXACT


def knows(cluster: RocketMQ, topic: str) -> bool:
    with client_of(cluster) as client:
        return client.topics.exists(topic)


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize("database", ["PostgreSQL", "SQLite"])
def test_the_right_to_write_is_withdrawn_and_given_back(
    across: MakeAcross, rocketmq: RocketMQ, database: str, row: FaultRow
) -> None:
    journey = across(database)
    topic = journey.site.topic
    row.describe("target topic made read-only in mid-range, then writable again", where=journey.where)
    row.database = database
    driver, there = begun_and_stopped(journey, "batch-written")
    row.strikes()
    with client_of(rocketmq) as client:
        client.topics.put(TopicConfig(topic, 4, 4, PERM_READ), rocketmq.broker_name)
        processes.go_on(there)
        assert ended(driver) == REFUSED
        assert topic in journey.site.waybill("run", journey.name, code=REFUSED)
        client.topics.put(TopicConfig(topic, 4, 4, PERM_READ | PERM_WRITE), rocketmq.broker_name)
    assert made_up_for(journey, row) == EXACT


@COSTLY
@pytest.mark.parametrize("database", ["PostgreSQL", "SQLite"])
def test_queues_are_added_and_taken_away_on_both_sides(
    across: MakeAcross, rocketmq: RocketMQ, database: str, row: FaultRow
) -> None:
    """4 → 8 → 4. What is open in a queue of the target stays there: nobody takes it away before it is finished."""
    journey = across(database)
    topic, old = journey.site.topic, journey.old.rocketmq
    row.describe("queues 4 → 8 → 4 on both sides, between two runs", where=journey.where, database=database)
    run_until_done(journey)
    row.strikes()
    with client_of(old) as source, client_of(rocketmq) as target:
        for client in (source, target):
            client.topics.create(topic, 8)
        journey.partitions = 8
        journey.feed(journey.records, 2 * journey.records)
        run_until_done(journey)
        assert len(journey.target()) == 8
        # Readers still see all eight, as people do it who lose nothing; the target is written to four of them.
        source.topics.put(TopicConfig(topic, 8, 4), old.broker_name)
        target.topics.put(TopicConfig(topic, 8, 4), rocketmq.broker_name)
        journey.partitions = 4
        journey.feed(2 * journey.records, 3 * journey.records)
    assert made_up_for(journey, row) == EXACT


# ------------------------------------------------------------------------------------------------- a target in trouble


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize("database", ["PostgreSQL", "SQLite"])
def test_a_target_that_is_busy_for_a_while_gets_the_same_batches_again(
    across: MakeAcross, rocketmq: RocketMQ, database: str, row: FaultRow
) -> None:
    """It is waited for in mid-range: the run that has met it ends well."""
    journey = across(database)
    row.describe("target answers SYSTEM_BUSY to every send, for 2 s in mid-range", where=journey.where)
    row.database = database
    driver, there = begun_and_stopped(journey, "batch-written")
    with busy(rocketmq, journey.site.topic):
        row.strikes()
        processes.go_on(there)
        time.sleep(2)
        assert driver.poll() is None
    assert ended(driver) == 0
    row.moves_again()
    assert settled_up(journey, row) == EXACT


# ------------------------------------------------------------------------------------------------------ other writers


@COSTLY
@pytest.mark.parametrize("database", ["PostgreSQL", "SQLite"])
def test_a_foreign_producer_writes_in_between(
    across: MakeAcross, rocketmq: RocketMQ, database: str, row: FaultRow
) -> None:
    """Between our batches, at 20,000 messages a second, while a worker is killed and its range is taken over."""
    journey = across(database, records=40_000, range_records=20_000)
    topic = journey.site.topic
    row.describe(
        "a foreign producer writes 20,000/s into the target; worker killed", where=journey.where, database=database
    )
    with foreign_writer(rocketmq, topic, 20_000):
        worker_killed(journey, row, passes=2)
        run_until_done(journey)
    row.moves_again()
    everything = journey.target()
    ours = without_foreign(everything)
    assert sum(map(len, everything.values())) > sum(map(len, ours.values()))
    assert account(journey.source(), ours, receipts_of(journey), journey.spans()).into(row) == EXACT


@COSTLY
def test_two_connectors_write_into_one_topic(across: MakeAcross, rocketmq: RocketMQ, row: FaultRow) -> None:
    """Side by side, and a worker of one of them is killed. Each finds its own."""
    journey = across("PostgreSQL")
    other = f"{journey.site.topic}-other"
    row.describe("two connectors into one topic, a worker killed", where=journey.where, database="PostgreSQL")
    theirs = [[FOREIGN + one for one in numbered(number, 0, 5_000)] for number in range(4)]
    fill(journey.origin, other, theirs)
    source = {"rocketmq": {"name_servers": journey.origin, "topics": [other]}}
    sink = {"rocketmq": {"name_servers": rocketmq.name_servers, "topic": journey.site.topic, "queues": 4}}
    journey.site.apply("lines-other", {"source": source, "sink": sink})
    driver, there = begun_and_stopped(journey, "batch-written")
    second = journey.site.start("run", "lines-other")
    row.strikes()
    processes.kill(there)
    assert ended(driver) in TRY_AGAIN
    assert ended(second) in (0, *TRY_AGAIN)
    run_until_done(journey)
    row.moves_again()
    assert ended(journey.site.start("run", "lines-other")) == 0
    everything = journey.target()
    ours = without_foreign(everything)
    assert account(journey.source(), ours, receipts_of(journey), journey.spans()).into(row) == EXACT
    rest = sorted(one for mine in everything.values() for one in mine if one.startswith(FOREIGN))
    assert rest == sorted(one for mine in theirs for one in mine)


# ------------------------------------------------------------------------------------ another document, another topic


@COSTLY
@pytest.mark.parametrize("change", ["rename", "filter"])
def test_a_rule_that_changes_between_two_attempts(across: MakeAcross, change: str, row: FaultRow) -> None:
    """What was planned is finished by the rule under which it was planned; what comes then follows the new one."""
    journey = across("SQLite")
    topic = journey.site.topic
    row.describe(f"{change} rule changed between two attempts", where=journey.where, database="SQLite")
    worker_killed(journey, row)
    moved = f"{topic}-moved"
    if change == "rename":
        journey.sink["rename"] = {topic: moved}
        journey.apply()
    else:
        journey.apply(filter={"tags": ["nothing has it"]})
    run_until_done(journey)
    row.moves_again()
    receipts = receipts_of(journey)
    old_records = journey.target()
    if change == "rename":
        new_records = journey.reader.records(moved)
        joined = {queue: mine + new_records.get(queue.replace(topic, moved), []) for queue, mine in old_records.items()}
        assert new_records
        found = account(journey.source(), joined, receipts, journey.spans())
    else:
        assert sum(int(str(one["filtered"])) for one in receipts) > 0
        passed = {queue: mine[: len(old_records.get(queue, []))] for queue, mine in journey.source().items()}
        found = account(passed, old_records, receipts, journey.spans())
    assert found.into(row) == EXACT


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize("grown", [0, 300, 6_000], ids=["empty", "grown", "grown past what was delivered"])
def test_a_target_topic_that_is_made_anew_between_two_runs(
    across: MakeAcross, rocketmq: RocketMQ, grown: int, row: FaultRow
) -> None:
    """What it held was delivered, and somebody has deleted it: a person says that it may go on in the new one. What
    comes then is delivered once, also when a worker is killed on the way."""
    journey = across("SQLite")
    topic, records = journey.site.topic, journey.records
    others = f", with {grown} messages of others," if grown else ""
    row.describe(
        f"target topic deleted and recreated{others} between two runs: exit code 5",
        where=journey.where,
        database="SQLite",
    )
    run_until_done(journey)
    row.strikes()
    delete(rocketmq.name_servers, topic)
    if grown:
        fill(rocketmq.name_servers, topic, [[FOREIGN + b"%d" % n for n in range(grown)] for _ in range(4)])
    journey.feed(records, 2 * records)
    assert "on_replaced: continue" in journey.site.waybill("run", journey.name, code=DATA_IS_WRONG)
    journey.sink["on_replaced"] = "continue"
    journey.apply()
    worker_killed(journey, row)
    run_until_done(journey)
    row.moves_again()
    everything = {queue: numbered(number, 0, records) for number, queue in enumerate(sorted(journey.source()))}
    target = without_foreign(journey.target())
    joined = {queue: [*mine, *target[queue]] for queue, mine in everything.items()}
    assert account(journey.source(), joined, receipts_of(journey), journey.spans()).into(row) == EXACT


def test_partitions_stay_in_their_queues_when_the_topic_gets_more_of_them(
    site_on: MakeSite, java_reader: JavaReader, rocketmq: RocketMQ, row: FaultRow
) -> None:
    """Five files in four queues, then in six: each file is in order as a whole, in one queue. A new one may have one
    of the new queues."""
    journey = Inward(site_on("SQLite"), java_reader, partitions=5, sink={"queues": "4"})
    row.describe("target topic grown from 4 queues to 6, then to 4 again", where=journey.where, database="SQLite")
    run_until_done(journey)
    row.strikes()
    with client_of(rocketmq) as client:
        client.topics.create(journey.site.topic, 6)
        journey.partitions = 6
        (journey.folder / "log-5.log").write_bytes(b"".join(one + b"\n" for one in numbered(5, 0, journey.records)))
        for number in range(5):
            with (journey.folder / f"log-{number}.log").open("ab") as file:
                file.writelines(one + b"\n" for one in numbered(number, journey.records, 2 * journey.records))
        run_until_done(journey)
        row.moves_again()
        assert settled_up(journey, row) == EXACT
        assert len(journey.target()) == 5
        client.topics.put(TopicConfig(journey.site.topic, 6, 4), rocketmq.broker_name)
        with (journey.folder / "log-5.log").open("ab") as file:
            file.write(b"one more\n")
        assert "goes to this queue for good" in journey.site.waybill("run", journey.name, code=DATA_IS_WRONG)
