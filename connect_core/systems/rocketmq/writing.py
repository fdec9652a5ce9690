"""Records -> messages of one queue, in order: the RocketMQ sink's hot path.

At most one batch is outstanding; the next one is encoded meanwhile. Every acknowledgement is compared with the offset
that was expected: what got in between is read back before `flush` returns, and messages of this lineage among it are
surplus: a request of an attempt that is dead, which its broker had kept back (delivery rule 4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect_core import clock
from connect_core.contracts import Delivered, Limit, OpenRange
from connect_core.errors import Retriable
from connect_core.rocketmq import Acknowledged, Batch, Client, Queue
from connect_core.systems.rocketmq.encoding import batch_of, encode_entries
from connect_core.systems.rocketmq.marking import MARK_BYTES, Marker, ours

BATCH_RECORDS = 1_000
BATCH_BYTES = 768 * 1024
ENCODED_RECORDS = 4_000
"""Several batches at once, which takes fewer calls. Not more, because nothing is sent meanwhile."""
MAX_SPANS = 64
"""As many stretches are told in a receipt."""
_POLL_S = 0.005

Span = tuple[int, int]
"""Offsets of a queue from the first (included) to the second (excluded)."""


class QueueWriter:
    """A `contracts.Writer` for one range. `expected` is the offset that the next batch should get."""

    def __init__(
        self, client: Client, queue: Queue, uid: str, wanted: OpenRange, expected: int, send_timeout_s: float
    ) -> None:
        self._client = client
        self._queue = queue
        self._lineage = wanted.range.lineage(uid)
        self._send_timeout_s = send_timeout_s
        self._sender = client.sender(queue)
        self._marker = Marker(self._lineage)
        self.expected = expected
        self._written: list[list[int]] = []
        self._foreign: list[Span] = []
        self._records = 0
        self._bytes = 0
        self._surplus = 0
        self.others: Callable[[], Sequence[Span]] = tuple
        """Where other writers of the same lane have written to this queue by now."""

    def write(self, records: pa.RecordBatch, limit: Limit) -> int:
        """Takes whole batches while there is time for one more send: each is sent as soon as the last is stored."""
        taken = 0
        for begin in range(0, len(records), ENCODED_RECORDS):
            together = records.slice(begin, ENCODED_RECORDS)
            taken += self._write(together, limit)
            if taken < begin + len(together):
                break
        return taken

    def _write(self, records: pa.RecordBatch, limit: Limit) -> int:
        entries = encode_entries(pc.fill_null(records.column("value"), b""), self._marker.properties(records))
        taken = 0
        for rows in batch_sizes(records):
            if limit.quantum_left_s() <= 0 or limit.left_s() <= self._send_timeout_s:
                break
            self._send(batch_of(entries.slice(taken, rows)), limit)
            taken += rows
        return taken

    def look_between(self, *spans: Span) -> None:
        """`flush` looks through these as well: what came before the first batch."""
        self._foreign += spans

    def written(self) -> list[Span]:
        """Where the acknowledged batches stand."""
        return [(begin, end) for begin, end in self._written]

    def flush(self, limit: Limit) -> Delivered:
        self._count(self._sender.finish(deadline=self._deadline(limit)))
        self._look_between(limit)
        name = str(self._queue)
        return Delivered(
            records=self._records,
            bytes=self._bytes,
            behind={name: self._written[-1][1]} if self._written else {},
            where={name: _shown(self._written)} if self._written else {},
            surplus=self._surplus,
        )

    def _send(self, batch: Batch, limit: Limit) -> None:
        self._count(self._sender.submit(batch, deadline=self._deadline(limit)))
        self._bytes += len(batch.body)

    def _deadline(self, limit: Limit) -> float:
        """The last moment at which a send may begin, so that its outcome is known before the lane's deadline."""
        return clock.monotonic() + limit.left_s() - self._send_timeout_s

    def _count(self, stored: Acknowledged | None) -> None:
        if stored is None:
            return
        if stored.first_offset > self.expected:
            self._foreign.append((self.expected, stored.first_offset))
        if self._written and self._written[-1][1] == stored.first_offset:
            self._written[-1][1] = stored.next_offset
        else:
            self._written.append([stored.first_offset, stored.next_offset])
        self.expected = stored.next_offset
        self._records += stored.count

    def _look_between(self, limit: Limit) -> None:
        deadline = clock.monotonic() + limit.left_s()
        if not self._foreign:
            return
        begin, end = min(span[0] for span in self._foreign), max(span[1] for span in self._foreign)
        for one in uncovered(begin, end, [*self.written(), *self.others()]):
            self._surplus += self._surplus_in(*one, deadline)
        self._foreign = []

    def _surplus_in(self, begin: int, end: int, deadline: float) -> int:
        """Messages of this lineage in [begin, end): whatever record they are of, this writer has not sent them."""
        count = 0
        while begin < end:
            reader = self._client.read(self._queue, begin, end, deadline=deadline)
            for part in reader:
                count += sum(1 for _ in ours(part.messages, [self._lineage]))
            begin = reader.position
            if begin < end:  # acknowledged, but not visible yet
                if clock.monotonic() >= deadline:
                    raise Retriable(
                        "No time was left to read what others wrote between our batches",
                        where=f"{self._queue}, offset {begin}",
                        next_step="The next attempt looks at all of it; give this topic fewer writers a queue",
                    )
                clock.sleep(_POLL_S)
        return count


def _shown(written: Sequence[list[int]]) -> list[list[int]]:
    """For the receipt. Where others have written between nearly all of our messages only from where to where."""
    return [list(span) for span in written] if len(written) <= MAX_SPANS else [[written[0][0], written[-1][1]]]


def uncovered(begin: int, end: int, spans: Sequence[Span]) -> Sequence[Span]:
    """What of [begin, end) is in none of the spans, which may overlap and come in any order."""
    rest: list[Span] = []
    for span_begin, span_end in sorted(spans):
        if begin < min(span_begin, end):
            rest.append((begin, min(span_begin, end)))
        begin = max(begin, span_end)
    return [*rest, (begin, end)] if begin < end else rest


def message_bytes(records: pa.RecordBatch) -> np.ndarray:
    """For each row about how many bytes its message takes: body, properties, and what is added to them."""
    total = np.full(len(records), MARK_BYTES, dtype=np.int64)
    for name in ("value", "key", "tags", "headers"):
        column = records.column(name)
        if column.null_count < len(records):
            total += pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
    return total


def batch_sizes(records: pa.RecordBatch) -> Sequence[int]:
    """How many rows go into each batch: in order, all rows, none empty, within both limits where one row is."""
    ends = np.cumsum(message_bytes(records))
    sizes: list[int] = []
    row = 0
    while row < len(ends):
        before = int(ends[row - 1]) if row else 0
        fit = int(np.searchsorted(ends, before + BATCH_BYTES, side="right"))
        end = min(max(fit, row + 1), row + BATCH_RECORDS, len(ends))
        sizes.append(end - row)
        row = end
    return sizes
