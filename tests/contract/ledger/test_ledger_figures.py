"""The figures of connectors: what was settled, rejected, lost and begun, and nothing of connectors that are deleted."""

from __future__ import annotations

import time

from connect_core.errors import Failure
from connect_core.ledger import ConnectorFigures, Ledger, PartitionState
from connect_core.sdk.values import LIVE, Gap, Reject
from connect_core.work import Outcome
from tests.contract.ledger.samples import Q0, Q1, Worker, planned, receipt
from tests.contract.ledger.test_ledger_growth import fill, plans, statements
from tests.contract.ledger.test_ledger_live import follow, part


def of(ledger: Ledger, name: str = "orders") -> ConnectorFigures:
    [one] = [each for each in ledger.figures() if each.name == name]
    return one


def test_of_a_connector_that_did_nothing_everything_is_zero(ledger: Ledger) -> None:
    document = {"source": {"file": {}}, "sink": {"file": {}}}
    uid = ledger.apply("orders", document, who="ann").connector.uid
    assert ledger.figures() == [ConnectorFigures(uid, "orders", "running", document)]
    ledger.set_target_state(uid, "paused", who="ann")
    assert of(ledger).target_state == "paused"


def test_receipts_are_added_up_by_stream(worker: Worker) -> None:
    ledger, uid = worker.ledger, worker.uid
    worker.move(Q0, 0, 100)
    worker.move(Q1, 0, 10, filtered=3, passed=7, emitted=7, delivered=5, deduplicated=2, duplicates=1)
    run = ledger.begin_run(uid, "backfill-1", task=0, engine="inline")
    [opened] = ledger.plan([worker.lease], run, uid, 0, [planned(Q0, stream="backfill-1", end=7)], [])
    ledger.settle([worker.lease], run, uid, [Outcome(opened.id, receipt(0, 7))])
    found = of(ledger).settled
    assert set(found) == {LIVE, "backfill-1"}
    assert found["backfill-1"].sums["delivered"] == 7
    assert found[LIVE].receipts == 2
    assert found[LIVE].sums == {
        "read": 110,
        "filtered": 3,
        "rejected": 0,
        "delivered": 105,
        "deduplicated": 2,
        "duplicates": 1,
        "possible_duplicates": 0,
        "bytes_read": 22_000,
        "bytes_written": 23_100,
        "seconds": 0.5,
    }
    assert found[LIVE].newest_at == ledger.receipts(uid, stream=LIVE, limit=1)[0].settled_at


def test_the_sums_stay_where_receipts_of_a_window_are_merged(worker: Worker) -> None:
    read, receipts = [], []
    for begin in range(0, 50, 10):
        follow(worker, part(begin, begin + 10))
        found = of(worker.ledger).settled[LIVE]
        read.append((found.sums["read"], found.sums["bytes_written"], found.sums["seconds"]))
        receipts.append(found.receipts)
    assert read == [(10 * n, 2100 * n, 0.25 * n) for n in range(1, 6)]
    assert receipts[-1] < 5, "they were merged"


def test_what_is_open_is_not_settled(worker: Worker) -> None:
    worker.plan(planned(Q0), planned(Q1))
    found = of(worker.ledger)
    assert (found.open_ranges, found.settled) == (2, {})


def test_dead_letters_gaps_and_partitions_that_are_held_up(worker: Worker) -> None:
    ledger, uid = worker.ledger, worker.uid
    rejects = tuple(Reject(n, 0, "parse" if n else "read", "Bad", "m", b"") for n in range(3))
    [opened] = worker.plan(planned(Q0, 0, 3, gaps=(Gap(0, 100, None, "recreated"),)))
    worker.settle(Outcome(opened.id, receipt(0, 3, rejected=3, passed=0, emitted=0, delivered=0, rejects=rejects)))
    elsewhere = {Q1: PartitionState("quarantined", "of a backfill")}
    ledger.set_partition_states([worker.lease], uid, "backfill-1", elsewhere)
    states = {Q0: PartitionState("quarantined", "it fails"), Q1: PartitionState("retired")}
    ledger.set_partition_states([worker.lease], uid, LIVE, states)
    found = of(ledger)
    assert (found.letters, found.gaps, found.held_up) == ({"read": 1, "parse": 2}, 1, 1)


def test_runs_by_state_and_the_newest_of_each_task(worker: Worker) -> None:
    ledger, uid = worker.ledger, worker.uid
    ledger.end_run(worker.run_id, state="failed", failure=Failure("X", "x"), summary={"read": 1})
    time.sleep(0.002)
    second = ledger.begin_run(uid, LIVE, task=0, engine="inline")
    ledger.end_run(second, state="done", failure=None, summary={"read": 2, "ranges": 1})
    other = ledger.begin_run(uid, LIVE, task=1, engine="inline")
    ledger.end_run(other, state="failed", failure=Failure("X", "x"), summary={"read": 3})
    backfill = ledger.begin_run(uid, "backfill-1", task=0, engine="inline")
    ledger.end_run(backfill, state="done", failure=None, summary={"read": 4, "ranges": 1})
    ledger.begin_run(uid, LIVE, task=0, engine="inline")
    found = of(ledger)
    assert found.runs == {"failed": 2, "done": 2, "running": 1}
    assert sorted((run.state, run.summary["read"]) for run in found.ended) == [("done", 2), ("failed", 3)]
    assert all(run.ended_at >= run.started_at for run in found.ended)


def test_the_count_of_runs_stays_where_one_that_found_nothing_is_forgotten(worker: Worker) -> None:
    ledger, uid = worker.ledger, worker.uid
    counts = []
    for _ in range(3):
        time.sleep(0.002)
        run = ledger.begin_run(uid, LIVE, task=0, engine="inline")
        ledger.end_run(run, state="done", failure=None, summary={"ranges": 0})
        counts.append(of(ledger).runs["done"])
    assert counts == sorted(counts)


def test_leases_that_are_held_and_the_highest_epoch(worker: Worker) -> None:
    ledger = worker.ledger
    found = of(ledger)
    assert (found.leases_held, found.epoch) == (1, worker.lease.epoch)
    assert found.oldest_lease_at is not None
    ledger.release(worker.lease)
    found = of(ledger)
    assert (found.leases_held, found.oldest_lease_at, found.epoch) == (0, None, worker.lease.epoch)


def test_a_deleted_connector_is_not_counted_and_the_oldest_comes_first(worker: Worker) -> None:
    ledger = worker.ledger
    for name in ("b", "a"):
        time.sleep(0.002)
        Worker.started(ledger, name).move()
    worker.move()
    assert [one.name for one in ledger.figures()] == ["orders", "b", "a"]
    ledger.delete(worker.uid, who="ann")
    assert [one.name for one in ledger.figures()] == ["b", "a"]


def test_there_are_as_many_statements_for_many_connectors_as_for_one(worker: Worker) -> None:
    counts = []
    for name in ("one", "two"):
        with statements(worker) as seen:
            worker.ledger.figures()
        counts.append(len(seen))
        Worker.started(worker.ledger, name).move()
    assert counts[0] == counts[1]


def test_open_ranges_are_counted_without_the_settled_ones(worker: Worker) -> None:
    fill(worker)
    with statements(worker) as seen:
        worker.ledger.figures()
    [plan] = plans(worker, seen, "open_key IS NOT NULL")
    assert "ix_ranges_open" in plan, plan
