"""What a target should have: where the rows begin that it has lost, and where it knows nothing of a partition."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connect_core.errors import Fenced
from connect_core.sdk.values import LIVE, Floor, Position
from connect_core.work import Outcome
from tests.contract.ledger.samples import PINS, Q0, Q1, Worker, planned, receipt

TABLE = "db/t"


def moved(worker: Worker, begin: int, end: int, rows: tuple[int, int] | None, emitted: int, to: str = TABLE) -> None:
    pins = replace(PINS, target={"target": to})
    [opened] = worker.plan(planned(Q0, begin, end, pins=pins))
    where = {to: [list(rows)]} if rows else {}
    sums = {"filtered": end - begin - emitted, "passed": emitted, "emitted": emitted}
    written = rows[1] - rows[0] if rows else 0
    told = receipt(begin, end, where=where, delivered=written, deduplicated=emitted - written, **sums)
    worker.settle(Outcome(opened.id, told))


def placed(worker: Worker, offset: int) -> None:
    worker.ledger.move_offsets([worker.lease], worker.uid, LIVE, {Q0: Position(0, offset)}, who="ann", why="")


@pytest.mark.parametrize(
    ("count", "begin"),
    [
        (0, 70),  # the first range that has brought a row, of which an attempt had left some
        (10, None),  # within that
        (30, None),  # behind what the attempt had left
        (50, 300),  # a person has passed over what is between; and what brought nothing is passed over
        (60, None),
        (65, None),  # there is nothing behind them
    ],
)
def test_lost_rows_begin_where_the_range_began_that_brought_them(worker: Worker, count: int, begin: int | None) -> None:
    placed(worker, 50)
    moved(worker, 50, 70, None, 0)
    moved(worker, 70, 120, (30, 50), 50)
    moved(worker, 120, 130, (0, 10), 10, to="db/other")
    placed(worker, 200)
    moved(worker, 200, 300, None, 0)
    moved(worker, 300, 320, (50, 65), 15)
    found = worker.ledger.begin_behind(worker.uid, LIVE, Q0, TABLE, count)
    assert found == (None if begin is None else Position(0, begin))


def test_what_a_person_has_placed_is_known(worker: Worker) -> None:
    worker.move(Q1)
    assert worker.ledger.placed(worker.uid, LIVE, [Q0, Q1]) == {}
    placed(worker, 50)
    assert worker.ledger.placed(worker.uid, LIVE, [Q0, Q1]) == {Q0: Position(0, 50)}
    worker.ledger.undo_offset([worker.lease], worker.uid, LIVE, Q0, who="ann")
    assert worker.ledger.placed(worker.uid, LIVE, [Q0, Q1]) == {}, "it counts as never read"


def test_floors_of_what_was_never_planned_are_kept_and_no_others_changed(worker: Worker) -> None:
    floor = Floor(Q0.id, TABLE, 9, ahead=True)
    worker.plan(planned(Q0, 0, 100), floors=[floor])
    new = Floor(Q1.id, TABLE, 0, evidence={"marker": "left"})
    worker.ledger.keep_floors([worker.lease], worker.uid, LIVE, [floor._replace(position=0), new])
    assert sorted(worker.ledger.floors(worker.uid, LIVE)) == sorted([floor, new])
    worker.taken_over()
    with pytest.raises(Fenced):
        worker.ledger.keep_floors([worker.lease], worker.uid, LIVE, [new])
