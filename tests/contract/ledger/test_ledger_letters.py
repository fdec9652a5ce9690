"""Dead letters in the ledger: chosen by what people say, taken by one replay at a time, settled with its offset."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from connect_core.errors import Fenced
from connect_core.ledger import REPLAY_KIND, Backfill, Ledger, Wanted, replay_stream, task_lease_id
from connect_core.sdk.records import Partition
from connect_core.sdk.values import LIVE, OpenRange, Part, Position, Reject
from connect_core.work import SEALED_MARK, Letter, LetterPlace, Outcome, Receipt
from tests.contract.ledger.samples import Q0, Q1, Worker, planned, receipt
from tests.contract.ledger.test_ledger_growth import plans, statements

BOTH = (Q0, Q1)
STREAM = replay_stream("1")
WHOLE: dict[str, Any] = {"key": "k\0y", "headers": [["a", "1"], ["a", "2"]], "timestamp": 7}
ANY = Wanted()


def reject(offset: int, stage: str = "parse", **changes: Any) -> Reject:
    made = Reject(offset, 0, stage, "NotParsed", f"100% no_{offset}", b"r%d" % offset, "orders", WHOLE)
    return replace(made, **changes)


def rejected(worker: Worker, partition: Partition, *rejects: Reject, begin: int = 0, end: int = 100) -> None:
    counts = {"rejected": len(rejects), "passed": end - begin - len(rejects)}
    worker.move(partition, begin, end, **counts, emitted=counts["passed"], delivered=counts["passed"], rejects=rejects)


@pytest.fixture
def five(worker: Worker) -> Worker:
    """Letters 1 to 3 of Q0, 4 and 5 of Q1."""
    rejected(worker, Q0, reject(3), reject(5, "encode"), reject(9))
    rejected(worker, Q1, reject(1), reject(2))
    return worker


def begin(worker: Worker, wanted: Wanted = ANY, stream: str = STREAM, *, again: bool = False) -> Backfill | None:
    draft = Backfill(worker.uid, stream, REPLAY_KIND, 1, {}, (), {}, who="ann")
    return worker.ledger.begin_letter_replay(draft, wanted, BOTH, again=again)


def attempt(worker: Worker, stream: str = STREAM) -> Worker:
    """Of a replay: its task has a lease of its own."""
    name = task_lease_id(worker.uid, stream, 1, 0)
    lease = worker.ledger.take(name, worker.ledger.lease(name), "replay", uid=worker.uid, stream=stream, version=1)
    run = worker.ledger.begin_run(worker.uid, stream, task=0, engine="inline")
    return Worker(worker.ledger, worker.uid, lease, run, stream)


def plan(worker: Worker, partition: Partition, begin: int, end: int) -> OpenRange:
    [opened] = worker.plan(planned(partition, begin, end, stream=worker.stream))
    return opened


def told(begin: int, end: int, *rejects: Reject, read: int | None = None) -> Receipt:
    read = end - begin if read is None else read
    passed = read - len(rejects)
    return receipt(
        begin,
        end,
        read=read,
        absent=end - begin - read,
        rejected=len(rejects),
        passed=passed,
        emitted=passed,
        delivered=passed,
        rejects=rejects,
    )


def states(worker: Worker) -> dict[int, str]:
    found = worker.ledger.dead_letters(worker.uid, wanted=Wanted(states=("open", "replayed", "discarded")))
    return {one.id: one.state for one in reversed(found)}


def chosen(worker: Worker, wanted: Wanted = ANY, *, again: bool = False) -> list[int]:
    choice = worker.ledger.choose_dead_letters(worker.uid, wanted, BOTH, again=again)
    return [number for _, number in choice.sent]


# --------------------------------------------------------------------------------------------------------- what is kept


def test_what_a_record_had_beside_its_payload_is_kept(five: Worker) -> None:
    assert five.ledger.dead_letter(1).attributes == WHOLE


def test_letters_are_chosen_by_what_people_say(five: Worker) -> None:
    ledger, uid = five.ledger, five.uid
    at = ledger.dead_letter(4).stored_at

    def numbers(wanted: Wanted) -> list[int]:
        return [one.id for one in reversed(ledger.dead_letters(uid, wanted=wanted))]

    assert numbers(ANY) == [1, 2, 3, 4, 5]
    assert numbers(Wanted(stage="encode")) == [2]
    assert numbers(Wanted(partition="broker-a:1")) == [4, 5]
    assert numbers(Wanted(partition="broker_a")) == numbers(Wanted(partition="%")) == []
    assert numbers(Wanted(reason="100% NO_3")) == [1]
    assert numbers(Wanted(reason="notparsed", ids=(2, 5, 77))) == [2, 5]
    assert numbers(Wanted(run=five.run_id)) == [1, 2, 3, 4, 5]
    assert numbers(Wanted(run="nobody")) == numbers(Wanted(until=at - timedelta(days=1))) == []
    assert numbers(Wanted(since=at, newest=4)) == [4]
    assert numbers(Wanted(states=("discarded",))) == []
    assert [one.id for one in ledger.dead_letters_behind(uid, ANY, 2, 2)] == [3, 4]
    assert {one.original for one in ledger.dead_letters(uid, payloads=False)} == {b""}
    counts = ledger.count_dead_letters(uid, ANY)
    assert [tuple(one) for one in counts] == [
        (Q0.key, "encode", 1, 2),
        (Q0.key, "parse", 2, 4),
        (Q1.key, "parse", 2, 4),
    ]


def test_of_one_that_is_encrypted_a_list_has_the_beginning(worker: Worker) -> None:
    """Which says with which key, also where a part of the record is kept."""
    held = SEALED_MARK + b"k" * 16 + b"\xff" * 1000
    rejected(worker, Q0, reject(3, original=held), reject(5, original=held, attributes=None), reject(9, original=b""))
    listed = worker.ledger.dead_letters(worker.uid, payloads=False)
    assert [one.original for one in reversed(listed)] == [held[:64], held[:64], b""]


# ------------------------------------------------------------------------------------------------- what a replay takes


def test_a_replay_takes_its_letters_and_no_other_gets_them(five: Worker) -> None:
    stored = begin(five, Wanted(stage="parse"))
    assert stored is not None
    assert stored.parts == (Part(Q0, 0, 1, 4), Part(Q1, 0, 4, 6))
    assert five.ledger.positions(five.uid, STREAM, BOTH) == {Q0: Position(0, 1), Q1: Position(0, 4)}
    letters = five.ledger.letters_of(five.uid, STREAM, Q0, 1, 4, 1000, 1 << 20)
    places = [LetterPlace(five.uid, "live", Q0.id, 0, offset, 0, "parse") for offset in (3, 9)]
    assert letters.rows == (
        Letter(1, b"r3", "orders", WHOLE, places[0]),
        Letter(3, b"r9", "orders", WHOLE, places[1]),
    )
    assert letters.upto == 4
    choice = five.ledger.choose_dead_letters(five.uid, ANY, BOTH)
    assert ([number for _, number in choice.sent], choice.left_out) == ([2], {"taken": 4})
    assert begin(five, Wanted(stage="parse"), replay_stream("2")) is None
    assert begin(five, Wanted(stage="encode")) == stored  # of this stream it is begun
    assert five.ledger.discard_dead_letters(five.uid, ANY, who="ann", asked={}) == 1
    assert states(five) == {1: "open", 2: "discarded", 3: "open", 4: "open", 5: "open"}
    assert five.ledger.choose_dead_letters(five.uid, Wanted(ids=(1, 2)), BOTH).left_out == {"taken": 1, "discarded": 1}


def test_letters_of_a_range_are_bounded(five: Worker) -> None:
    begin(five)

    def of(begin: int, records: int, size: int) -> tuple[list[int], int]:
        letters = five.ledger.letters_of(five.uid, STREAM, Q0, begin, 4, records, size)
        return [one.id for one in letters.rows], letters.upto

    assert of(1, 2, 100) == ([1, 2], 3)
    assert of(1, 100, 3) == ([1], 2)
    assert of(1, 100, 1) == ([1], 2)  # one at least
    assert of(3, 100, 100) == ([3], 4)
    assert of(4, 100, 100) == ([], 4)


def test_of_a_record_with_several_letters_the_newest_that_is_whole_is_sent(worker: Worker) -> None:
    """It was rejected at three stages; the last one has no more than what was to be written."""
    for stage, changes in (("parse", {}), ("encode", {}), ("write", {"attributes": None})):
        worker.ledger.set_offset([worker.lease], worker.uid, LIVE, Q0, Position(0, 0), who="ann", why="again")
        rejected(worker, Q0, reject(3, stage, **changes))
    assert chosen(worker) == chosen(worker, Wanted(stage="parse")) == [2]
    begin(worker, Wanted(stage="parse"))
    letters = worker.ledger.letters_of(worker.uid, STREAM, Q0, 0, 9, 10, 100)
    assert [one.id for one in letters.rows] == [2]
    assert chosen(worker) == []


def test_the_other_letters_of_a_record_are_settled_with_it(worker: Worker) -> None:
    """Those before the first that is sent and behind the last one, too: else they would be sent by the next replay."""
    for stage, changes in (("parse", {}), ("encode", {}), ("write", {"attributes": None})):
        worker.ledger.set_offset([worker.lease], worker.uid, LIVE, Q0, Position(0, 0), who="ann", why="again")
        rejected(worker, Q0, reject(3, stage, **changes))
    stored = begin(worker)
    assert stored is not None
    assert stored.parts == (Part(Q0, 0, 1, 4),)
    replay = attempt(worker)
    replay.settle(Outcome(plan(replay, Q0, 1, 4).id, told(1, 4, read=1)))
    worker.ledger.end_backfill(worker.uid, STREAM, "done")
    assert states(worker) == dict.fromkeys((1, 2, 3), "replayed")
    assert chosen(worker) == []


def test_what_is_not_whole_or_nobody_reads_is_left_out(worker: Worker) -> None:
    rejected(worker, Q0, reject(3, attributes=None), reject(4))
    rejected(worker, Q1, reject(5))
    choice = worker.ledger.choose_dead_letters(worker.uid, ANY, [Q0])
    assert [number for _, number in choice.sent] == [2]
    assert choice.left_out == {"in_part": 1, "not_read": 1}
    assert [tuple(one) for one in choice.counts] == [(Q0.key, "parse", 1, 2)]


# ------------------------------------------------------------------------------------------------------ what is settled


def test_settling_marks_what_was_replayed_and_why_another_was_rejected_again(five: Worker) -> None:
    begin(five)
    replay = attempt(five)
    opened = plan(replay, Q0, 1, 4)
    replay.settle(Outcome(opened.id, told(1, 3, reject(2, "write", kind="Odd\0", message="again"))))
    first, second, third = (five.ledger.dead_letter(number) for number in (1, 2, 3))
    assert (first.state, first.replayed_run, first.replay) == ("replayed", replay.run_id, STREAM)
    assert (second.state, second.replayed_run) == ("open", replay.run_id)
    assert tuple(second.reason) == ("write", "Odd\ufffd", "again")
    assert (second.stage, second.offset, second.original) == ("encode", 5, b"r5")
    assert (third.state, third.replayed_at) == ("open", None)
    assert replay.position(Q0) == Position(0, 3, {"last": 2})
    assert [one.id for one in five.ledger.dead_letters(five.uid, wanted=Wanted(stage="write"))] == [2]
    # It was settled, and none is new: the letter is the one that there was.
    assert len(states(five)) == 5


def test_settling_twice_changes_nothing(five: Worker) -> None:
    begin(five)
    replay = attempt(five)
    outcome = Outcome(plan(replay, Q0, 1, 4).id, told(1, 4, reject(2)))
    replay.settle(outcome)
    before = [five.ledger.dead_letter(number) for number in (1, 2, 3)]
    replay.settle(outcome)
    assert [five.ledger.dead_letter(number) for number in (1, 2, 3)] == before


def test_an_attempt_that_lost_its_lease_marks_nothing(five: Worker) -> None:
    begin(five)
    late = attempt(five)
    opened = plan(late, Q0, 1, 4)
    attempt(five)
    with pytest.raises(Fenced):
        late.settle(Outcome(opened.id, told(1, 4)))
    assert set(states(five).values()) == {"open"}


def test_what_was_replayed_is_sent_again_only_when_a_person_says_so(five: Worker) -> None:
    begin(five)
    replay = attempt(five)
    replay.settle(Outcome(plan(replay, Q0, 1, 4).id, told(1, 4, reject(2))))
    replay.settle(Outcome(plan(replay, Q1, 4, 6).id, told(4, 6)))
    five.ledger.end_backfill(five.uid, STREAM, "done")
    assert chosen(five) == [2]
    assert five.ledger.choose_dead_letters(five.uid, Wanted(ids=(1,)), BOTH).left_out == {"replayed": 1}
    assert chosen(five, again=True) == [1, 2, 3, 4, 5]
    assert five.ledger.choose_dead_letters(five.uid, ANY, BOTH, again=True).delivered == 4
    begin(five, Wanted(ids=(1,)), replay_stream("2"), again=True)
    assert five.ledger.dead_letter(1).state == "open"
    assert five.ledger.dead_letter(3).state == "replayed"


def test_what_a_cancelled_replay_may_have_delivered_is_left_out(five: Worker) -> None:
    """Its attempt died within a range: records of that may be in the target, without a receipt."""
    begin(five)
    replay = attempt(five)
    replay.settle(Outcome(plan(replay, Q1, 4, 5).id, told(4, 5)))
    plan(replay, Q0, 1, 3)
    five.ledger.cancel_backfill(five.uid, STREAM, who="ann")
    choice = five.ledger.choose_dead_letters(five.uid, ANY, BOTH)
    assert ([number for _, number in choice.sent], choice.left_out) == ([3, 5], {"doubtful": 2})
    assert chosen(five, again=True) == [1, 2, 3, 4, 5]
    assert five.ledger.choose_dead_letters(five.uid, ANY, BOTH, again=True).delivered == 3
    assert choice.delivered == 0


def test_a_record_that_the_live_stream_rejects_once_more_is_open_again(five: Worker) -> None:
    begin(five)
    replay = attempt(five)
    replay.settle(Outcome(plan(replay, Q0, 1, 4).id, told(1, 4, reject(3))))
    five.ledger.discard_dead_letters(five.uid, Wanted(ids=(2,)), who="ann", asked={})
    five.ledger.set_offset([five.lease], five.uid, LIVE, Q0, Position(0, 0), who="ann", why="again")
    rejected(five, Q0, reject(3), reject(5, "encode", attributes=None), reject(9))
    assert states(five) == dict.fromkeys(range(1, 6), "open")
    assert [five.ledger.dead_letter(number).again for number in (1, 2, 3)] == [None] * 3
    assert five.ledger.dead_letter(2).attributes is None


def test_letters_belong_to_their_connector(ledger: Ledger) -> None:
    first, second = Worker.started(ledger, "first"), Worker.started(ledger, "second")
    rejected(first, Q0, reject(3))
    rejected(second, Q0, reject(3))
    begin(first)
    assert chosen(second) == [2]
    begin(second)
    assert [one.id for one in ledger.letters_of(second.uid, STREAM, Q0, 0, 9, 10, 100).rows] == [2]


def test_what_letters_hold_is_erased_when_they_are_not_open(five: Worker) -> None:
    begin(five, Wanted(ids=(1,)))
    replay = attempt(five)
    replay.settle(Outcome(plan(replay, Q0, 1, 2).id, told(1, 2)))
    five.ledger.end_backfill(five.uid, STREAM, "done")
    five.ledger.discard_dead_letters(five.uid, Wanted(ids=(2,)), who="ann", asked={})
    every = Wanted(states=("replayed", "discarded"))
    assert five.ledger.erase_dead_letters(five.uid, every, who="ann", asked={}) == 2
    assert five.ledger.erase_dead_letters(five.uid, every, who="ann", asked={}) == 0
    first, second, third = (five.ledger.dead_letter(number) for number in (1, 2, 3))
    assert [(one.original, one.attributes) for one in (first, second)] == [(b"", None)] * 2
    assert (first.state, second.state, third.original, third.attributes) == ("replayed", "discarded", b"r9", WHOLE)
    assert first.reason.kind == "NotParsed"
    assert five.ledger.erase_dead_letters(five.uid, Wanted(states=("open",)), who="ann", asked={}) == 0
    again = five.ledger.choose_dead_letters(five.uid, Wanted(ids=(1,)), BOTH, again=True)
    assert (again.sent, again.left_out) == ((), {"in_part": 1})


def test_letters_of_one_record_are_found_by_an_index(five: Worker) -> None:
    """Of many thousands each is compared with those of its record alone."""
    begin(five)
    with statements(five) as seen:
        five.ledger.letters_of(five.uid, STREAM, Q0, 0, 100, 10, 1 << 20)
    by_the_record = "ix_dead_letters_uid_partition_id_incarnation_record_offset"
    wanted = {"sqlite": by_the_record, "postgresql": "dead_letters"}[five.ledger._engine.dialect.name]
    assert all(wanted in plan for plan in plans(five, seen, "EXISTS"))
