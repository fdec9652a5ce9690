"""Records -> messages of one queue, or of several, in order in each: the RocketMQ sink's hot path.

A range by partition, or by queue, has one queue: at most one batch is outstanding, the next one is encoded meanwhile.
A range by key, or with rules, has several: each of them has at most one batch outstanding, those of different queues
overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from connect_core.rocketmq import Queue
from connect_core.sdk.batches import whole_records
from connect_core.sdk.records import Lineage
from connect_core.sdk.sink import OnRefused
from connect_core.sdk.spans import Span
from connect_core.sdk.values import Delivered, Limit
from connect_core.systems.rocketmq.appending import QueueAppender
from connect_core.systems.rocketmq.marking import MessageMarker
from connect_core.systems.rocketmq.parcels import BATCH_BYTES, Load, batch_sizes, message_bytes
from connect_core.systems.rocketmq.routing import Router

ENCODED_RECORDS = 4_000
"""Several batches at once, which takes fewer calls. Not more, because nothing is sent meanwhile."""
MAX_SPANS = 64
"""As many stretches are told in a receipt."""
MAX_AT_ONCE = 8
"""So many full batches, of all queues together, are at most encoded and under way."""


class QueueWriter:
    """A `sdk.sink.Writer` and `Storing`, for a range whose records all go to one queue. `most_bytes` is what a body may
    have."""

    def __init__(self, appender: QueueAppender, lineage: Lineage, send_timeout_s: float, most_bytes: int) -> None:
        self.appender = appender
        self._send_timeout_s = send_timeout_s
        self._most_bytes = most_bytes
        self._marker = MessageMarker(lineage)

    @property
    def on_refused(self) -> OnRefused | None:
        """See `sdk.sink.Refusable`."""
        return self.appender.on_refused

    @on_refused.setter
    def on_refused(self, told: OnRefused | None) -> None:
        self.appender.on_refused = told

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
        taken = 0
        for parcel in Load.of(records, self._marker, self._most_bytes).parcels():
            if limit.quantum_left_s() <= 0 or limit.left_s() <= self._send_timeout_s:
                break
            self.appender.send(parcel, limit)
            taken += parcel.rows
        return taken

    def store(self, limit: Limit) -> None:
        self.appender.finish(limit)

    def flush(self, limit: Limit) -> Delivered:
        return _flushed([self.appender], limit)


class SpreadWriter:
    """A `sdk.sink.Writer` and `Storing`, for a range whose records go to several queues, or have several outputs.
    `opened` gives the way into a queue when the first record goes there: most ranges of a window have few.

    What is taken is always the first of what was given, over all queues: a round is sent as a whole or not begun, and
    holds all outputs of its records.
    Within a queue records stand in order, and what is there is the first of what was to go there (`appending`). So a
    record that is missing in a queue has no later one of its range behind it: the next attempt's copies of what is
    missing stand behind what is there, and in order with it. Of two queues one may be ahead by any number of records.
    """

    def __init__(
        self,
        router: Router,
        opened: Callable[[Queue], QueueAppender],
        lineage: Lineage,
        send_timeout_s: float,
        most_bytes: int,
    ) -> None:
        self._router = router
        self._opened = opened
        self._send_timeout_s = send_timeout_s
        self._most_bytes = most_bytes
        self._marker = MessageMarker(lineage)
        self._appenders: dict[Queue, QueueAppender] = {}
        self.on_refused: OnRefused | None = None
        """See `sdk.sink.Refusable`."""

    def write(self, records: pa.RecordBatch, limit: Limit) -> int:
        """Takes whole rounds while there is time for one more."""
        taken = 0
        offsets = records.column("offset").to_numpy()
        most_bytes = BATCH_BYTES * min(len(self._router.queues), MAX_AT_ONCE)
        for end in np.cumsum(batch_sizes(message_bytes(records), ENCODED_RECORDS, most_bytes)).tolist():
            if end <= taken:  # the outputs of one record were more than a round
                continue
            if limit.quantum_left_s() <= 0 or limit.left_s() <= self._send_timeout_s:
                break
            end = whole_records(offsets, end)
            self._send(records.slice(taken, end - taken), limit)
            taken = end
        return taken

    def store(self, limit: Limit) -> None:
        for one in self._appenders.values():
            one.finish(limit)

    def flush(self, limit: Limit) -> Delivered:
        """Waits for all queues before any of them is looked through."""
        return _flushed(list(self._appenders.values()), limit)

    def _send(self, records: pa.RecordBatch, limit: Limit) -> None:
        """One request to each queue, then the next ones: while one is stored the others are under way."""
        load = Load.of(records, self._marker, self._most_bytes)
        waiting = [(self._appender(queue), load.take(rows).parcels()) for queue, rows in self._router.routed(records)]
        while waiting:
            going_on = []
            for appender, parcels in waiting:
                if (parcel := next(parcels, None)) is not None:
                    appender.send(parcel, limit)
                    going_on.append((appender, parcels))
            waiting = going_on

    def _appender(self, queue: Queue) -> QueueAppender:
        if queue not in self._appenders:
            self._appenders[queue] = self._opened(queue)
            self._appenders[queue].on_refused = self.on_refused
        return self._appenders[queue]


def _flushed(appenders: Sequence[QueueAppender], limit: Limit) -> Delivered:
    for one in appenders:
        one.finish(limit)
    for one in appenders:
        one.look(limit)
    written = {str(one.queue): spans for one in appenders if (spans := one.written())}
    unsure = {f"{one.queue} {answer}": spans for one in appenders for answer, spans in one.unsure().items()}
    places = written | unsure
    return Delivered(
        records=sum(one.records for one in appenders),
        bytes=sum(one.bytes for one in appenders),
        behind={name: spans[-1][1] for name, spans in written.items()},
        where={name: _shown(spans, MAX_SPANS // len(places) or 1) for name, spans in places.items()},
        duplicates=sum(one.duplicates for one in appenders),
        possible_duplicates=sum(one.possible_duplicates for one in appenders),
        stands={str(one.queue): one.stands for one in appenders if one.stands},
    )


def _shown(written: Sequence[Span], most: int) -> list[list[int]]:
    """For the receipt. Where others have written between nearly all of our messages only from where to where."""
    return [list(span) for span in written] if len(written) <= most else [[written[0][0], written[-1][1]]]
