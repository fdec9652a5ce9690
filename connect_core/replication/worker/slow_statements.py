"""Statements of `sql` steps that take too long for a batch: fewer records are shaped at once, until one alone is found
that takes too long, or all are through. Pure.

Time says nothing of a record: the same one may be through in time when the machine is idle. So it is not rejected,
which another attempt would not do (delivery rule 8). What stands before it is delivered, and its partition stops there.
"""

from __future__ import annotations

import shlex

import numpy as np
import pyarrow as pa

from connect_core.pipeline.transforms.too_slow import StatementTooSlow
from connect_core.replication.worker.counts import cut
from connect_core.sdk.values import LIVE, OpenRange, SourceBatch

_QUICK_S = 0.25
"""Four times as many records then take half of what they may."""
_MORE = 4


class AtOnce:
    """How many records of a range are shaped at once."""

    def __init__(self) -> None:
        self._most: int | None = None
        """None: as many as come."""

    @property
    def reduced(self) -> bool:
        return self._most is not None

    def of(self, records: pa.RecordBatch) -> pa.RecordBatch:
        return records if self._most is None else records.slice(0, self._most)

    def took(self, seconds: float) -> None:
        if self._most is not None and seconds < _QUICK_S:
            self._most *= _MORE

    def reduce(self, records: pa.RecordBatch, slow: StatementTooSlow) -> bool:
        """False where the first of these records alone takes too long. One that is known is shaped by itself later,
        when those before it are through."""
        if slow.offset is None:
            self._most = 1
            return True
        before = int(np.searchsorted(records.column("offset").to_numpy(), slow.offset))
        self._most = before or None
        return before > 0


def stopped_at(slow: StatementTooSlow, batch: SourceBatch, item: OpenRange, name: str) -> StatementTooSlow:
    """What a person is told of the first record of the batch, where this connector moves it."""
    wanted = item.range
    behind = cut(batch, 1)[0].next_offset
    leave_out = f"waybill offsets set {name} {shlex.quote(wanted.partition.key)} {behind}"
    one_record = (
        f"leave out this one record, and runs continue behind it: {leave_out}; or " if wanted.stream == LIVE else ""
    )
    return StatementTooSlow(
        slow.what,
        offset=slow.offset,
        where=f"connector {name}, partition {wanted.partition.key}, offset {slow.offset}",
        next_step="The records before it were delivered. It is not rejected: on a machine that is less busy it may be"
        f" through in time, so run again first. Else {one_record}make the statement simpler, and give up what is open:"
        f" {wanted.give_up}",
    )
