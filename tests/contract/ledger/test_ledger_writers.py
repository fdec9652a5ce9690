"""Who stores a document or a backfill has checked it beside all that there are by then."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from connect_core.ledger import Backfill, Ledger, Wanted, WritersChanged
from connect_core.sdk.values import Part
from tests.contract.ledger.samples import Q0, Worker

DRAFT = Backfill("", "backfill-1", "backfill", 1, {}, (Part(Q0, 0, 0, 7),), {"path": "/out"}, "ann")


def test_what_was_checked_beside_less_is_not_stored(worker: Worker) -> None:
    ledger, uid = worker.ledger, worker.uid
    seen = ledger.writers_seen()
    ledger.apply("other", {"n": 1}, who="bob")
    with pytest.raises(WritersChanged):
        ledger.apply_all({"late": {"n": 1}}, who="ann", seen=seen)
    with pytest.raises(WritersChanged):
        ledger.begin_backfill(replace(DRAFT, uid=uid), seen)
    replay = replace(DRAFT, uid=uid, stream="dead-letters-1", kind="dead-letters")
    with pytest.raises(WritersChanged):
        ledger.begin_letter_replay(replay, Wanted(), [Q0], seen=seen)
    assert ledger.connector_named("late") is None
    assert ledger.backfills(uid) == []
    seen = ledger.writers_seen()
    ledger.begin_backfill(replace(DRAFT, uid=uid), seen)
    with pytest.raises(WritersChanged):
        ledger.apply_all({"late": {"n": 1}}, who="ann", seen=seen)
    ledger.apply_all({"late": {"n": 1}}, who="ann", seen=ledger.writers_seen())


def test_who_comes_second_with_the_same_backfill_gets_what_is_stored(worker: Worker) -> None:
    """As the tasks of one backfill do: their own is nothing that came in between."""
    seen = worker.ledger.writers_seen()
    first = worker.ledger.begin_backfill(replace(DRAFT, uid=worker.uid), seen)
    assert worker.ledger.begin_backfill(replace(DRAFT, uid=worker.uid), seen) == first


def test_what_changes_no_writer_is_no_reason(worker: Worker) -> None:
    seen = worker.ledger.writers_seen()
    worker.ledger.set_target_state(worker.uid, "paused", who="ann")
    worker.ledger.begin_backfill(replace(DRAFT, uid=worker.uid), seen)


def test_of_many_at_once_one_gets_the_file(url: str, ledger: Ledger) -> None:
    """Each checks first that no document has it, as `apply` does, in a session of its own."""
    together = threading.Barrier(6)

    def applying(number: int) -> bool:
        with Ledger.open(url) as mine:
            together.wait()
            while True:
                seen = mine.writers_seen()
                if any(one.document.get("path") == "/out" for one in mine.connectors()):
                    return False
                try:
                    mine.apply_all({f"c{number}": {"path": "/out"}}, who="ann", seen=seen)
                except WritersChanged:
                    continue
                return True

    for _ in range(5):
        for one in ledger.connectors():
            ledger.delete(one.uid, who="ann")
        with ThreadPoolExecutor(6) as pool:
            assert sorted(pool.map(applying, range(6))) == [False] * 5 + [True]
