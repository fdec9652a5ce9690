"""Settle: receipts, offsets, floors, gaps and dead letters in ONE fenced transaction. Called by the driver of a run.

After it the records of a receipt are done and never read again; before it they are open and looked for. A settle is
known by (range, epoch, digest of the receipt): where the answer to COMMIT was lost, what is stored is read back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from connect_core.errors import DataError
from connect_core.ledger.database import CommitUnknown, Transactions, now, upsert
from connect_core.ledger.dead_letters import UNTOUCHED
from connect_core.ledger.errors_sink import close_sent_letters, moves_letters
from connect_core.ledger.floors import WantedMove, moved
from connect_core.ledger.gaps import keep_gaps
from connect_core.ledger.leases import Lease, fence
from connect_core.ledger.letter_replays import close_letters, replays_letters
from connect_core.ledger.live import merge_settled
from connect_core.ledger.ranges import FLOOR_KEY, locked_floors, require_continuous
from connect_core.ledger.rows import (
    Row,
    floor_row,
    gaps_of,
    position_row,
    range_of,
    receipt_digest,
    receipt_row,
    storable,
)
from connect_core.ledger.tables import DEAD_LETTERS, FLOORS, OFFSETS, RANGES
from connect_core.sdk.records import Partition
from connect_core.sdk.values import ERRORS_SINK, OPEN_END, Position
from connect_core.work import Outcome, Receipt

OFFSET_KEY = ("uid", "stream", "partition_id")
_DEAD_LETTER_KEY = ("uid", "stream", "partition_id", "incarnation", "record_offset", "ordinal", "stage")


@dataclass(frozen=True)
class _Closing:
    """One range that is being settled: its row, its receipt, and who settles it when."""

    row: Any
    receipt: Receipt
    run_id: str
    epoch: int
    moment: datetime
    to_sink: bool

    def place(self) -> Row:
        """The columns that say of which partition something is."""
        return {name: getattr(self.row, name) for name in ("uid", "stream", "partition_id", "partition_key")}

    def origin(self) -> Row:
        return {"range_id": self.row.id, "run_id": self.run_id, "stored_at": self.moment}


class Settling(Transactions):
    """The part of the ledger that closes ranges."""

    def settle(
        self, leases: Sequence[Lease], run_id: str, uid: str, outcomes: Sequence[Outcome], *, to_sink: bool = False
    ) -> None:
        """Closes the ranges of all `outcomes` that have a receipt, each at the end that its receipt reached. New dead
        letters go `to_sink`, a second target, when there is one.

        Called again with the same outcomes it changes nothing and returns. Raises DataError, and changes nothing, when
        a receipt does not fit its range, its sums do not hold or it moves a floor from where that does not stand;
        Fenced when a lease is lost; Retriable when the answer to COMMIT was lost and the receipts are not to be seen:
        then call it again.
        """
        receipts = {outcome.range_id: outcome.receipt for outcome in outcomes if outcome.receipt is not None}
        if not receipts:
            return
        epoch = leases[0].epoch if leases else 0
        try:
            with self._write() as connection:
                fence(connection, leases)
                for_closing = _checked(connection, uid, epoch, receipts)
                moment = now()
                closings = [_Closing(row, receipts[row.id], run_id, epoch, moment, to_sink) for row in for_closing]
                _close(connection, closings, _moved_floors(connection, closings))
                if any(row.planned_end >= OPEN_END for row in for_closing):
                    merge_settled(connection, run_id, {row.partition_id for row in for_closing})
        except CommitUnknown:
            if not self._all_stored(epoch, receipts):
                raise

    def _all_stored(self, epoch: int, receipts: Mapping[int, Receipt]) -> bool:
        with self._read() as connection:
            rows = _rows(connection, receipts)
        return len(rows) == len(receipts) and all(_is_stored(row, epoch, receipts[row.id]) for row in rows)


_BY_ID = sa.select(RANGES).where(RANGES.c.id.in_(sa.bindparam("ids", expanding=True))).order_by(RANGES.c.id)
_CLOSE = RANGES.update().where(RANGES.c.id == sa.bindparam("range_id"))


def _rows(connection: Connection, receipts: Mapping[int, Receipt]) -> Sequence[Any]:
    return connection.execute(_BY_ID, {"ids": list(receipts)}).all()


def _is_stored(row: Any, epoch: int, receipt: Receipt) -> bool:
    return bool(row.state == "settled" and row.epoch == epoch and row.receipt_digest == receipt_digest(receipt))


def _checked(connection: Connection, uid: str, epoch: int, receipts: Mapping[int, Receipt]) -> list[Any]:
    """The rows that are to be closed: without those that hold exactly their receipt already."""
    rows = [row for row in _rows(connection, receipts) if row.uid == uid]
    missing = sorted(receipts.keys() - {row.id for row in rows})
    if missing:
        raise DataError(
            f"No range {missing[0]} was planned", where=f"connector {uid}", next_step="Read the open ranges again"
        )
    for_closing = [row for row in rows if not _is_stored(row, epoch, receipts[row.id])]
    for row in for_closing:
        faults = _faults(row, receipts[row.id])
        if faults:
            raise _refused(row, faults)
    for stream in sorted({row.stream for row in for_closing}):
        here = [range_of(row) for row in for_closing if row.stream == stream]
        require_continuous(connection, uid, stream, here)
    return for_closing


def _refused(row: Any, faults: Sequence[str]) -> DataError:
    where = f"connector {row.uid}, stream {row.stream}, partition {row.partition_key}, range {row.id}"
    return DataError(f"This receipt cannot be settled: {'; '.join(faults)}", where=where, next_step=_LOOK_ADVICE)


_LOOK_ADVICE = "Nothing was settled; the next attempt checks the target for written records"


def _faults(row: Any, receipt: Receipt) -> list[str]:
    if row.state != "open":
        return [f"its range is {row.state} already, with another receipt"]
    faults = receipt.identity_faults()
    if receipt.covered is None and not receipt.reconstructed:
        faults.append("it does not say how many positions it accounts for")
    if receipt.begin != row.begin_offset:
        faults.append(f"it begins at {receipt.begin}, its range at {row.begin_offset}")
    if receipt.end > row.planned_end:
        faults.append(f"it ends at {receipt.end}, after the end of its range, {row.planned_end}")
    return faults


def _moved_floors(connection: Connection, closings: Sequence[_Closing]) -> list[Row]:
    """The floors as these receipts leave them. Raises DataError when one of them does not move from where it stands:
    somebody else has settled in that target since, or a worker did not begin where it was told to."""
    return [
        row
        for stream in sorted({one.row.stream for one in closings})
        for row in _moved_of(connection, stream, [one for one in closings if one.row.stream == stream])
    ]


def _moved_of(connection: Connection, stream: str, closings: Sequence[_Closing]) -> list[Row]:
    uid, moment = closings[0].row.uid, closings[0].moment
    rows = {one.row.id: one.row for one in closings}
    wanted = [
        WantedMove(one.row.id, one.row.partition_id, move, shared=one.row.planned_end >= OPEN_END)
        for one in closings
        for move in one.receipt.floors
    ]
    stored = locked_floors(connection, uid, stream, {one.move.floor.partition_id for one in wanted})
    floors, misfits = moved(stored, wanted)
    if misfits:
        raise _refused(rows[misfits[0].range_id], [one.fault for one in misfits])
    return [floor_row(uid, stream, floor, moment) for floor in floors]


def _close(connection: Connection, closings: Sequence[_Closing], floors: Sequence[Row]) -> None:
    if not closings:
        return
    for one in closings:
        if replays_letters(one.row.stream):
            close_letters(connection, one.row, one.receipt, one.run_id, one.moment)
        elif one.row.stream == ERRORS_SINK:
            close_sent_letters(connection, one.row, one.receipt, one.run_id)
    connection.execute(_CLOSE, [_closed_row(one) for one in closings])
    upsert(connection, OFFSETS, OFFSET_KEY, [_offset_row(one) for one in closings])
    upsert(connection, FLOORS, FLOOR_KEY, floors)
    keep_gaps(connection, [row for one in closings for row in _gap_rows(one)])
    rejected = [row for one in closings for row in _dead_letter_rows(one)]
    upsert(connection, DEAD_LETTERS, _DEAD_LETTER_KEY, rejected)


def _closed_row(one: _Closing) -> Row:
    receipt = receipt_row(one.receipt)
    settled = {"state": "settled", "open_key": None, "found": None, "closed_at": one.moment}
    return {**receipt, **settled, "range_id": one.row.id, "run_id": one.run_id, "epoch": one.epoch}


def _offset_row(one: _Closing) -> Row:
    position = Position(one.row.incarnation, one.receipt.end, one.receipt.evidence)
    return position_row(one.row.uid, one.row.stream, Partition(one.row.partition_key), position, one.moment)


def _gap_rows(one: _Closing) -> list[Row]:
    """Those that the plan told of and those that were met while reading."""
    return [
        {
            **one.place(),
            **one.origin(),
            "incarnation": gap.incarnation,
            "begin_offset": gap.begin,
            "end_offset": gap.end,
            "reason": gap.reason,
        }
        for gap in (*gaps_of(one.row.gaps), *one.receipt.gaps)
    ]


def _dead_letter_rows(one: _Closing) -> list[Row]:
    """New ones: what moves dead letters has none. One that is rejected once more, after an offset was moved back, keeps
    what it is on the way to the second target: it goes there once."""
    if moves_letters(one.row.stream):
        return []
    to_sink = {"to_sink": True} if one.to_sink else {}
    return [
        {
            **one.place(),
            **one.origin(),
            "incarnation": one.row.incarnation,
            "record_offset": reject.offset,
            "ordinal": reject.ordinal,
            "stage": reject.stage,
            "kind": storable(reject.kind),
            "message": storable(reject.message),
            "original": reject.original,
            "topic": None if reject.topic is None else storable(reject.topic),
            "attributes": reject.attributes,
            **to_sink,
            **UNTOUCHED,
        }
        for reject in one.receipt.rejects
    ]
