"""Backfills in the ledger: begun once, with their positions, and over when they are over."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from connect_core.errors import ConfigError
from connect_core.ledger import Backfill, Ledger
from connect_core.sdk.values import LIVE, Floor, Part, Position
from tests.contract.ledger.samples import Q0, Q1, Worker, planned

PARTS = (
    Part(Q0, 0, 5, 10, {"before": 4}),
    Part(Q0, 1, 2, 4),
    Part(Q1, 0, 0, 7),
)


def wanted(uid: str, stream: str = "backfill-1") -> Backfill:
    asked = {"from": "2026-11-01T00:00:00+00:00", "to": None}
    return Backfill(uid, stream, "backfill", 3, asked, PARTS, {"topic": "again"}, who="ann", why="a hole")


def test_a_backfill_is_stored_with_the_begin_of_each_partition(worker: Worker) -> None:
    begun = worker.ledger.begin_backfill(wanted(worker.uid))
    assert begun.created_at is not None
    assert begun == replace(wanted(worker.uid), created_at=begun.created_at)
    assert worker.ledger.backfill(worker.uid, "backfill-1") == begun
    assert worker.ledger.positions(worker.uid, "backfill-1", [Q0, Q1]) == {
        Q0: Position(0, 5, {"before": 4}),
        Q1: Position(0, 0),
    }
    assert worker.ledger.positions(worker.uid, LIVE, [Q0, Q1]) == {Q0: None, Q1: None}
    assert [(deed.action, deed.who, deed.why) for deed in worker.ledger.audit(worker.uid, 1)] == [
        ("backfill", "ann", "a hole")
    ]


def test_who_comes_later_gets_what_is_stored(worker: Worker) -> None:
    first = worker.ledger.begin_backfill(wanted(worker.uid))
    other = replace(wanted(worker.uid), parts=(Part(Q1, 0, 3, 4),), who="bob")
    assert worker.ledger.begin_backfill(other) == first
    assert worker.ledger.positions(worker.uid, "backfill-1", [Q1])[Q1] == Position(0, 0)
    assert len(worker.ledger.backfills(worker.uid)) == 1


def test_of_several_at_once_one_is_the_first(worker: Worker) -> None:
    offers = [replace(wanted(worker.uid), who=f"task {task}") for task in range(4)]
    with ThreadPoolExecutor(4) as pool:
        stored = list(pool.map(worker.ledger.begin_backfill, offers))
    assert len({one.who for one in stored}) == 1
    assert len([deed for deed in worker.ledger.audit(worker.uid) if deed.action == "backfill"]) == 1


def test_a_stream_belongs_to_its_connector(ledger: Ledger) -> None:
    first, second = Worker.started(ledger, "first"), Worker.started(ledger, "second")
    ledger.begin_backfill(wanted(first.uid))
    assert ledger.backfill(second.uid, "backfill-1") is None
    ledger.begin_backfill(wanted(second.uid, "backfill-2"))
    assert [one.stream for one in ledger.backfills(second.uid)] == ["backfill-2"]
    assert sorted(one.stream for one in ledger.backfills()) == ["backfill-1", "backfill-2"]


def test_a_backfill_of_no_connector_is_refused(ledger: Ledger) -> None:
    with pytest.raises(ConfigError, match="no connector with uid 123456789abc"):
        ledger.begin_backfill(wanted("123456789abc"))


def test_the_live_stream_and_nothing_at_all_are_no_backfill(worker: Worker) -> None:
    for none in (wanted(worker.uid, LIVE), replace(wanted(worker.uid), parts=())):
        with pytest.raises(ValueError, match="is no backfill"):
            worker.ledger.begin_backfill(none)


def state(worker: Worker) -> tuple[str, bool]:
    stored = worker.ledger.backfill(worker.uid, "backfill-1")
    assert stored is not None
    return stored.state, stored.ended_at is not None


def test_one_that_failed_goes_on_and_one_that_is_done_does_not(worker: Worker) -> None:
    ledger, key = worker.ledger, (worker.uid, "backfill-1")
    ledger.begin_backfill(wanted(worker.uid))
    assert state(worker) == ("running", False)
    ledger.end_backfill(*key, "failed")
    assert state(worker) == ("failed", True)
    ledger.resume_backfill(*key)
    assert state(worker) == ("running", False)
    ledger.end_backfill(*key, "done")
    ledger.end_backfill(*key, "failed")
    ledger.resume_backfill(*key)
    assert not ledger.cancel_backfill(*key, who="bob")
    assert state(worker) == ("done", True)


def test_one_that_was_cancelled_stays_so(worker: Worker) -> None:
    ledger, key = worker.ledger, (worker.uid, "backfill-1")
    ledger.begin_backfill(wanted(worker.uid))
    assert ledger.cancel_backfill(*key, who="bob", why="wrong day")
    ledger.end_backfill(*key, "done")
    ledger.resume_backfill(*key)
    assert state(worker) == ("cancelled", True)
    assert not ledger.cancel_backfill(*key, who="bob")
    deed = ledger.audit(worker.uid, 1)[0]
    assert (deed.action, deed.who, deed.why, deed.detail) == (
        "cancel backfill",
        "bob",
        "wrong day",
        {"stream": "backfill-1"},
    )


def backfill_writes(worker: Worker, stream: str, target: str) -> None:
    worker.ledger.begin_backfill(wanted(worker.uid, stream))
    work = planned(Q1, 0, 7, stream=stream)
    worker.ledger.plan([worker.lease], worker.run_id, worker.uid, 0, [work], [Floor("", target, 1)])


def test_a_target_is_written_by_streams(ledger: Ledger) -> None:
    first, second = Worker.started(ledger, "first"), Worker.started(ledger, "second")
    first.plan(planned(Q0), floors=[Floor("", "/live", 1)])
    backfill_writes(first, "backfill-1", "/again")
    assert ledger.other_writers(first.uid, LIVE, ["/live", "/again"]) == [("/again", "first", "backfill-1")]
    assert ledger.other_writers(first.uid, "backfill-1", ["/live", "/again"]) == [("/live", "first", LIVE)]
    assert ledger.other_writers(first.uid, "backfill-2", ["/again"]) == [("/again", "first", "backfill-1")]
    assert ledger.other_writers(second.uid, LIVE, ["/again"]) == [("/again", "first", "backfill-1")]


def test_a_backfill_that_is_over_has_its_target_no_longer(worker: Worker) -> None:
    ledger = worker.ledger
    for number, over in enumerate(("done", "failed")):
        stream = f"backfill-{number}"
        backfill_writes(worker, stream, f"/{over}")
        ledger.end_backfill(worker.uid, stream, over)  # type: ignore[arg-type]
    backfill_writes(worker, "backfill-2", "/cancelled")
    ledger.cancel_backfill(worker.uid, "backfill-2", who="ann")
    writers = ledger.other_writers(worker.uid, LIVE, ["/done", "/failed", "/cancelled"])
    assert [writer.target for writer in writers] == ["/failed"]
