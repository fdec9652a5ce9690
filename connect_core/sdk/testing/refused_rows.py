"""What a sink promises whose marker says which rows the target has refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from connect_core.sdk.floors import next_floors
from connect_core.sdk.testing.driving import attempt, limit
from connect_core.sdk.testing.sink_content import ContentCase
from connect_core.sdk.testing.sinks import SettledState, SinkSuite, in_order, numbers

_REFUSED = (3, 7, 8, 11)
_ROWS = 12


class RefusedRowsContract(SinkSuite):
    """Part of the suite of `TransactionSink`."""

    def test_rows_behind_refused_ones_are_there_once_and_each_attempt_is_told_of_all_that_were(
        self, target: ContentCase
    ) -> None:
        """Two attempts die before they have a receipt, and the ledger of before the third one comes back."""
        if target.refused is None:
            pytest.skip("the target refuses nothing")
        ledger, others = SettledState(target), [one for one in numbers(_ROWS) if int(one) not in _REFUSED]
        for settles in (False, False, True):
            assert _delivered(ledger, settles=settles) == [*_REFUSED]
            assert in_order(target.content()) == others
        ledger.settled, ledger.open = 0, None
        ledger.floors = {name: floor._replace(position=0, ahead=True) for name, floor in ledger.floors.items()}
        assert _delivered(ledger, settles=True) == [*_REFUSED]
        assert in_order(target.content()) == others
        assert [floor.position for floor in ledger.floors.values()] == [len(others)]

    def test_what_was_refused_may_be_taken_by_the_next_attempt(self, target: ContentCase) -> None:
        """Then it is there, or refused once more."""
        if target.refused is None:
            pytest.skip("the target refuses nothing")
        ledger = SettledState(target)
        _delivered(ledger, settles=False)
        again = _delivered(ledger, settles=True, mended=True)
        assert again in ([], [3, 7, 8])
        assert in_order(target.content()) == [one for one in numbers(_ROWS) if int(one) not in again]


def _delivered(ledger: SettledState, *, settles: bool, mended: bool = False) -> list[int]:
    """The numbers of the rows that were refused. They were `mended` where the target takes them now."""
    ledger.epoch += 1
    sink, target = ledger.system.sink(), ledger.system
    item = ledger.adopted(sink) if ledger.open else ledger.planned(sink, _ROWS)
    hated = getattr(target, "refused", None)
    refused: list[int] = []
    rows = ledger.rows_of([hated if int(one) in _REFUSED and not mended else one for one in numbers(_ROWS)])
    there = item.known.present(rows.column("offset").to_numpy())
    fresh = rows.filter(pa.array(~there))
    with sink.writer(attempt(ledger.epoch, ledger.uid), item) as writer:
        writer.on_refused = lambda row, kind, message: refused.append(row.column("offset")[0].as_py())  # type: ignore[attr-defined]
        assert writer.write(fresh, limit()) == len(fresh)
        delivered = writer.flush(limit())
    assert delivered.records == len(fresh) - len(refused)
    if settles:
        moves = next_floors(item, delivered, ledger.first + _ROWS, int(there.sum()))
        ledger.floors = {move.floor.target: move.floor for move in moves}
        ledger.settled, ledger.open = _ROWS, None
    return refused
