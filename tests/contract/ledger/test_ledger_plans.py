"""Positions, floors, open ranges, and what `plan` refuses."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from connect_core.errors import DataError, Fenced, LeaseHeld
from connect_core.ledger import Ledger, target_lease_id
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.values import LIVE, Floor, Gap, Position
from connect_core.work import Outcome
from tests.contract.ledger.samples import Q0, Q1, Worker, planned, receipt

FLOORS = (
    Floor(Q0.id, "copy:0", 17, evidence={"barrier": 3}),
    Floor(Q0.id, "copy:1", 0, ahead=True),
    Floor(Q1.id, "copy:0", 18),
    Floor("", "/data/out.log", 4096),
)


def test_a_partition_that_was_never_read_has_no_position(worker: Worker) -> None:
    assert worker.ledger.positions(worker.uid, LIVE, [Q0, Q1]) == {Q0: None, Q1: None}
    assert worker.ledger.floors(worker.uid, LIVE) == []
    assert worker.ledger.open_ranges(worker.uid, LIVE, [Q0]) == []


def test_a_plan_comes_back_as_it_was_made(worker: Worker) -> None:
    ranges = [planned(Q1, 5, 50, slot=1, incarnation=2), planned(Q0, 0, 100, evidence={"é": [1, None, True]})]
    opened = worker.plan(*ranges, floors=FLOORS)
    assert [item.range for item in opened] == ranges
    assert [item.inherited for item in opened] == [False, False]
    assert opened[0].floors == (FLOORS[3], FLOORS[2])
    assert opened[1].floors == (FLOORS[3], FLOORS[0], FLOORS[1])
    inherited = worker.ledger.open_ranges(worker.uid, LIVE, [Q0, Q1])
    assert [(item.id, item.range, item.inherited, item.found) for item in inherited] == [
        (item.id, item.range, True, None) for item in opened
    ]
    assert [item.floors for item in inherited] == [item.floors for item in opened]
    assert sorted(map(repr, worker.ledger.floors(worker.uid, LIVE))) == sorted(map(repr, FLOORS))


def test_open_ranges_are_asked_for_by_partition(worker: Worker) -> None:
    first, second = worker.plan(planned(Q0), planned(Q1))
    assert [item.id for item in worker.ledger.open_ranges(worker.uid, LIVE, [Q1])] == [second.id]
    assert [item.id for item in worker.ledger.open_ranges(worker.uid, LIVE)] == [first.id, second.id]
    assert worker.ledger.open_ranges(worker.uid, "backfill-1") == []


def test_floors_that_are_not_given_stay_and_others_are_overwritten(worker: Worker) -> None:
    worker.plan(planned(Q0), floors=FLOORS[:2])
    worker.plan(planned(Q1), floors=[Floor(Q0.id, "copy:0", 20)])
    assert worker.ledger.floors(worker.uid, LIVE) == [Floor(Q0.id, "copy:0", 20), FLOORS[1]]


def test_a_floor_that_is_told_for_each_range_is_one(worker: Worker) -> None:
    """Sinks with one position for all partitions name it for every range."""
    worker.plan(planned(Q0), planned(Q1), floors=[Floor("", "/out", 1), Floor("", "/out", 1)])
    assert worker.ledger.floors(worker.uid, LIVE) == [Floor("", "/out", 1)]


def test_what_is_begun_beside_others_is_planned_while_they_begin_nothing(worker: Worker) -> None:
    ledger, uid = worker.ledger, worker.uid
    worker.move(Q1)
    seen = ledger.begun(uid, LIVE, [Q0])
    assert seen.places == ((Q1, Position(0, 100, {"last": 99})),)
    worker.move(Q1, 100, 200)  # it goes on in what it has begun
    [opened] = ledger.plan([worker.lease], worker.run_id, uid, 0, [planned(Q0)], [], seen)
    assert ledger.begun(uid, LIVE, [Q0]).places[1:] == ((Q0, Position(0, 0, opened.range.evidence)),)
    assert ledger.begun(uid, LIVE, [Q1]).others != ledger.begun(uid, LIVE, [Q1, Q0]).others == seen.others


def test_of_two_that_begin_at_once_one_looks_again(worker: Worker) -> None:
    ledger, uid = worker.ledger, worker.uid
    both = threading.Barrier(2)

    def plan(mine: Partition) -> int:
        seen = ledger.begun(uid, LIVE, [mine])
        both.wait(30)
        return len(ledger.plan([worker.lease], worker.run_id, uid, 0, [planned(mine)], [], seen))

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(plan, [Q0, Q1])) == [0, 1]


def test_who_else_writes_a_target(ledger: Ledger) -> None:
    first, second = Worker.started(ledger, "first"), Worker.started(ledger, "second")
    first.plan(planned(Q0), planned(Q1), floors=[Floor("", "/out", 1), Floor(Q0.id, "copy:0", 5)])
    second.plan(planned(Q0), floors=[Floor("", "/elsewhere", 1)])
    assert ledger.other_writers(second.uid, LIVE, ["/out", "/elsewhere", "/new"]) == [("/out", "first", LIVE)]
    assert ledger.other_writers(first.uid, LIVE, ["/out", "copy:0"]) == []
    ledger.delete(first.uid, who="ann")
    assert ledger.other_writers(second.uid, LIVE, ["/out"]) == []


def test_a_partition_has_one_open_range(worker: Worker) -> None:
    worker.plan(planned(Q0))
    with pytest.raises(DataError, match="already has an open range"):
        worker.plan(planned(Q1), planned(Q0))
    with pytest.raises(DataError, match="already has an open range"):
        worker.plan(planned(Q1), planned(Q1))
    assert len(worker.open_ids()) == 1


def test_only_one_of_two_runs_that_plan_at_once_opens_a_range(worker: Worker) -> None:
    """Two runs that hold different leases (a fault elsewhere) still cannot both open a range of one partition."""
    ledger, uid = worker.ledger, worker.uid
    leases = [ledger.take(target_lease_id(name), None, name) for name in ("a", "b")]
    start = threading.Barrier(2)

    def attempt(number: int) -> bool:
        start.wait()
        try:
            ledger.plan([leases[number]], worker.run_id, uid, 0, [planned(Q0)], [])
        except DataError:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(attempt, (0, 1))) == [False, True]
    assert len(worker.open_ids()) == 1


@pytest.mark.parametrize("begin", [99, 101])
def test_a_range_must_begin_at_the_committed_position(worker: Worker, begin: int) -> None:
    worker.move(Q0, 0, 100)
    with pytest.raises(DataError, match="100"):
        worker.plan(planned(Q0, begin, 300), floors=FLOORS)
    assert worker.open_ids() == []
    assert worker.ledger.floors(worker.uid, LIVE) == []
    worker.plan(planned(Q0, 100, 300))


def test_a_told_gap_joins_the_range_to_the_committed_position(worker: Worker) -> None:
    worker.move(Q0, 0, 100)
    gap = Gap(0, 100, 150, "retention")
    with pytest.raises(DataError):
        worker.plan(planned(Q0, 151, 300, gaps=(gap,)))
    [opened] = worker.plan(planned(Q0, 150, 300, gaps=(gap,)))
    assert opened.range.gaps == (gap,)
    assert worker.ledger.gaps(worker.uid) == []  # told when the range is settled (delivery rule 9)


def test_a_plan_is_of_one_stream(worker: Worker) -> None:
    with pytest.raises(ValueError, match="too many values"):
        worker.plan(planned(Q0), planned(Q1, stream="backfill-1"))
    assert worker.open_ids() == []


def test_a_run_that_never_began_cannot_plan(worker: Worker) -> None:
    with pytest.raises(DataError, match="refused a row"):
        worker.ledger.plan([worker.lease], "0000", worker.uid, 0, [planned(Q0)], FLOORS)
    assert worker.ledger.floors(worker.uid, LIVE) == []


def test_streams_have_positions_floors_and_ranges_of_their_own(worker: Worker) -> None:
    ledger, uid, stream = worker.ledger, worker.uid, "backfill-2026-01-01"
    worker.move(Q0, 0, 100)
    run_id = ledger.begin_run(uid, stream, task=0, engine="inline")
    floor = Floor(Q0.id, "copy:0", 5)
    [opened] = ledger.plan([worker.lease], run_id, uid, 0, [planned(Q0, 40, 60, stream=stream)], [floor])
    ledger.settle([worker.lease], run_id, uid, [Outcome(opened.id, receipt(40, 60))])
    assert ledger.positions(uid, stream, [Q0])[Q0] == Position(0, 60, {"last": 59})
    assert worker.position() == Position(0, 100, {"last": 99})
    assert (ledger.floors(uid, stream), ledger.floors(uid, LIVE)) == ([floor], [])


def test_planning_nothing_is_nothing(worker: Worker) -> None:
    assert worker.plan() == []


def test_very_long_partition_keys(worker: Worker) -> None:
    long = Partition("/logs" * 400 + "/ünï.log")
    worker.move(long, 0, 10)
    assert worker.position(long) == Position(0, 10, {"last": 9})


# ----------------------------------------------------------------------------------------- inherited ranges and `scan`


def test_what_find_has_seen_is_kept_until_the_range_closes(worker: Worker) -> None:
    [opened] = worker.plan(planned(Q0))
    first = ScanResult().merged([(3, 0, "copy:0", 20)], {"copy:0": 21}, complete=False)
    second = first.merged([(4, 1, "copy:1", 9)], {"copy:1": 30}, complete=True)
    for seen in (first, second):
        worker.ledger.record_found([worker.lease], {opened.id: seen})
        [item] = worker.ledger.open_ranges(worker.uid, LIVE, [Q0])
        assert item.found is not None
        assert (item.found.scanned, item.found.complete) == (seen.scanned, seen.complete)
        assert item.found.hits.tolist() == seen.hits.tolist()


def test_nothing_is_found_of_a_closed_range(worker: Worker) -> None:
    range_id = worker.move(Q0)
    with pytest.raises(DataError, match="not open"):
        worker.ledger.record_found([worker.lease], {range_id: ScanResult()})


def test_the_next_attempt_adopts_what_it_inherits(worker: Worker) -> None:
    opened = worker.plan(planned(Q0), planned(Q1))
    new = worker.taken_over()
    new.ledger.adopt([new.lease], new.run_id, [item.id for item in opened])
    new.settle(*(Outcome(item.id, receipt()) for item in opened))
    settled = new.ledger.receipts(new.uid)
    assert {(one.run_id, one.epoch, one.attempts) for one in settled} == {(new.run_id, 2, 2)}


def test_a_closed_range_cannot_be_adopted(worker: Worker) -> None:
    range_id = worker.move(Q0)
    [other] = worker.plan(planned(Q1))
    with pytest.raises(DataError, match="not open"):
        worker.ledger.adopt([worker.lease], worker.run_id, [other.id, range_id])


def test_an_abandoned_range_is_planned_again_and_looked_for(worker: Worker) -> None:
    [opened] = worker.plan(planned(Q0), floors=FLOORS)
    worker.ledger.abandon([worker.lease], opened.id, who="bob", why="wrong topic")
    assert worker.open_ids() == []
    assert worker.position() is None
    assert {(floor.target, floor.ahead) for floor in worker.ledger.floors(worker.uid, LIVE)} == {
        ("copy:0", True),
        ("copy:1", True),
        ("copy:0", False),
        ("/data/out.log", False),
    }
    [again] = worker.plan(planned(Q0))
    assert again.id != opened.id
    deed = worker.ledger.audit(worker.uid)[0]
    assert (deed.action, deed.who, deed.why, deed.detail["range"]) == ("abandon", "bob", "wrong topic", opened.id)
    with pytest.raises(DataError, match="not open"):
        worker.ledger.abandon([worker.lease], opened.id, who="bob", why="again")


# ------------------------------------------------------------------------------------------------------------- fencing


def test_a_run_that_lost_its_lease_changes_nothing(worker: Worker) -> None:
    [opened] = worker.plan(planned(Q0), floors=FLOORS[:1])
    new, ledger = worker.taken_over(), worker.ledger
    before = _everything(new)
    old = [worker.lease]
    attempts = [
        lambda: worker.plan(planned(Q1), floors=FLOORS),
        lambda: worker.settle(Outcome(opened.id, receipt())),
        lambda: ledger.record_found(old, {opened.id: ScanResult()}),
        lambda: ledger.adopt(old, worker.run_id, [opened.id]),
        lambda: ledger.abandon(old, opened.id, who="x", why=""),
        lambda: ledger.set_offset(old, worker.uid, LIVE, Q1, Position(0, 5), who="x", why=""),
        lambda: ledger.undo_offset(old, worker.uid, LIVE, Q1, who="x"),
        lambda: ledger.move_offsets(old, worker.uid, LIVE, {Q1: Position(0, 5)}, who="x", why=""),
    ]
    for attempt in attempts:
        with pytest.raises(Fenced):
            attempt()
    assert _everything(new) == before


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_each_of_several_leases_is_fenced(worker: Worker, order: list[int]) -> None:
    ledger, key = worker.ledger, target_lease_id("/data/out.log")
    target = ledger.take(key, None, "h1")
    both = [worker.lease, target]
    ledger.plan([both[i] for i in order], worker.run_id, worker.uid, 0, [planned(Q0)], [])
    ledger.take(key, ledger.lease(key), "h2")
    seen = ledger.lease(worker.lease.id)
    with pytest.raises(Fenced, match="target:"):
        ledger.plan([both[i] for i in order], worker.run_id, worker.uid, 0, [planned(Q1)], [])
    assert ledger.lease(worker.lease.id) == seen
    assert len(worker.open_ids()) == 1


def test_fenced_is_a_lease_that_is_held(worker: Worker) -> None:
    """Whoever handles LeaseHeld (exit code 4) handles Fenced."""
    worker.taken_over()
    with pytest.raises(LeaseHeld):
        worker.plan(planned(Q0))


def test_a_fenced_transaction_without_a_lease_is_a_bug(worker: Worker) -> None:
    with pytest.raises(ValueError, match="needs a lease"):
        worker.ledger.plan([], worker.run_id, worker.uid, 0, [planned(Q0)], [])


def _everything(worker: Worker) -> list[object]:
    ledger, uid = worker.ledger, worker.uid
    shown = [(item.id, item.range, item.found) for item in ledger.open_ranges(uid, LIVE)]
    state = ledger.lease(worker.lease.id)
    return [shown, state, ledger.floors(uid, LIVE), ledger.offsets(uid), ledger.receipts(uid), ledger.audit(uid)]
