"""Dead letters on their way to a second target: numbered in the order in which they are seen, each settled once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from connect_core.errors import Fenced
from connect_core.ledger import Wanted
from connect_core.sdk.records import Partition
from connect_core.sdk.values import ERRORS_SINK, Part, Position, Reject
from connect_core.work import Outcome
from tests.contract.ledger.samples import Q0, Q1, Worker, planned, receipt
from tests.contract.ledger.test_ledger_growth import plans, statements
from tests.contract.ledger.test_ledger_letters import attempt, plan, reject, told

BOTH = (Q0, Q1)


def rejected(worker: Worker, partition: Partition, begin: int, *rejects: Reject, to_sink: bool = True) -> None:
    """A range of 10 records of which these are rejected."""
    [opened] = worker.plan(planned(partition, begin, begin + 10, stream=worker.stream))
    left = 10 - len(rejects)
    counts: dict[str, Any] = {"rejected": len(rejects), "passed": left, "emitted": left, "delivered": left}
    outcome = Outcome(opened.id, receipt(begin, begin + 10, **counts, rejects=rejects))
    worker.ledger.settle([worker.lease], worker.run_id, worker.uid, [outcome], to_sink=to_sink)


def numbers(worker: Worker) -> dict[int, int | None]:
    """By offset of the rejected record of Q0 and Q1."""
    found = worker.ledger.dead_letters(worker.uid, wanted=Wanted(states=("open", "replayed", "discarded")))
    return {one.offset: one.sink_number for one in found}


def sent(worker: Worker, part: Part, *refused: Reject) -> Worker:
    run = attempt(worker, ERRORS_SINK)
    opened = plan(run, part.partition, part.begin, part.end)
    run.settle(Outcome(opened.id, told(part.begin, part.end, *refused)))
    return run


def test_only_what_is_rejected_while_there_is_a_second_target_goes_there(worker: Worker) -> None:
    rejected(worker, Q0, 0, reject(3), to_sink=False)
    rejected(worker, Q0, 10, reject(13), reject(14))
    rejected(worker, Q1, 20, reject(21))
    assert worker.ledger.letters_waiting(worker.uid) == 3
    parts = worker.ledger.number_letters(worker.uid, BOTH)
    assert sorted(parts, key=lambda one: one.partition) == [Part(Q0, 0, 0, 2), Part(Q1, 0, 0, 1)]
    assert numbers(worker) == {3: None, 13: 0, 14: 1, 21: 0}
    assert worker.ledger.positions(worker.uid, ERRORS_SINK, [Q0])[Q0] == Position(0, 0)
    assert worker.ledger.number_letters(worker.uid, BOTH) == parts, "they have their numbers"


def test_a_letter_of_another_stream_that_comes_late_is_not_passed_over(worker: Worker) -> None:
    """A backfill writes letters of the same partition under another lease: one with a lower row may come later."""
    rejected(worker, Q0, 10, reject(13))
    with worker.ledger._engine.begin() as connection:
        connection.exec_driver_sql("UPDATE dead_letters SET id = 1000")
    sent(worker, *worker.ledger.number_letters(worker.uid, BOTH))
    rejected(worker, Q0, 20, reject(23))
    with worker.ledger._engine.begin() as connection:
        connection.exec_driver_sql("UPDATE dead_letters SET id = 5 WHERE record_offset = 23")
    assert worker.ledger.number_letters(worker.uid, BOTH) == (Part(Q0, 0, 1, 2),)
    assert numbers(worker) == {13: 0, 23: 1}


def test_settled_letters_say_by_which_run_and_what_was_refused(worker: Worker) -> None:
    rejected(worker, Q0, 10, reject(13), reject(14))
    [part] = worker.ledger.number_letters(worker.uid, BOTH)
    letters, upto = worker.ledger.letters_to_send(worker.uid, Q0, 0, 2, 10, 1 << 20)
    assert ([(one.number, one.letter.offset, one.task) for one in letters], upto) == ([(0, 13, 0), (1, 14, 0)], 2)
    run = sent(worker, part, reject(1, "encode"))
    found = {one.offset: (one.sink_run, one.sink_refused) for one in worker.ledger.dead_letters(worker.uid)}
    assert found == {13: (run.run_id, None), 14: (run.run_id, "NotParsed: 100% no_1")}
    assert worker.ledger.letters_waiting(worker.uid) == 0
    assert worker.ledger.number_letters(worker.uid, BOTH) == ()
    assert len(worker.ledger.dead_letters(worker.uid)) == 2, "what is refused there is no new letter"
    second = worker.ledger.letter_sent(worker.uid, Q0.id, 1)
    assert second is not None
    assert second.offset == 14


def test_what_is_read_at_once_is_cut_by_records_and_bytes(worker: Worker) -> None:
    rejected(worker, Q0, 0, reject(1), reject(2), reject(3))
    worker.ledger.number_letters(worker.uid, BOTH)
    for most, size, wanted in ((2, 1 << 20, 2), (10, 3, 1), (10, 1, 1)):
        letters, upto = worker.ledger.letters_to_send(worker.uid, Q0, 0, 3, most, size)
        assert (len(letters), upto) == (wanted, wanted)


def test_a_record_that_is_rejected_once_more_keeps_its_number(worker: Worker) -> None:
    """A person has moved the offset back, and the document has no second target any more."""
    rejected(worker, Q0, 0, reject(3))
    parts = worker.ledger.number_letters(worker.uid, BOTH)
    worker.ledger.set_offset([worker.lease], worker.uid, worker.stream, Q0, Position(0, 0), who="ann", why="again")
    rejected(worker, Q0, 0, reject(3), to_sink=False)
    assert numbers(worker) == {3: 0}
    assert worker.ledger.number_letters(worker.uid, BOTH) == parts


def test_partitions_that_nobody_has_wait(worker: Worker) -> None:
    rejected(worker, Q0, 0, reject(3))
    assert worker.ledger.number_letters(worker.uid, [Q1]) == ()
    assert worker.ledger.letters_waiting(worker.uid) == 1


def test_a_restored_ledger_gives_no_number_twice(worker: Worker) -> None:
    rejected(worker, Q0, 0, reject(3))
    sent(worker, *worker.ledger.number_letters(worker.uid, BOTH))
    before = datetime.now(UTC).timestamp()
    worker.ledger.mark_restored(counter=0, who="ann")
    following = worker.taken_over()
    rejected(following, Q0, 10, reject(13))
    [part] = following.ledger.number_letters(following.uid, BOTH)
    assert part.begin >= before * 1_000_000
    assert part.end == part.begin + 1


def test_what_is_on_its_way_is_not_erased(worker: Worker) -> None:
    rejected(worker, Q0, 0, reject(3))
    parts = worker.ledger.number_letters(worker.uid, BOTH)
    worker.ledger.discard_dead_letters(worker.uid, Wanted(), who="ann", asked={})
    gone = Wanted(states=("replayed", "discarded"))
    assert worker.ledger.erase_dead_letters(worker.uid, gone, who="ann", asked={}) == 0
    sent(worker, *parts)
    assert worker.ledger.erase_dead_letters(worker.uid, gone, who="ann", asked={}) == 1


@pytest.mark.parametrize(
    ("take", "index"),
    [
        (lambda w: w.ledger.letters_waiting(w.uid), "ix_dead_letters_unsent"),
        (lambda w: w.ledger.letters_to_send(w.uid, Q0, 9, 10, 5, 1 << 20), "sink_number"),
    ],
)
def test_what_was_sent_is_not_read_again(worker: Worker, take: Any, index: str) -> None:
    rejected(worker, Q0, 0, reject(3))
    with worker.ledger._engine.begin() as connection:
        for number in range(100, 3000):
            connection.exec_driver_sql(
                "INSERT INTO dead_letters (uid, stream, partition_id, partition_key, incarnation, record_offset,"
                " ordinal, stage, kind, message, original, range_id, run_id, stored_at, to_sink, sink_number, sink_run)"
                f" SELECT uid, stream, partition_id, partition_key, incarnation, {number}, ordinal, stage, kind,"
                f" message, original, range_id, run_id, stored_at, to_sink, {number}, run_id FROM dead_letters"
                " WHERE record_offset = 3"
            )
        connection.exec_driver_sql("ANALYZE")
    with statements(worker) as seen:
        take(worker)
    for one in plans(worker, seen, "dead_letters"):
        assert index in one, one


def test_letters_that_are_redirected_get_numbers_that_were_never_planned(worker: Worker) -> None:
    """The former target may hold some of them by their old ones."""
    rejected(worker, Q0, 0, reject(3), reject(4))
    rejected(worker, Q1, 0, reject(5))
    parts = worker.ledger.number_letters(worker.uid, BOTH)
    run = attempt(worker, ERRORS_SINK)
    plan(run, Q0, 0, 2)
    assert [(one.partition, one.letters) for one in run.ledger.letters_on_their_way(run.uid)] == [
        (Q0.key, 2),
        (Q1.key, 1),
    ]
    assert run.ledger.redirect_letters([run.lease], run.uid, who="ann", why="gone") == 3
    assert run.open_ids() == []
    assert run.ledger.letters_on_their_way(run.uid) == []
    assert run.ledger.letters_waiting(run.uid) == 3
    again = run.ledger.number_letters(run.uid, BOTH)
    assert sorted(again, key=lambda one: one.partition) == [Part(Q0, 0, 2, 4), Part(Q1, 0, 0, 1)]
    assert len(parts) == 2


def test_nothing_is_redirected_under_a_lease_that_is_lost(worker: Worker) -> None:
    rejected(worker, Q0, 0, reject(3))
    worker.ledger.number_letters(worker.uid, BOTH)
    run = attempt(worker, ERRORS_SINK)
    attempt(worker, ERRORS_SINK)
    with pytest.raises(Fenced):
        run.ledger.redirect_letters([run.lease], run.uid, who="ann", why="")
    assert numbers(worker) == {3: 0}
