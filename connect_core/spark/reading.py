"""Reads queues for Spark: `planned` once, where Spark plans; `read` in each task.

Every offset that was asked for has a row, or held no message, or is told as lost: as an error, or as a row.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import pyarrow as pa

from connect_core import clock
from connect_core.errors import ConfigError, DataError, Fault, OffsetGone
from connect_core.rocketmq import Client, NoAnswer, Queue, QueueBounds
from connect_core.sdk.records import Partition
from connect_core.sdk.values import LIVE, Pins, Range
from connect_core.spark.options import ReadOptions
from connect_core.spark.ranges import ReadPiece, ReadRange, pieces
from connect_core.spark.rows import Rows
from connect_core.systems.rocketmq.finding import wait_until_visible
from connect_core.systems.rocketmq.gathering import Gathering
from connect_core.systems.rocketmq.times import first_stored_at

log = logging.getLogger(__name__)

_ACCEPT = 'Choose messages that are still there, or continue without them: option("on_data_loss", "skip")'
_NO_BYTE_LIMIT = 1 << 62
_NO_PINS = Pins(0, "", {}, "")

Seen = Mapping[Queue, QueueBounds]


def planned(options: ReadOptions) -> list[ReadPiece]:
    """What the tasks read, queue by queue. Raises OffsetGone when some of what is wanted is gone, unless that is
    accepted: then there is a piece that says so."""
    with Client(options.client_options()) as client:
        seen = _seen(client, options)
        wanted, doubts = _wanted(client, options, seen)
    found = [piece for one in wanted for piece in pieces(one, seen[one.queue], options.range_records)]
    lost = [*doubts, *(piece for piece in found if piece.lost)]
    if lost and options.on_data_loss == "fail":
        raise _gone(lost)
    return [*doubts, *found]


def read(options: ReadOptions, piece: ReadPiece) -> Iterator[pa.RecordBatch]:
    """The messages of one piece in order, as batches of the data source's columns."""
    rows = Rows(piece.queue, options)
    if piece.lost:
        yield _told(rows, piece)
        return
    with Client(options.client_options()) as client:
        yield from _PieceReading(client, options, piece, rows).batches()


class _PieceReading:
    """One piece on its way through one task. `position` is the next offset."""

    def __init__(self, client: Client, options: ReadOptions, piece: ReadPiece, rows: Rows) -> None:
        self._client = client
        self._options = options
        self._piece = piece
        self._rows = rows
        self._position = piece.begin

    def batches(self) -> Iterator[pa.RecordBatch]:
        while self._position < self._piece.end:
            yield from self._stretch()

    def _stretch(self) -> Iterator[pa.RecordBatch]:
        """What one reader gives: up to the end, to what is lost, or for as long as a busy broker is asked again."""
        begin, end = self._position, self._piece.end
        gathering = Gathering(_range(self._piece, begin), self._rows.decoded)
        lost = ""
        deadline = clock.monotonic() + self._options.busy_s
        reader = self._client.read(self._piece.queue, begin, end, deadline=deadline)
        try:
            for part in reader.stored():
                gathering.add(part)
                if gathering.full():
                    yield from self._taken(gathering)
                if gathering.hole:
                    break
        except OffsetGone as error:
            lost = error.what
        if gathering.pending():
            yield from self._taken(gathering)
        if not lost and reader.queue_end < 0:
            raise NoAnswer(
                f"The broker did not answer in {self._options.busy_s:g} s",
                where=f"{self._piece.queue}, offset {begin}",
                next_step="Give it more time: option busy_s",
            )
        if gathering.hole:
            yield self._lost(gathering.hole.end, gathering.hole.cause)
        elif lost or self._position == begin:
            yield self._lost(end, lost or f"the queue ends at {begin}")

    def _taken(self, gathering: Gathering) -> Iterator[pa.RecordBatch]:
        _, batch = gathering.take()
        self._position = batch.next_offset
        if len(batch.records):
            yield batch.records
        for reject in batch.rejects:
            damaged = ReadPiece(self._piece.queue, reject.offset, reject.offset + 1, reject.message)
            if self._options.on_data_loss == "fail":
                raise DataError(
                    f"A message cannot be decoded: {reject.message}",
                    where=f"{damaged.queue}, offset {damaged.begin}",
                    next_step='Look at it with waybill peek, or continue without it: option("on_data_loss", "skip")',
                )
            yield _told(self._rows, damaged)

    def _lost(self, end: int, cause: str) -> pa.RecordBatch:
        lost = ReadPiece(self._piece.queue, self._position, end, cause)
        if self._options.on_data_loss == "fail":
            raise _gone([lost])
        self._position = end
        return _told(self._rows, lost)


