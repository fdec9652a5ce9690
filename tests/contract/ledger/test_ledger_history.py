"""What people read: runs, receipts, offsets, dead letters, who did what; and who the ledger is."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

import pytest

from connect_core import clock
from connect_core.errors import ConfigError, DataError, Failure, Fenced
from connect_core.ledger import Ledger, Wanted
from connect_core.sdk.values import LIVE, Floor, Gap, Position, Reject
from connect_core.work import Outcome
from tests.contract.ledger.samples import Q0, Q1, Worker, planned, receipt


def test_a_run_begins_and_ends(worker: Worker) -> None:
    ledger, uid = worker.ledger, worker.uid
    [running] = ledger.runs(uid)
    assert (running.id, running.state, running.stream, running.task) == (worker.run_id, "running", LIVE, 0)
    assert (running.engine, running.ended_at, running.failure, running.summary) == ("inline", None, None, None)
    failure = Failure("OffsetGone", "records are gone", "q0", "look")
    ledger.end_run(worker.run_id, state="failed", failure=failure, summary={"read": 5})
    [ended] = ledger.runs(uid)
    assert (ended.state, ended.failure, ended.summary) == ("failed", failure, {"read": 5})
    assert ended.ended_at is not None
    assert ended.ended_at >= ended.started_at


def test_runs_come_newest_first_and_their_ids_sort(worker: Worker) -> None:
    ledger = worker.ledger
    other = Worker.started(ledger, "other")
    time.sleep(0.002)
    again = ledger.begin_run(worker.uid, LIVE, task=0, engine="spark", attempt_of=worker.run_id)
    assert [run.id for run in ledger.runs()] == [again, other.run_id, worker.run_id]
    assert [run.id for run in ledger.runs(worker.uid)] == [again, worker.run_id]
    assert [run.id for run in ledger.runs(limit=1)] == [again]
    assert ledger.runs(limit=1)[0].attempt_of == worker.run_id
    assert again > worker.run_id


def test_runs_and_receipts_stand_behind_one_of_them(worker: Worker) -> None:
    ledger, uid = worker.ledger, worker.uid
    ids = [worker.move(Q0, 100 * n, 100 * n + 100) for n in range(3)]
    newest, *_ = ledger.receipts(uid)
    behind = ledger.receipts(uid, behind=(newest.settled_at, newest.id))
    assert [one.id for one in behind] == [ids[1], ids[0]]
    assert [one.id for one in ledger.receipts(uid, partition=Q1)] == []
    assert len(ledger.receipts(uid, partition=Q0)) == 3
    time.sleep(0.002)
    again = ledger.begin_run(uid, LIVE, task=0, engine="inline")
    [first, _] = ledger.runs(uid)
    assert [one.id for one in ledger.runs(uid, behind=(first.started_at, first.id))] == [worker.run_id]
    found = ledger.run(uid, again)
    assert found == first
    assert ledger.run("other", again) is None


def test_a_run_that_was_killed_is_lost_once_a_later_one_is_done(worker: Worker) -> None:
    ledger, uid = worker.ledger, worker.uid
    others = [
        ledger.begin_run(uid, LIVE, task=1, engine="inline"),
        ledger.begin_run(uid, "backfill-1", task=0, engine="inline"),
        Worker.started(ledger, "other").run_id,
    ]
    time.sleep(0.002)
    later = ledger.begin_run(uid, LIVE, task=0, engine="inline")
    ledger.end_run(later, state="failed", failure=Failure("LeaseHeld", "held"), summary={})
    assert ledger.runs(uid)[-1].state == "running"
    time.sleep(0.002)
    last = ledger.begin_run(uid, LIVE, task=0, engine="inline")
    ledger.end_run(last, state="done", failure=None, summary={})
    states = {run.id: run.state for run in ledger.runs()}
    assert states == {worker.run_id: "lost", later: "failed", last: "done", **dict.fromkeys(others, "running")}


def test_an_unknown_run_and_an_unknown_connector_are_told(ledger: Ledger) -> None:
    with pytest.raises(ConfigError, match="no run"):
        ledger.end_run("0000", state="done", failure=None, summary={})
    with pytest.raises(DataError, match="refused a row"):
        ledger.begin_run("0" * 12, LIVE, task=0, engine="inline")


def test_receipts_are_found_by_run_and_stream(worker: Worker) -> None:
    ledger, uid = worker.ledger, worker.uid
    ids = [worker.move(Q0, 100 * n, 100 * n + 100) for n in range(3)]
    backfill = ledger.begin_run(uid, "backfill-1", task=0, engine="inline")
    [opened] = ledger.plan([worker.lease], backfill, uid, 0, [planned(Q1, stream="backfill-1")], [])
    ledger.settle([worker.lease], backfill, uid, [Outcome(opened.id, receipt())])
    assert [one.id for one in ledger.receipts(uid)] == [opened.id, *reversed(ids)]
    assert [one.id for one in ledger.receipts(uid, backfill)] == [opened.id]
    assert [one.id for one in ledger.receipts(uid, stream=LIVE, limit=2)] == [ids[2], ids[1]]
    assert len(ledger.receipts(uid, limit=None)) == 4


def test_receipts_next_to_an_offset_are_found_without_the_others(worker: Worker) -> None:
    ledger, uid = worker.ledger, worker.uid
    assert ledger.receipts_near(uid, Q0, 0) is None
    ids = [worker.move(Q0, 10 * n, 10 * n + 10) for n in range(9)]
    nothing = worker.move(Q0, 90, 100, filtered=10, passed=0, emitted=0, delivered=0)
    worker.move(Q1, 0, 10)
    near = ledger.receipts_near(uid, Q0, 45, each_side=2)
    assert near is not None
    newest, around = near
    assert newest.id == nothing, "it says how far the partition was read"
    assert [one.id for one in around] == ids[2:6], "two that end before, the one that covers it, and one behind"
    assert [one.id for one in ledger.receipts_near(uid, Q0, 200)[1]] == ids  # type: ignore[index]


def test_receipts_of_a_former_incarnation_are_not_next_to_anything(worker: Worker) -> None:
    worker.move(Q0, 0, 100)
    [anew] = worker.plan(planned(Q0, 0, 50, incarnation=1, gaps=(Gap(0, 100, None, "recreated"),)))
    worker.settle(Outcome(anew.id, receipt(0, 50)))
    near = worker.ledger.receipts_near(worker.uid, Q0, 20)
    assert near is not None
    assert ([one.id for one in near[1]], near[0].incarnation) == ([anew.id], 1)


def test_offsets_by_stream_and_partition(worker: Worker) -> None:
    worker.move(Q1, 0, 5)
    worker.move(Q0, 0, 100)
    ledger, uid = worker.ledger, worker.uid
    ledger.set_offset([worker.lease], uid, "backfill-1", Q0, Position(0, 3), who="ann", why="")
    assert [(one.stream, one.partition, one.position.offset) for one in ledger.offsets(uid)] == [
        ("backfill-1", Q0, 3),
        (LIVE, Q0, 100),
        (LIVE, Q1, 5),
    ]
    assert [one.position for one in ledger.offsets(uid, LIVE)] == [
        Position(0, 100, {"last": 99}),
        Position(0, 5, {"last": 4}),
    ]


def test_dead_letters_are_discarded_by_their_numbers(worker: Worker) -> None:
    ledger, uid = worker.ledger, worker.uid
    rejects = tuple(Reject(n, 0, "read", "Bad", "m", b"") for n in range(3))
    worker.move(Q0, 0, 3, rejected=3, passed=0, emitted=0, delivered=0, rejects=rejects)
    first, second, third = reversed(ledger.dead_letters(uid))
    assert [one.id for one in ledger.dead_letters(uid, limit=1)] == [third.id]
    other = Worker.started(ledger, "other").uid
    assert ledger.discard_dead_letters(other, Wanted(ids=(first.id,)), who="bob", asked={}) == 0
    wanted = Wanted(ids=(first.id, third.id, 10**6))
    assert ledger.discard_dead_letters(uid, wanted, who="bob", why="noise", asked={"ids": [1]}) == 2
    assert ledger.dead_letters(uid) == [second]
    assert ledger.audit(uid)[0].detail == {"discarded": 2, "asked": {"ids": [1]}}
    assert ledger.discard_dead_letters(uid, wanted, who="bob", asked={}) == 0
    assert (ledger.dead_letter(first.id).state, second.state) == ("discarded", "open")
    assert ledger.dead_letter(first.id).original == b""
    with pytest.raises(ConfigError, match="no dead letter"):
        ledger.dead_letter(10**6)


def test_the_audit_is_of_one_connector_or_of_all(worker: Worker) -> None:
    Worker.started(worker.ledger, "other")
    assert [(deed.action, deed.who) for deed in worker.ledger.audit(worker.uid)] == [("create", "ann")]
    assert len(worker.ledger.audit()) == 2
    assert len(worker.ledger.audit(limit=1)) == 1


def test_a_restored_ledger_looks_before_it_writes(worker: Worker) -> None:
    ledger = worker.ledger
    worker.plan(planned(Q0), floors=[Floor(Q0.id, "copy:0", 5), Floor("", "/out", 6)])
    before = ledger.identity()
    count = before.counter
    assert ledger.mark_restored(counter=count + 40, who="ann") == 2
    assert all(floor.ahead for floor in ledger.floors(worker.uid, LIVE))
    assert (ledger.identity().id, ledger.identity().counter) == (before.id, count + 40)
    ledger.mark_restored(counter=1, who="ann")
    assert (ledger.identity().id, ledger.identity().counter) == (before.id, count + 40)
    assert ledger.take("target:x", None, "h").counter == count + 41


def test_a_ledger_knows_its_server_and_notices_another(worker: Worker) -> None:
    ledger = worker.ledger
    server = ledger.identity().server
    assert ledger.identity().known_server == ""
    if server:  # a SQLite file is on none
        ledger.note_server(server)
        assert (ledger.identity().known_server, ledger.identity().moved) == (server, False)
    ledger.note_server("another")
    assert ledger.identity().moved == bool(server)
    ledger.mark_restored(counter=0, who="ann")
    assert ledger.identity().known_server == server
    assert not ledger.identity().moved


def test_a_restored_ledger_has_taken_every_lease_away(worker: Worker) -> None:
    ledger, lease = worker.ledger, worker.lease
    ledger.mark_restored(counter=0, who="ann")
    with pytest.raises(Fenced):
        ledger.renew(lease, boot_id="b", deadline_ns=1, ttl_s=1)
    state = ledger.lease(lease.id)
    assert state is not None
    assert state.epoch > lease.epoch + 1000


def test_who_was_made_before_the_restore_may_have_been_forgotten(worker: Worker) -> None:
    ledger = worker.ledger
    assert not ledger.restored_since(worker.uid)
    ledger.mark_restored(counter=0, who="ann")
    assert ledger.restored_at() is not None
    assert ledger.restored_since(worker.uid)
    assert not ledger.restored_since(Worker.started(ledger, "younger").uid)


def test_a_clock_that_was_set_back_does_not_hide_who_may_have_been_forgotten(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    utc = clock.utc
    monkeypatch.setattr(clock, "utc", lambda: utc() - timedelta(hours=2))
    worker.ledger.mark_restored(counter=0, who="ann")
    assert worker.ledger.restored_since(worker.uid)


def test_what_a_run_has_settled_is_found_by_its_id_and_by_that_of_its_scheduler(worker: Worker) -> None:
    ledger, uid = worker.ledger, worker.uid
    first, second = (
        ledger.begin_run(uid, LIVE, task=0, engine="inline", attempt_of="replicate.orders manual__1") for _ in range(2)
    )
    ids = [replace(worker, run_id=first).move(Q0, 0, 10), replace(worker, run_id=second).move(Q0, 10, 30)]
    other = worker.move(Q1, 0, 5)
    for run, found in (
        (first, ids[:1]),
        ("replicate.orders manual__1", ids),
        ("manual__1", ids),
        (worker.run_id, [other]),
        ("l__1", []),
        ("%", []),
    ):
        assert [one.id for one in ledger.ranges_of_run(uid, run)] == found
    (one,) = ledger.ranges_of_run(uid, first)
    assert one.evidence == {"store_time": 7}
    assert ledger.ranges_of_run("another", first) == []


def test_ids_of_a_scheduler_as_long_as_it_allows_are_kept_whole(worker: Worker) -> None:
    ledger, uid = worker.ledger, worker.uid
    dag, run = f"replicate.{'d' * 240}", f"manual__{'r' * 242}"
    assert (len(dag), len(run)) == (250, 250)
    ids = [
        ledger.begin_run(uid, LIVE, task=0, engine="inline", attempt_of=f"{dag} {name}")
        for name in (run, f"{run[:-1]}s")
    ]
    settled = [replace(worker, run_id=one).move(Q0, at, at + 10) for at, one in zip((0, 10), ids, strict=True)]
    assert [one.id for one in ledger.runs_of(uid, f"{dag} {run}")] == ids[:1]
    for wanted in (run, f"{dag} {run}"):
        assert [one.id for one in ledger.ranges_of_run(uid, wanted)] == settled[:1]


def test_runs_and_history_of_one_stream(worker: Worker) -> None:
    ledger, uid = worker.ledger, worker.uid
    again = ledger.begin_run(uid, "backfill-1", task=0, engine="inline")
    worker.move(Q0, 0, 10)
    assert [run.id for run in ledger.runs(uid, stream="backfill-1")] == [again]
    assert [run.id for run in ledger.runs(uid, stream=LIVE)] == [worker.run_id]
    assert ledger.offset_history(uid, stream="backfill-1") == []
    assert [step.stream for step in ledger.offset_history(uid, stream=LIVE)] == [LIVE]
