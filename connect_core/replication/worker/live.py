"""The live ranges of a lane: what comes into any of them is written at once, until the quantum ends or nothing comes.

They share the target, so when that fails they fall together: either every range that something was written of has a
receipt, or none has one. What is in the target is found by the next attempt. A range that only its own partition stops
takes no more; the others are followed on, and all of them have receipts (delivery rule 26).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing

import pyarrow as pa

from connect_core import clock
from connect_core.errors import Failure, WaybillError
from connect_core.observe import Step
from connect_core.replication.worker.acks import Acknowledger
from connect_core.replication.worker.counts import cut
from connect_core.replication.worker.end_times import EndTimes
from connect_core.replication.worker.pacer import Pacer
from connect_core.replication.worker.range import WorkerRange, source_failure
from connect_core.sdk.records import Partition
from connect_core.sdk.sink import Sink, Writer
from connect_core.sdk.source import PushSource, Source
from connect_core.sdk.values import Limit, OpenRange, Range, SourceBatch
from connect_core.work import Lane, Outcome

_LOOK_NS = 250_000_000
"""However long the end takes, a quantum looks at its source for so long."""


class LiveLane:
    """Used once. Ends early enough for its end, and takes no more partitions than it can end: those that it leaves out
    come first in the next quantum. A source that pushes could not give again what it leaves out, so all are taken."""

    def __init__(
        self,
        lane: Lane,
        items: Sequence[OpenRange],
        source: Source,
        sink: Sink,
        limit: Limit,
        pacer: Pacer,
        end_times: EndTimes,
    ) -> None:
        self._lane, self._items, self._source, self._sink = lane, items, source, sink
        at_least = clock.now_ns() + _LOOK_NS
        latest = max(limit.deadline_ns - int(end_times.to_leave_s() * 1e9), at_least)
        self._limit = limit = limit._replace(quantum_end_ns=min(limit.quantum_end_ns, latest))
        self._pacer, self._end_times = pacer, end_times
        self._takes_all = isinstance(source, PushSource)
        self._acknowledger = Acknowledger(source, sink)
        self._ranges = {item.range.partition: WorkerRange(lane, item, source, sink, limit, pacer) for item in items}
        self._writers: dict[Partition, Writer] = {}
        self._failure: Failure | None = None

    def run(self) -> list[Outcome]:
        """One outcome for each range; those into which nothing came have neither receipt nor failure."""
        try:
            with ExitStack() as opened:
                self._follow(opened)
                began = clock.monotonic()
                outcomes = [self._closed(worker_range) for worker_range in self._ranges.values()]
                self._end_times.took(len(self._writers), clock.monotonic() - began)
                return outcomes
        except (WaybillError, OSError, pa.ArrowException) as error:
            failure = self._failure or Failure.of(error)
            return [self._lost(worker_range, failure) for worker_range in self._ranges.values()]

    def _follow(self, opened: ExitStack) -> None:
        """Until one of the ranges is over, or all have failed: then all are settled, and planned anew."""
        with closing(self._batches()) as batches:
            for wanted, batch in batches:
                worker_range = self._ranges[wanted.partition]
                if self._is_one_too_many(wanted):
                    self._end_times.left_out = wanted.partition
                    return
                if not worker_range.failure and self._is_over(worker_range, batch, self._writer(wanted, opened)):
                    self._ended_with(wanted)
                    return
                if all(one.failure for one in self._ranges.values()):
                    return

    def _is_one_too_many(self, wanted: Range) -> bool:
        opened = len(self._writers)
        if self._takes_all or not opened or wanted.partition in self._writers:
            return False
        return not self._end_times.allow(opened + 1, self._limit.left_s())

    def _is_over(self, worker_range: WorkerRange, batch: SourceBatch, writer: Writer) -> bool:
        """Hands over a batch; True when the range ends with it, unless it is because of its own partition."""
        piece, rest = cut(batch, max(worker_range.records_left(), 1))
        worker_range.reached(Step.RECEIVED)
        ended = worker_range.take(piece, writer)
        self._acknowledger.taken(worker_range, writer)
        if worker_range.failure:
            return False
        if ended or rest is not None or worker_range.full():
            return True
        worker_range.reached(Step.BATCH_WRITTEN)
        return False

    def _batches(self) -> Generator[tuple[Range, SourceBatch], None, None]:
        """What comes, at its pace. When the source fails, what was read before is still worth its receipts."""
        try:
            for one, came in self._source.follow(self._in_turn(), self._limit, self._lane.idle_timeout_s):
                if isinstance(came, Failure):
                    self._ranges[one.partition].fail(came, apart=True)
                    continue
                for piece in self._pacer.pieces(came):
                    yield one, piece
                if self._pacer.over:
                    self._ended_with(one)
                    return
        except MemoryError:
            raise
        except Exception as error:
            self._failure = source_failure(error, f"connector {self._lane.connector}")

    def _ended_with(self, wanted: Range) -> None:
        """One that always has more than a quantum takes keeps the others waiting for no more than one."""
        partitions = [item.range.partition for item in self._items]
        self._end_times.left_out = partitions[(partitions.index(wanted.partition) + 1) % len(partitions)]

    def _in_turn(self) -> list[Range]:
        """Whoever was left out is looked at first, and those behind it: else the first ones would always be."""
        wanted = [item.range for item in self._items]
        first = next((at for at, one in enumerate(wanted) if one.partition == self._end_times.left_out), 0)
        return wanted[first:] + wanted[:first]

    def _writer(self, wanted: Range, opened: ExitStack) -> Writer:
        """Opened when something comes: most live ranges are idle."""
        if wanted.partition not in self._writers:
            self._writers[wanted.partition] = opened.enter_context(self._ranges[wanted.partition].writer())
        return self._writers[wanted.partition]

    def _closed(self, worker_range: WorkerRange) -> Outcome:
        if self._failure:
            worker_range.fail(self._failure, apart=False)
        writer = self._writers.get(worker_range.item.range.partition)
        if writer is None:
            return Outcome(worker_range.item.id, None, worker_range.failure, apart=worker_range.apart)
        return worker_range.close(writer)

    def _lost(self, worker_range: WorkerRange, failure: Failure) -> Outcome:
        touched = worker_range.item.range.partition in self._writers
        return Outcome(worker_range.item.id, None, failure, clean=not touched)