def _seen(client: Client, options: ReadOptions) -> Seen:
    """The bounds of every queue of the topics, behind everything that their brokers have acknowledged by now."""
    topics = sorted({*options.topics, *(one.queue.topic for one in options.bounds)})
    for broker in sorted({queue.broker for topic in topics for queue in client.topics.read_queues(topic)}):
        wait_until_visible(client, broker)
    return {queue: seen for topic in topics for queue, seen in client.offsets.bounds(topic).items()}


def _wanted(client: Client, options: ReadOptions, seen: Seen) -> tuple[Sequence[ReadRange], Sequence[ReadPiece]]:
    """What to read, and what may have been lost of it already, which nobody can know."""
    if options.bounds:
        _check_known([one.queue for one in options.bounds], seen)
        return options.bounds, ()
    begins = {queue: _at(client, queue, one, options.since, one.begin) for queue, one in seen.items()}
    ends = {queue: _at(client, queue, one, options.until, one.end) for queue, one in seen.items()}
    wanted = [ReadRange(queue, begins[queue], max(begins[queue], ends[queue])) for queue in seen]
    return wanted, _doubts(wanted, seen) if options.since else ()


def _at(client: Client, queue: Queue, seen: QueueBounds, moment: datetime | None, unless: int) -> int:
    if moment is None:
        return unless
    return first_stored_at(client, queue, seen.begin, seen.end, math.ceil(moment.timestamp() * 1000))


def _doubts(wanted: Sequence[ReadRange], seen: Seen) -> list[ReadPiece]:
    """Where the oldest messages left are of the time that is asked for, older ones of that time may be gone. A queue
    with nothing of that time tells nothing, unless none has anything."""
    some = {one.queue for one in wanted if one.begin != one.end}
    return [
        ReadPiece(
            one.queue, 0, seen[one.queue].begin, "deleted; messages of the time asked for may have been among them"
        )
        for one in wanted
        if 0 < seen[one.queue].begin == one.begin and (one.queue in some or not some)
    ]


def _check_known(queues: Sequence[Queue], seen: Seen) -> None:
    faults = [
        Fault("bounds", f"there is no queue {queue}; there are {', '.join(str(one) for one in seen) or 'none'}")
        for queue in queues
        if queue not in seen
    ]
    if faults:
        raise ConfigError("The bounds name queues that the topics do not have", faults=tuple(faults))


def _gone(lost: Sequence[ReadPiece]) -> OffsetGone:
    told = "; ".join(f"{piece.queue} from {piece.begin} to {piece.end} ({piece.lost})" for piece in lost)
    return OffsetGone(f"Messages cannot be read: {told}", next_step=_ACCEPT)


def _told(rows: Rows, lost: ReadPiece) -> pa.RecordBatch:
    log.warning("messages cannot be read: %s from %d to %d (%s)", lost.queue, lost.begin, lost.end, lost.lost)
    return rows.gap(lost)


def _range(piece: ReadPiece, begin: int) -> Range:
    """As the source gathers one: without a limit but its end."""
    partition = Partition(str(piece.queue))
    return Range(LIVE, partition, 0, 0, begin, piece.end, piece.end - begin, _NO_BYTE_LIMIT, {}, _NO_PINS)
