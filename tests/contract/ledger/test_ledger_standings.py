"""What connectors do now, of all of them at once: the same that is said of each alone."""

from __future__ import annotations

import time
from dataclasses import replace

from connect_core.errors import Failure
from connect_core.ledger import Ledger, PartitionState, Standing
from connect_core.sdk.values import LIVE
from tests.contract.ledger.samples import Q0, Q1, Worker

FAILED = Failure("Unreachable", "it is away")


def begun(worker: Worker, state: str = "", task: int = 0, stream: str = LIVE) -> str:
    """A run; `state` is how it ended."""
    time.sleep(0.002)
    run = worker.ledger.begin_run(worker.uid, stream, task=task, engine="inline")
    if state == "done" or state == "failed":
        worker.ledger.end_run(run, state=state, failure=FAILED if state == "failed" else None, summary={})
    return run


def test_one_that_never_began_has_nothing(ledger: Ledger) -> None:
    uid = ledger.apply("new", {"name": "new"}, who="ann").connector.uid
    assert ledger.standings() == ledger.standings(uid) == {}


def test_runs_are_those_at_work_and_the_newest_of_each_task_that_is_over(worker: Worker) -> None:
    for state in ("done", "failed"):
        for task in (1, 2):
            last = begun(worker, state, task)
    at_work = begun(worker, task=2)
    begun(worker, "done", stream="backfill-1")
    found = worker.ledger.standings()[worker.uid].runs
    assert [(run.task, run.state) for run in found] == [(2, "running"), (2, "failed"), (1, "failed"), (0, "running")]
    assert [found[0].id, found[1].id, found[3].id] == [at_work, last, worker.run_id]
    assert {run.id: run for run in worker.ledger.runs(worker.uid)}.items() >= {run.id: run for run in found}.items()


def test_what_is_said_of_all_is_said_of_each(worker: Worker) -> None:
    ledger, uid = worker.ledger, worker.uid
    other = Worker.started(ledger, "other")
    begun(other, "done", task=1)
    states = {Q0: PartitionState("quarantined", "it fails"), Q1: PartitionState("retired")}
    ledger.set_partition_states([worker.lease], uid, LIVE, states)
    ledger.set_target_state(uid, "paused", who="ann")
    ledger.set_target_state(uid, "running", who="ann")
    ledger.release(other.lease)
    found = ledger.standings()
    assert found == {**ledger.standings(uid), **ledger.standings(other.uid)}
    assert found.keys() == {uid, other.uid}
    mine, others = found[uid], found[other.uid]
    assert (mine.leases, others.leases) == (ledger.live_leases(uid), [])
    known = ledger.partition_states(uid)
    assert (mine.quarantined, others.quarantined) == ({Q0: known[Q0]}, {})
    assert mine.switched_at == ledger.audit(uid)[0].done_at
    assert others == Standing(runs=others.runs)
    assert ledger.standings(uid, switched=False)[uid] == replace(mine, switched_at=None)
