"""Pull answers of one queue on their way to becoming one batch of records, and what the range may still hold.

Answers hold few messages (32 by default), so several make one batch, but not for longer than `MAX_WAIT_S`. Every offset
is accounted for: it has a message, or the range ends before it (`hole`). That is so too when the broker says that it
has filtered something out, for it was not asked to: nobody knows then what was there. The first message is always
taken, so that every range makes progress.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from connect_core import clock
from connect_core.errors import WireFormatError
from connect_core.rocketmq import MissingRange, StoredSlice
from connect_core.rocketmq.reading import HOLE
from connect_core.sdk.batches import value_lengths
from connect_core.sdk.values import Range, Reject, SourceBatch
from connect_core.systems.rocketmq.columns import Columns, columns_of
from connect_core.systems.rocketmq.connecting import queue_of
from connect_core.systems.rocketmq.decoding import without_copies
from connect_core.systems.rocketmq.read_before import read_before

MAX_ROWS = 4_000
MAX_BATCH_BYTES = 2 * 1024 * 1024
MAX_WAIT_S = 0.1

Decode = Callable[[Columns, str], tuple[pa.RecordBatch, tuple[Reject, ...]]]
"""Messages and their topic -> their rows, and those that are none."""


class Gathering:
    """`add` answers until it is `full`, then `take` a batch; stop when it is `exhausted` or has a `hole`: what should
    be there and is not. Nothing behind that is taken."""

    def __init__(self, wanted: Range, decode: Decode, *, leave_out_copies: bool = False) -> None:
        self._decode = decode
        self._leave_out_copies = leave_out_copies
        self.hole: MissingRange | None = None
        self._where, self._evidence = wanted.partition.key, wanted.evidence
        self._topic = queue_of(wanted.partition.key).topic
        self._begin = self._end = wanted.begin
        self._records_left, self._bytes_left = wanted.max_records, wanted.max_bytes
        self._parts: list[StoredSlice] = []
        self._bytes = 0
        self._since = 0.0
        self._taken = False

    def add(self, part: StoredSlice) -> None:
        if not self._parts:
            self._since = clock.monotonic()
        if part.data:
            self._parts.append(part)
            self._bytes += len(part.data)
            self._end = part.end
        else:
            self.hole = MissingRange(part.begin, part.end, part.cause)

    def pending(self) -> bool:
        """Whether anything was gathered that was not handed over."""
        return self._end > self._begin

    def full(self) -> bool:
        """Whether what was gathered should be handed over now."""
        if not self.pending():
            return False
        many = self._end - self._begin >= min(MAX_ROWS, self._records_left)
        large = self._bytes >= min(MAX_BATCH_BYTES, self._bytes_left)
        return many or large or clock.monotonic() - self._since >= MAX_WAIT_S

    def exhausted(self) -> bool:
        """Whether the range may hold no more."""
        return self._records_left <= 0 or self._bytes_left <= 0

    def take(self) -> tuple[Columns, SourceBatch]:
        """What fits, as a batch. What does not fit is let go: the range is over then."""
        gathered = self._decoded()
        lengths = value_lengths(gathered.bodies)
        fitting = self._fitting(lengths)
        messages = gathered.between(0, fitting)
        left_over = fitting < len(gathered)
        end = int(gathered.offsets[fitting]) if left_over else self._end
        own, copies = without_copies(messages) if self._leave_out_copies else (messages, ())
        records, rejects = self._decode(own, self._topic)
        again = read_before(self._evidence, own, records)
        batch = SourceBatch(records, end, rejects=rejects, filtered=copies, doubtful=again)
        self._records_left = 0 if left_over else self._records_left - len(messages)
        self._bytes_left -= int(lengths[:fitting].sum())
        self._taken = self._taken or len(messages) > 0
        self._begin = self._end = end
        self._parts, self._bytes = [], 0
        return messages, batch

    def _decoded(self) -> Columns:
        """The messages gathered, up to the first offset that should have one and has none."""
        stored = columns_of(b"".join(part.data for part in self._parts))
        decoded = stored.before(self._end)
        decoded = decoded.between(int(np.searchsorted(decoded.offsets, self._begin)), len(decoded))
        expected = np.arange(self._begin, self._end)
        if np.array_equal(decoded.offsets, expected):
            return decoded
        if len(stored) and stored.offsets[-1] < self._begin:
            raise self._misplaced(self._begin, int(stored.offsets[-1]))
        self.hole = self._first_hole(decoded.offsets, expected)
        self._end = self.hole.begin
        return decoded.before(self.hole.begin)

    def _first_hole(self, offsets: NDArray[np.int64], expected: NDArray[np.int64]) -> MissingRange:
        if (np.diff(offsets) <= 0).any() or not np.isin(offsets, expected).all():
            known = min(len(offsets), len(expected))
            row = int(np.argmax(np.append(offsets[:known] != expected[:known], True)))
            raise self._misplaced(int(expected[min(row, len(expected) - 1)]), int(offsets[min(row, len(offsets) - 1)]))
        missing = np.setdiff1d(expected, offsets)
        begin = int(missing[0])
        run = int(np.argmin(np.append(missing == np.arange(begin, begin + len(missing)), False)))
        return MissingRange(begin, begin + run, HOLE)

    def _misplaced(self, offset: int, stored: int) -> WireFormatError:
        return WireFormatError(
            f"The broker's index of the queue has a message there that says it is at {stored}",
            where=f"{self._where}, offset {offset}",
            next_step="Nothing from there on was read. RocketMQ 5.3.3 shifts a queue so after a message with more than "
            f"32,767 bytes of properties. To leave out that message and continue at {offset + 1}: waybill offsets "
            "set; waybill gaps shows it afterwards",
        )

    def _fitting(self, lengths: NDArray[np.int64]) -> int:
        """How many of the messages gathered the range may still hold."""
        fit = int(np.searchsorted(np.cumsum(lengths, dtype=np.int64), self._bytes_left, side="right"))
        return min(max(fit, int(not self._taken)), self._records_left, len(lengths))
