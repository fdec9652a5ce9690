"""Ranges without an end: given one, taken back, and merged when they are settled."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest

from connect_core.errors import DataError, Fenced
from connect_core.ledger import runs
from connect_core.ledger.database import now
from connect_core.sdk.values import OPEN_END, Floor, FloorMove, Gap, Reject
from connect_core.work import Outcome, Receipt
from tests.contract.ledger.samples import Q0, Q1, Worker, planned, receipt

REJECT = Reject(7, 0, "encode", "Hated", "it is hated", b"x")


def part(begin: int, end: int, **changes: object) -> Receipt:
    """The receipt of a live range: digests that add up, stretches by place."""
    count = end - begin
    made = receipt(begin, end, digest_read=f"{count:016x}", digest_sent=f"lines:{count:016x}")
    return replace(made, where={"out": [[begin, end]]}, **changes)  # type: ignore[arg-type]


def follow(worker: Worker, *receipts: Receipt, partition=Q0) -> list[int]:  # type: ignore[no-untyped-def]
    """Settles one live range after the other; their ids."""
    ids = []
    for one in receipts:
        [opened] = worker.plan(planned(partition, one.begin, OPEN_END))
        worker.settle(Outcome(opened.id, one))
        ids.append(opened.id)
    return ids


def told(worker: Worker) -> list[Receipt]:
    return [one.receipt for one in reversed(worker.ledger.receipts(worker.uid))]


def test_receipts_that_adjoin_become_one_beside_the_newest(worker: Worker) -> None:
    ids = follow(worker, part(0, 10), part(10, 30), part(30, 31), part(31, 50))
    merged, newest = told(worker)
    assert newest == part(31, 50)
    assert merged == part(0, 31, evidence={"last": 30}, seconds=0.75)
    assert merged.identity_faults() == []
    assert [one.id for one in worker.ledger.receipts(worker.uid)] == [ids[3], ids[0]]
    assert worker.position().offset == 50  # type: ignore[union-attr]
    assert [(step.before.offset, step.after.offset) for step in worker.ledger.offset_history(worker.uid)] == [  # type: ignore[union-attr]
        (0, 31),
        (31, 50),
    ]


def test_each_partition_keeps_its_own(worker: Worker) -> None:
    follow(worker, part(0, 10), part(10, 30), part(30, 31))
    follow(worker, part(0, 5), part(5, 6), part(6, 9), partition=Q1)
    spans = [(one.partition, one.receipt.begin, one.receipt.end) for one in worker.ledger.receipts(worker.uid)]
    assert sorted(spans) == sorted([(Q0, 0, 30), (Q0, 30, 31), (Q1, 0, 6), (Q1, 6, 9)])


def test_another_run_does_not_touch_the_receipts_of_the_one_before(worker: Worker) -> None:
    follow(worker, part(0, 10), part(10, 30))
    after = worker.taken_over()
    follow(after, part(30, 40), part(40, 50), part(50, 60))
    assert [(one.begin, one.end) for one in told(after)] == [(0, 10), (10, 30), (30, 50), (50, 60)]


def test_what_belongs_to_a_merged_receipt_goes_with_it(worker: Worker) -> None:
    gap = Gap(0, 12, 14, "missing")
    counts = {"rejected": 1, "passed": 19, "emitted": 19, "delivered": 19}
    odd = part(10, 30, rejects=(REJECT,), gaps=(gap,), **counts)
    first, *_ = follow(worker, part(0, 10), odd, part(30, 31))
    [letter] = worker.ledger.dead_letters(worker.uid)
    assert letter.offset == 7
    assert [stored.gap for stored in worker.ledger.gaps(worker.uid)] == [gap]
    assert told(worker)[0].gaps == (gap,)
    assert worker.ledger.receipts(worker.uid)[-1].id == first


@pytest.mark.parametrize(
    "second",
    [
        part(10, 30, digest_sent="sha256:00"),
        part(10, 30, reconstructed=True),
        replace(part(10, 30), where={"path": "/x"}),
    ],
    ids=["digests that do not add up", "reconstructed", "places that are not stretches"],
)
def test_what_does_not_go_together_stays_apart(worker: Worker, second: Receipt) -> None:
    follow(worker, part(0, 10), second, part(30, 31), part(31, 32), part(32, 33))
    assert [(one.begin, one.end) for one in told(worker)] == [(0, 10), (10, 30), (30, 32), (32, 33)]


def test_ranges_with_an_end_are_not_merged(worker: Worker) -> None:
    for begin in (0, 100, 200):
        worker.move(Q0, begin, begin + 100)
    assert len(told(worker)) == 3


def test_the_same_outcome_again_is_nothing_after_a_merge(worker: Worker) -> None:
    follow(worker, part(0, 10), part(10, 30))
    [opened] = worker.plan(planned(Q0, 30, OPEN_END))
    for _ in range(2):
        worker.settle(Outcome(opened.id, part(30, 40)))
    assert [(one.begin, one.end) for one in told(worker)] == [(0, 30), (30, 40)]


def test_a_live_range_that_closed_has_no_rest(worker: Worker) -> None:
    """Even where a record stands ahead in a target: nobody planned it to an end."""
    [opened] = worker.plan(planned(Q0, 0, OPEN_END), floors=[Floor(Q0.id, "out", 0)])
    worker.settle(Outcome(opened.id, part(0, 10, floors=(FloorMove(0, Floor(Q0.id, "out", 5, ahead=True)),))))
    assert worker.ledger.rests(worker.uid, "live") == []


def test_an_open_one_gets_an_end(worker: Worker) -> None:
    [opened] = worker.plan(planned(Q0, 0, OPEN_END))
    worker.ledger.bound([worker.lease], {opened.id: 70})
    [seen] = worker.ledger.open_ranges(worker.uid, "live")
    assert (seen.range.end, seen.range.live) == (70, False)
    with pytest.raises(DataError, match="has an end"):
        worker.ledger.bound([worker.lease], {opened.id: 80})


def test_an_open_one_is_taken_back_without_a_trace(worker: Worker) -> None:
    [opened] = worker.plan(planned(Q0, 0, OPEN_END))
    worker.ledger.withdraw([worker.lease], [opened.id])
    assert worker.open_ids() == []
    assert worker.ledger.receipts(worker.uid) == []
    with pytest.raises(DataError, match="is no longer open"):
        worker.ledger.withdraw([worker.lease], [opened.id])
    worker.plan(planned(Q0, 0, OPEN_END))


@pytest.mark.parametrize("settled", [True, False])
def test_one_that_is_settled_or_adopted_is_not_taken_back(worker: Worker, settled: bool) -> None:
    range_id = worker.move(Q0, 0, 100) if settled else worker.plan(planned(Q0, 0, 100))[0].id
    if not settled:
        worker.ledger.adopt([worker.lease], worker.run_id, [range_id])
    with pytest.raises(DataError):
        worker.ledger.withdraw([worker.lease], [range_id])


def test_one_with_an_end_is_taken_back_by_the_attempt_that_planned_it(worker: Worker) -> None:
    [opened] = worker.plan(planned(Q0, 0, 100))
    worker.ledger.withdraw([worker.lease], [opened.id])
    assert worker.open_ids() == []
    worker.plan(planned(Q0, 0, 100))


def test_who_lost_its_lease_changes_nothing(worker: Worker) -> None:
    [opened] = worker.plan(planned(Q0, 0, OPEN_END))
    worker.taken_over()
    with pytest.raises(Fenced):
        worker.ledger.withdraw([worker.lease], [opened.id])
    with pytest.raises(Fenced):
        worker.ledger.bound([worker.lease], {opened.id: 70})
    assert worker.open_ids() == [opened.id]


# ------------------------------------------------------------------------------------------------- runs with nothing


@pytest.fixture
def no_two_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run ids sort by the millisecond of their start; runs of one task are never begun within the same one but here."""
    moments = (now() + timedelta(milliseconds=number) for number in count(1))
    monkeypatch.setattr(runs, "now", lambda: next(moments))


@pytest.mark.usefixtures("no_two_at_once")
def test_of_runs_with_nothing_to_do_the_last_one_is_kept(worker: Worker) -> None:
    ledger, uid = worker.ledger, worker.uid
    ids = [ledger.begin_run(uid, "live", task=0, engine="inline") for _ in range(4)]
    for run_id, ranges in zip(ids, [0, 2, 0, 0], strict=True):
        ledger.end_run(run_id, state="done", failure=None, summary={"ranges": ranges})
    assert [run.id for run in ledger.runs(uid)][:3] == [ids[3], ids[1], ids[0]]


@pytest.mark.usefixtures("no_two_at_once")
def test_a_run_that_left_a_range_open_is_kept(worker: Worker) -> None:
    worker.plan(planned(Q0, 0, 100))
    ledger, uid = worker.ledger, worker.uid
    ledger.end_run(worker.run_id, state="done", failure=None, summary={"ranges": 0})
    later = ledger.begin_run(uid, "live", task=0, engine="inline")
    ledger.end_run(later, state="done", failure=None, summary={"ranges": 0})
    assert [run.id for run in ledger.runs(uid)] == [later, worker.run_id]
