"""Offsets that people change: refused while ranges are open, kept, and undone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from connect_core.errors import ConfigError, DataError
from connect_core.sdk.values import LIVE, Floor, Gap, Position
from connect_core.work import Outcome
from tests.contract.ledger.samples import Q0, Q1, Worker, planned, receipt


def place(offset: int) -> Position:
    return Position(0, offset, {"at": offset})


def put(worker: Worker, offset: int, *, abandon: bool = False, floors: Sequence[Floor] = ()) -> None:
    told = {"who": "ann", "why": "because"}
    worker.ledger.set_offset(
        [worker.lease], worker.uid, LIVE, Q0, place(offset), abandon=abandon, floors=floors, **told
    )


def undo(worker: Worker) -> Position | None:
    return worker.ledger.undo_offset([worker.lease], worker.uid, LIVE, Q0, who="bob")


@pytest.mark.parametrize("offset", [40, 140])
def test_a_set_offset_is_where_planning_goes_on(worker: Worker, offset: int) -> None:
    worker.move(Q0, 0, 100)
    put(worker, offset)
    assert worker.position() == place(offset)
    with pytest.raises(DataError):
        worker.plan(planned(Q0, 100, 200))
    worker.move(Q0, offset, offset + 10)


def test_floors_stay_so_that_what_is_there_is_still_found(worker: Worker) -> None:
    floor = Floor(Q0.id, "copy:0", 9, ahead=True)
    [opened] = worker.plan(planned(Q0, 0, 100), floors=[floor])
    worker.settle(Outcome(opened.id, receipt(0, 100)))
    put(worker, 40)
    assert worker.ledger.floors(worker.uid, LIVE) == [floor]


def test_it_is_refused_while_a_range_is_open(worker: Worker) -> None:
    [opened] = worker.plan(planned(Q0))
    with pytest.raises(DataError, match="--abandon"):
        put(worker, 5)
    with pytest.raises(DataError):
        worker.ledger.move_offsets([worker.lease], worker.uid, LIVE, {Q0: Position(0, 5)}, who="ann", why="")
    assert worker.position() is None
    assert worker.open_ids() == [opened.id]
    assert worker.ledger.offset_history(worker.uid) == []


def test_a_range_of_another_partition_is_not_in_the_way(worker: Worker) -> None:
    worker.plan(planned(Q1))
    put(worker, 5)


def test_abandon_closes_the_range_and_sets(worker: Worker) -> None:
    worker.plan(planned(Q0), floors=[Floor(Q0.id, "copy:0", 9)])
    put(worker, 5, abandon=True)
    assert worker.open_ids() == []
    assert worker.position() == place(5)
    assert [floor.ahead for floor in worker.ledger.floors(worker.uid, LIVE)] == [True]
    assert [deed.action for deed in worker.ledger.audit(worker.uid)][:2] == ["offset set", "abandon"]


def test_floors_of_what_is_given_up_are_moved_up_and_never_back(worker: Worker) -> None:
    other = Floor(Q1.id, "copy:0", 1)
    worker.plan(planned(Q0), planned(Q1), floors=[Floor(Q0.id, "copy:0", 9), Floor(Q0.id, "copy:1", 9), other])
    put(worker, 5, abandon=True, floors=[Floor(Q0.id, "copy:0", 20), Floor(Q0.id, "copy:1", 3)])
    after = [Floor(Q0.id, "copy:0", 20, ahead=True), Floor(Q0.id, "copy:1", 9, ahead=True), other]
    assert sorted(worker.ledger.floors(worker.uid, LIVE)) == sorted(after)


def test_where_nothing_is_given_up_floors_stay(worker: Worker) -> None:
    worker.move(Q0, 0, 100)
    before = worker.ledger.floors(worker.uid, LIVE)
    put(worker, 5, abandon=True, floors=[floor._replace(position=floor.position + 9) for floor in before])
    assert worker.ledger.floors(worker.uid, LIVE) == before


def test_undo_puts_back_position_and_evidence(worker: Worker) -> None:
    worker.move(Q0, 0, 100)
    put(worker, 40)
    assert undo(worker) == Position(0, 100, {"last": 99})
    assert worker.position() == Position(0, 100, {"last": 99})


def test_undo_leaves_what_is_known_of_a_session(worker: Worker) -> None:
    """What was known when the offset was changed is out of date: the session went on."""
    worker.move(Q0, 0, 100)
    put(worker, 40)
    session = {"unconfirmed": "of now"}
    told = {"who": "bob", "session": session}
    assert worker.ledger.undo_offset([worker.lease], worker.uid, LIVE, Q0, **told) == Position(0, 100, session)
    assert worker.position() == Position(0, 100, session)


def test_what_an_offset_that_is_set_forward_leaves_out_is_known(worker: Worker) -> None:
    worker.move(Q0, 0, 100)
    put(worker, 101)
    [told] = worker.ledger.left_out(worker.uid)
    assert (told.partition, told.stream, told.run_id) == (Q0, LIVE, None)
    assert told.gap == Gap(0, 100, 101, "left out by ann, who set the offset: because")
    undo(worker)
    assert worker.ledger.left_out(worker.uid) == []


def test_where_a_partition_stood_that_counts_as_never_read_is_known(worker: Worker) -> None:
    put(worker, 40)
    worker.move(Q0, 40, 100)
    assert worker.ledger.forgotten(worker.uid, LIVE) == {}
    undo(worker)
    assert worker.ledger.forgotten(worker.uid, LIVE) == {Q0: Position(0, 100, {"last": 99})}
    put(worker, 7)
    assert worker.ledger.forgotten(worker.uid, LIVE) == {}


def test_undo_of_the_first_change_forgets_the_partition(worker: Worker) -> None:
    put(worker, 40)
    assert undo(worker) is None
    assert worker.position() is None
    worker.plan(planned(Q0, 777, 800))


def test_undo_undone_is_made_again(worker: Worker) -> None:
    put(worker, 40)
    undo(worker)
    assert undo(worker) == place(40)


def test_undo_is_refused_while_a_range_is_open_and_without_a_change(worker: Worker) -> None:
    with pytest.raises(ConfigError, match="no change"):
        undo(worker)
    put(worker, 0)
    worker.plan(planned(Q0, 0, 10))
    with pytest.raises(DataError):
        undo(worker)


def test_where_partitions_begin_is_kept_once(worker: Worker) -> None:
    worker.move(Q0, 0, 100)
    before = worker.position(Q0)
    first = {Q0: Position(0, 7), Q1: Position(0, 50, {"offset": 49})}
    worker.ledger.keep_seen([worker.lease], worker.uid, LIVE, first)
    worker.ledger.keep_seen([worker.lease], worker.uid, LIVE, {Q1: Position(0, 90)})
    assert worker.ledger.positions(worker.uid, LIVE, [Q0, Q1]) == {Q0: before, Q1: first[Q1]}
    with pytest.raises(ConfigError, match="no change"):
        worker.ledger.undo_offset([worker.lease], worker.uid, LIVE, Q1, who="bob")
    worker.move(Q1, 50, 60)


def test_who_holds_no_lease_keeps_where_partitions_begin_and_moves_none(worker: Worker) -> None:
    worker.move(Q0, 0, 100)
    before = worker.position(Q0)
    first = {Q0: Position(1, 0, {"held": 7}), Q1: Position(0, 0, {"held": 8})}
    for seen in (first, {Q1: Position(0, 90)}, {}):
        assert worker.ledger.keep_first(worker.uid, LIVE, seen, worker.ledger.begun(worker.uid, LIVE, ()))
    assert worker.ledger.positions(worker.uid, LIVE, [Q0, Q1]) == {Q0: before, Q1: first[Q1]}
    worker.move(Q1, 0, 60)


def test_what_was_seen_before_others_began_something_is_not_kept(worker: Worker) -> None:
    """It may be what they have begun."""
    ledger, uid = worker.ledger, worker.uid
    before, mine = ledger.begun(uid, LIVE, ()), ledger.begun(uid, LIVE, [Q1])
    assert ledger.keep_first(uid, LIVE, {Q0: Position(0, 0, {"held": 7})}, before)
    assert not ledger.keep_first(uid, LIVE, {Q1: Position(0, 0, {"held": 7})}, before)
    assert not ledger.keep_seen([worker.lease], uid, LIVE, {Q1: Position(0, 0, {"held": 7})}, mine)
    assert ledger.positions(uid, LIVE, [Q1]) == {Q1: None}
    assert ledger.keep_seen([worker.lease], uid, LIVE, {Q1: Position(0, 5)}, ledger.begun(uid, LIVE, [Q1]))
    assert ledger.plan([worker.lease], worker.run_id, uid, 0, [planned(Q1, 5, 9)], [], mine) == []


def test_what_was_seen_last_is_kept_where_a_partition_stands(worker: Worker) -> None:
    worker.move(Q0, 0, 100)
    for at in (Position(0, 100, {"held": 7}), Position(0, 90), Position(0, 110)):
        worker.ledger.keep_seen([worker.lease], worker.uid, LIVE, {Q0: at, Q1: Position(0, 5, {"held": at.offset})})
        assert worker.position(Q0) == Position(0, 100, {"held": 7})
    assert worker.position(Q1) == Position(0, 5, {"held": 110})
    worker.ledger.keep_seen([worker.lease], worker.uid, LIVE, {Q0: Position(1, 0, {"held": 8})})
    assert worker.position(Q0) == Position(1, 0, {"held": 8})


def test_imported_positions_keep_their_evidence_and_are_undone_one_by_one(worker: Worker) -> None:
    positions = {Q0: Position(2, 500, {"gtid": "a:1-5"}), Q1: Position(0, 9)}
    worker.ledger.move_offsets([worker.lease], worker.uid, LIVE, positions, who="ann", why="moved here")
    assert worker.ledger.positions(worker.uid, LIVE, [Q0, Q1]) == positions
    undo(worker)
    assert worker.ledger.positions(worker.uid, LIVE, [Q0, Q1]) == {Q0: None, Q1: positions[Q1]}


def test_an_import_is_all_or_nothing(worker: Worker) -> None:
    worker.plan(planned(Q1))
    positions = {Q0: Position(0, 5), Q1: Position(0, 5)}
    with pytest.raises(DataError):
        worker.ledger.move_offsets([worker.lease], worker.uid, LIVE, positions, who="ann", why="")
    assert worker.position(Q0) is None


def test_the_history_tells_every_move_in_order(worker: Worker) -> None:
    first = worker.move(Q0, 0, 100)
    put(worker, 40)
    undo(worker)
    second = worker.move(Q0, 100, 150)
    worker.move(Q1, 0, 5)
    steps = worker.ledger.offset_history(worker.uid, Q0)
    assert [(step.kind, step.before and step.before.offset, step.after and step.after.offset) for step in steps] == [
        ("settled", 0, 100),
        ("set", 100, 40),
        ("undo", 40, 100),
        ("settled", 100, 150),
    ]
    assert [(step.range_id, step.run_id) for step in steps if step.kind == "settled"] == [
        (first, worker.run_id),
        (second, worker.run_id),
    ]
    assert [(step.who, step.why) for step in steps if step.kind == "set"] == [("ann", "because")]
    assert [step.at for step in steps] == sorted(step.at for step in steps)
    newest = worker.ledger.offset_history(worker.uid, limit=2)
    assert [(step.partition, step.after and step.after.offset) for step in newest] == [(Q0, 150), (Q1, 5)]
    assert receipt(100, 150).evidence == (steps[-1].after or Position(0, 0)).evidence
