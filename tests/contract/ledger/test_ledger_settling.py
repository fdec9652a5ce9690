"""Settle: one transaction for receipts, offsets, floors, gaps and dead letters; the same again is nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from connect_core.errors import DataError, Failure
from connect_core.ledger.database import now
from connect_core.ledger.rows import position_row
from connect_core.ledger.tables import OFFSETS
from connect_core.sdk.values import LIVE, OPEN_END, Floor, FloorMove, Gap, Position, Reject
from connect_core.work import Outcome, Receipt
from tests.contract.ledger.samples import Q0, Q1, Worker, planned, receipt

REJECT = Reject(7, 0, "transform", "ValueError", "not a number", b"\x00\xff", "orders")


def settled(worker: Worker) -> list[Receipt]:
    return [one.receipt for one in worker.ledger.receipts(worker.uid)]


def test_a_receipt_moves_the_position_and_closes_its_range(worker: Worker) -> None:
    [opened] = worker.plan(planned(Q0, 0, 100, incarnation=3))
    told = receipt(0, 60, seconds=1.5, duplicates=2, possible_duplicates=1, reconstructed=True)
    worker.settle(Outcome(opened.id, told))
    assert worker.position() == Position(3, 60, {"last": 59})
    assert worker.open_ids() == []
    [one] = worker.ledger.receipts(worker.uid)
    assert one.receipt == told
    assert (one.id, one.partition, one.incarnation, one.planned_end) == (opened.id, Q0, 3, 100)
    assert (one.run_id, one.task, one.epoch, one.attempts) == (worker.run_id, 0, 1, 1)
    assert one.pins == opened.range.pins
    assert one.planned_at <= one.settled_at


def test_the_next_range_goes_on_where_the_receipt_ended(worker: Worker) -> None:
    worker.move(Q0, 0, 100)
    [opened] = worker.plan(planned(Q0, 100, 400))
    worker.settle(Outcome(opened.id, receipt(100, 130)))
    worker.move(Q0, 130, 200)
    assert [(one.begin, one.end) for one in reversed(settled(worker))] == [(0, 100), (100, 130), (130, 200)]


def test_outcomes_without_a_receipt_leave_their_ranges_open(worker: Worker) -> None:
    first, second = worker.plan(planned(Q0), planned(Q1))
    worker.settle(
        Outcome(first.id, receipt(), Failure("Retriable", "stopped early")),
        Outcome(second.id, None, Failure("Retriable", "the answer was lost"), clean=False),
    )
    assert worker.open_ids() == [second.id]
    assert worker.position(Q0) == Position(0, 100, {"last": 99})
    assert worker.position(Q1) is None


def test_no_receipt_at_all_is_nothing_to_settle(worker: Worker) -> None:
    [opened] = worker.plan(planned(Q0))
    worker.settle(Outcome(opened.id, None))
    worker.settle()
    assert worker.open_ids() == [opened.id]


def test_a_receipt_may_end_where_it_began(worker: Worker) -> None:
    worker.move(Q0, 0, 100)
    [opened] = worker.plan(planned(Q0, 100, 200))
    worker.settle(Outcome(opened.id, receipt(100, 100)))
    position = worker.position()
    assert position is not None
    assert position.offset == 100
    worker.plan(planned(Q0, 100, 200))


def test_floors_of_a_receipt_replace_the_old_ones(worker: Worker) -> None:
    keep, moved = Floor(Q0.id, "copy:1", 3), Floor(Q0.id, "copy:0", 1)
    [opened] = worker.plan(planned(Q0), floors=[keep, moved])
    after = Floor(Q0.id, "copy:0", 101, ahead=True, evidence={"crc": 5})
    worker.settle(Outcome(opened.id, receipt(floors=(FloorMove(1, after),))))
    assert worker.ledger.floors(worker.uid, LIVE) == [after, keep]


BEFORE = Floor(Q0.id, "copy:0", 0)
AHEAD = FloorMove(0, Floor(Q0.id, "copy:0", 70, ahead=True))
NOT_AHEAD = FloorMove(0, AHEAD.floor._replace(ahead=False))


def test_the_rest_of_a_range_that_closed_short(worker: Worker) -> None:
    [opened] = worker.plan(planned(Q0, 0, 100), floors=[BEFORE])
    worker.settle(Outcome(opened.id, receipt(0, 70, floors=(AHEAD,))))
    rest = replace(opened.range, begin=70, max_records=930, max_bytes=(1 << 20) - 14_000, evidence={"last": 69})
    assert worker.ledger.rests(worker.uid, LIVE) == [rest]
    [again] = worker.plan(rest)
    assert worker.ledger.rests(worker.uid, LIVE) == []  # it is open, and what is open is not left over
    worker.settle(Outcome(again.id, receipt(70, 100, floors=(NOT_AHEAD._replace(begin=70),))))
    assert worker.ledger.rests(worker.uid, LIVE) == []


@pytest.mark.parametrize("limit", ["max_records", "max_bytes"])
def test_nothing_is_left_of_a_range_that_is_full(worker: Worker, limit: str) -> None:
    wanted = replace(planned(Q0, 0, 100), **{limit: 70 if limit == "max_records" else 14_000})
    [opened] = worker.plan(wanted, floors=[BEFORE])
    worker.settle(Outcome(opened.id, receipt(0, 70, floors=(AHEAD,))))
    assert worker.ledger.rests(worker.uid, LIVE) == []


@pytest.mark.parametrize("what", ["nothing ahead", "closed at its end", "another partition", "moved", "given up"])
def test_where_nothing_is_left_of_a_range(worker: Worker, what: str) -> None:
    ahead = {"nothing ahead": (NOT_AHEAD,), "another partition": ()}
    others = [AHEAD.floor._replace(partition_id=Q1.id)] if what == "another partition" else []
    [opened] = worker.plan(planned(Q0, 0, 100), floors=[BEFORE, *others])
    if what == "given up":
        worker.ledger.abandon([worker.lease], opened.id, who="ann", why="again")
    else:
        end = 100 if what == "closed at its end" else 70
        worker.settle(Outcome(opened.id, receipt(0, end, floors=ahead.get(what, (AHEAD,)))))
    if what == "moved":
        worker.ledger.set_offset(
            [worker.lease], worker.uid, LIVE, Q0, Position(0, 90), who="ann", why="those are not wanted"
        )
    assert worker.ledger.rests(worker.uid, LIVE) == []


def out(begin: int, end: int, **more: Any) -> FloorMove:
    """A stretch of a file that all partitions share."""
    return FloorMove(begin, Floor("", "/out", end, **more))


def settle_in_a_file(worker: Worker, *moves: FloorMove, end: int = 100) -> None:
    """Two ranges of one lane, in the order of their ids; the file was settled up to 5."""
    opened = worker.plan(planned(Q0, 0, end), planned(Q1, 0, end), floors=[Floor("", "/out", 5)])
    worker.settle(*(Outcome(one.id, receipt(floors=(move,))) for one, move in zip(opened, moves, strict=True)))


@pytest.mark.parametrize("moves", [(out(5, 10), out(10, 20)), (out(10, 20), out(5, 10))], ids=["as planned", "turned"])
def test_ranges_of_one_file_adjoin_whatever_the_order_of_their_ids(worker: Worker, moves: list[FloorMove]) -> None:
    """Ranges with an end are worked through before live ones, which may have been planned first."""
    settle_in_a_file(worker, *moves)
    assert worker.ledger.floors(worker.uid, LIVE) == [Floor("", "/out", 20)]


def test_ranges_of_which_one_wrote_nothing_adjoin(worker: Worker) -> None:
    settle_in_a_file(worker, out(5, 5), out(5, 20))
    assert worker.ledger.floors(worker.uid, LIVE) == [Floor("", "/out", 20)]


def test_live_ranges_share_what_they_flush(worker: Worker) -> None:
    settle_in_a_file(worker, out(5, 20), out(5, 20), end=OPEN_END)
    assert worker.ledger.floors(worker.uid, LIVE) == [Floor("", "/out", 20)]


@pytest.mark.parametrize(
    ("moves", "end", "words"),
    [
        ((out(0, 10), out(10, 20)), 100, "from 0 to 10, but it is at 5"),
        ((out(10, 20), out(20, 30)), 100, "from 10 to 20, but it is at 5"),
        ((out(5, 10), out(12, 20)), 100, "from 12 to 20, but it was left by the range before it at 10"),
        ((out(5, 10), out(7, 20)), 100, "from 7 to 20, but it was left by the range before it at 10"),
        ((out(5, 10), out(10, 8)), 100, "from 10 to 8, which is back"),
        ((out(5, 3), out(3, 4)), 100, "from 5 to 3, which is back"),
        ((out(5, 20), out(5, 20)), 100, "from 5 to 20, but it was left by the range before it at 20"),
        ((out(5, 20), out(5, 20, evidence={"tail": "x"})), OPEN_END, "but it was left by the range before it at 20"),
        ((out(5, 20), FloorMove(0, Floor("", "/other", 9))), 100, "from 0 to 9, which the ledger does not have"),
        ((out(5, 20), FloorMove(0, Floor(Q0.id, "copy:0", 9))), 100, "which is another partition's"),
    ],
)
def test_a_floor_moves_only_from_where_it_stands(
    worker: Worker, moves: tuple[FloorMove, ...], end: int, words: str
) -> None:
    with pytest.raises(DataError, match=words) as refused:
        settle_in_a_file(worker, *moves, end=end)
    assert refused.value.next_step == "Nothing was settled; the next attempt checks the target for written records"
    assert len(worker.open_ids()) == 2
    assert worker.ledger.floors(worker.uid, LIVE) == [Floor("", "/out", 5)]
    assert worker.position() is None


def test_a_floor_of_a_partition_that_has_moved_since_it_was_planned_is_refused(worker: Worker) -> None:
    worker.plan(planned(Q0), floors=[BEFORE._replace(position=40)])
    with pytest.raises(DataError, match="floor of copy:0 from 0 to 70, but it is at 40"):
        worker.settle(Outcome(worker.open_ids()[0], receipt(floors=(NOT_AHEAD,))))


def test_a_receipt_that_does_not_go_on_from_the_committed_place_is_refused(worker: Worker) -> None:
    """Plan has looked at that; whatever has moved the place since, nothing is settled over it."""
    [opened] = worker.plan(planned(Q0, 0, 100))
    row = position_row(worker.uid, LIVE, Q0, Position(0, 40), now())
    with worker.ledger._engine.begin() as connection:
        connection.execute(OFFSETS.insert().values(**row))
    with pytest.raises(DataError, match="does not continue from the committed offset"):
        worker.settle(Outcome(opened.id, receipt(0, 100)))
    assert worker.open_ids() == [opened.id]


def test_a_plan_moves_no_floor_that_all_partitions_share(worker: Worker) -> None:
    worker.plan(planned(Q0), floors=[Floor("", "/out", 5)])
    with pytest.raises(DataError, match="would move the floor of /out from 5 to 4"):
        worker.plan(planned(Q1), floors=[Floor("", "/out", 4)])
    worker.plan(planned(Q1), floors=[Floor("", "/out", 5)])
    assert worker.ledger.floors(worker.uid, LIVE) == [Floor("", "/out", 5)]


def test_gaps_of_the_plan_and_of_the_receipt_are_stored_with_the_settle(worker: Worker) -> None:
    worker.move(Q0, 0, 100)
    told, met = Gap(0, 100, 150, "retention"), Gap(0, 170, None, "truncated")
    [opened] = worker.plan(planned(Q0, 150, 300, gaps=(told,)))
    worker.settle(Outcome(opened.id, receipt(150, 200, gaps=(met,))))
    gaps = worker.ledger.gaps(worker.uid)
    assert [(one.partition, one.gap, one.run_id) for one in gaps] == [
        (Q0, told, worker.run_id),
        (Q0, met, worker.run_id),
    ]


def test_a_gap_is_not_hidden_by_another_that_begins_where_it_does(worker: Worker) -> None:
    """A plan tells of records that have gone; a notice of the same place comes with it, or with a later run, after
    somebody has moved the offset back there."""
    loss, notice = Gap(0, 100, 150, "expired"), Gap(0, 100, 100, "written twice; read on")
    worker.move(Q0, 0, 100)
    assert _stored_after(worker, notice, loss) == Gap(0, 100, 150, "written twice; read on; expired")
    for again in (notice, loss, replace(loss, end=120)):
        assert _stored_after(worker, again) == Gap(0, 100, 150, "written twice; read on; expired")
    assert _stored_after(worker, replace(loss, end=170)) == Gap(0, 100, 170, "written twice; read on; expired")
    assert _stored_after(worker, replace(loss, end=None, reason="gone")).end is None
    assert _stored_after(worker, loss).end is None


def _stored_after(worker: Worker, *told: Gap) -> Gap:
    """The gap that is stored at 100 after one more run has begun there and was told of these."""
    worker.ledger.set_offset([worker.lease], worker.uid, LIVE, Q0, Position(0, 100), who="ann", why="again")
    begin = max(gap.end or 190 for gap in told)
    [opened] = worker.plan(planned(Q0, begin, 200, gaps=told))
    worker.settle(Outcome(opened.id, receipt(begin, 200)))
    [stored] = worker.ledger.gaps(worker.uid)
    return stored.gap


def test_dead_letters_are_stored_with_their_coordinates(worker: Worker) -> None:
    [opened] = worker.plan(planned(Q0, incarnation=2))
    other = Reject(8, 1, "write", "TooLarge", "5 MB", b"x" * 1000)
    worker.settle(Outcome(opened.id, receipt(rejected=2, passed=98, emitted=98, delivered=98, rejects=(REJECT, other))))
    second, first = worker.ledger.dead_letters(worker.uid)
    assert (first.partition, first.incarnation, first.offset, first.ordinal) == (Q0, 2, 7, 0)
    assert (first.stage, first.kind, first.message) == ("transform", "ValueError", "not a number")
    assert (first.original, first.topic, first.run_id) == (b"\x00\xff", "orders", worker.run_id)
    assert (second.offset, second.ordinal, second.original, second.topic) == (8, 1, b"x" * 1000, None)
    assert worker.ledger.dead_letter(first.id) == first
    assert settled(worker)[0].rejects == ()


def test_words_of_a_reject_may_hold_anything(worker: Worker) -> None:
    """They quote the record; PostgreSQL takes no NUL, and no database a lone surrogate."""
    odd = Reject(7, 0, "read", "Bad\0Kind", "a\0b\ud800c", b"\0", "t\0")
    counts = {"rejected": 1, "passed": 99, "emitted": 99, "delivered": 99}
    worker.move(Q0, rejects=(odd, odd), **counts)
    [letter] = worker.ledger.dead_letters(worker.uid)
    assert (letter.kind, letter.message, letter.topic) == ("Bad\ufffdKind", "a\ufffdb?c", "t\ufffd")
    assert letter.original == b"\0"


def test_a_record_that_is_rejected_again_is_one_dead_letter(worker: Worker) -> None:
    counts = {"rejected": 1, "passed": 99, "emitted": 99, "delivered": 99}
    worker.move(Q0, rejects=(REJECT,), **counts)
    worker.ledger.set_offset([worker.lease], worker.uid, LIVE, Q0, Position(0, 0), who="ann", why="again")
    worker.move(Q0, rejects=(replace(REJECT, message="still not"), replace(REJECT, stage="write")), **counts)
    letters = worker.ledger.dead_letters(worker.uid)
    assert sorted((one.stage, one.message) for one in letters) == [
        ("transform", "still not"),
        ("write", "not a number"),
    ]


# ------------------------------------------------------------------------------------------------------ what it refuses


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: receipt(1, 100), "begins at 1"),
        (lambda: receipt(0, 101), "after the end of its range, 100"),
        (lambda: receipt(0, 100, filtered=1), "read 100 != filtered 1"),
        (lambda: receipt(0, 100, delivered=99), "emitted 100 != delivered 99"),
        (lambda: receipt(0, -5), "before begin"),
        (lambda: receipt(0, 100, covered=50), "50 positions are accounted for, not the 100 from 0 to 100"),
        (lambda: receipt(0, 100, covered=101), "101 positions are accounted for"),
        (lambda: receipt(0, 100, covered=None), "does not say how many positions it accounts for"),
        (lambda: receipt(0, 100, absent=1), "101 records in 100 positions"),
    ],
)
def test_a_receipt_that_does_not_hold_is_refused_and_nothing_is_settled(
    worker: Worker, wrong: Callable[[], Receipt], words: str
) -> None:
    sound, unsound = worker.plan(planned(Q1), planned(Q0), floors=[Floor("", "/out", 0)])
    lease = worker.ledger.lease(worker.lease.id)
    with pytest.raises(DataError, match=words):
        worker.settle(Outcome(sound.id, receipt(floors=(out(0, 1),), rejects=(REJECT,))), Outcome(unsound.id, wrong()))
    assert worker.open_ids() == [sound.id, unsound.id]
    assert (worker.position(Q0), worker.position(Q1)) == (None, None)
    assert worker.ledger.floors(worker.uid, LIVE) == [Floor("", "/out", 0)]
    assert worker.ledger.dead_letters(worker.uid) == []
    assert worker.ledger.lease(worker.lease.id) == lease


def test_an_unknown_range_and_one_of_another_connector_are_refused(worker: Worker) -> None:
    other = Worker.started(worker.ledger, "other")
    [foreign] = other.plan(planned(Q0))
    for range_id in (foreign.id, 10**9):
        with pytest.raises(DataError, match="No range"):
            worker.settle(Outcome(range_id, receipt()))
    assert other.open_ids() == [foreign.id]


def test_an_abandoned_range_is_not_settled(worker: Worker) -> None:
    [opened] = worker.plan(planned(Q0))
    worker.ledger.abandon([worker.lease], opened.id, who="bob", why="")
    with pytest.raises(DataError, match="abandoned already"):
        worker.settle(Outcome(opened.id, receipt()))


# ------------------------------------------------------------------------------------------------------ the same again


def test_the_same_outcomes_again_change_nothing(worker: Worker) -> None:
    [opened] = worker.plan(planned(Q0))
    outcome = Outcome(opened.id, receipt(rejected=1, passed=99, emitted=99, delivered=99, rejects=(REJECT,)))
    worker.settle(outcome)
    before = (worker.ledger.receipts(worker.uid), worker.ledger.offsets(worker.uid))
    worker.settle(outcome)
    assert (worker.ledger.receipts(worker.uid), worker.ledger.offsets(worker.uid)) == before
    assert len(worker.ledger.dead_letters(worker.uid)) == 1


def test_the_same_again_after_the_next_range_was_planned_does_not_move_back(worker: Worker) -> None:
    first = Outcome(worker.move(Q0, 0, 100), receipt(0, 100))
    worker.move(Q0, 100, 200)
    worker.settle(first)
    assert worker.position() == Position(0, 200, {"last": 199})


def test_what_is_stored_already_and_what_is_new_settle_together(worker: Worker) -> None:
    first, second = worker.plan(planned(Q0), planned(Q1))
    worker.settle(Outcome(first.id, receipt()))
    worker.settle(Outcome(first.id, receipt()), Outcome(second.id, receipt()))
    assert worker.open_ids() == []
    assert len(settled(worker)) == 2


@pytest.mark.parametrize(
    "change",
    [{"end": 50, "read": 50}, {"digest_sent": "x"}, {"where": {"copy:1": [0, 1]}}, {"rejects": (REJECT,)}],
    ids=lambda change: next(iter(change)),
)
def test_another_receipt_for_a_settled_range_is_refused(worker: Worker, change: dict[str, Any]) -> None:
    range_id = worker.move(Q0, 0, 100)
    with pytest.raises(DataError, match="settled already, with another receipt"):
        worker.settle(Outcome(range_id, replace(receipt(0, 100), **change)))


def test_another_epoch_does_not_take_a_settle_for_its_own(worker: Worker) -> None:
    outcome = Outcome(worker.move(Q0), receipt())
    with pytest.raises(DataError, match="settled already"):
        worker.taken_over().settle(outcome)


def test_a_receipt_keeps_how_much_it_accounts_for(worker: Worker) -> None:
    worker.move(Q0, 0, 100, read=60, passed=60, emitted=60, delivered=60, absent=0)
    [one] = settled(worker)
    assert (one.covered, one.read, one.identity_faults()) == (100, 60, [])
    assert replace(one, covered=99).identity_faults() == ["99 positions are accounted for, not the 100 from 0 to 100"]
