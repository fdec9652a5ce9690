"""The live ranges of a lane: what comes into any of them is written at once, until the quantum ends or nothing comes.

They share the target, so when that fails they fall together: either every range that something was written of has a
receipt, or none has one. What is in the target is found by the next attempt. A range that only its own partition stops
takes no more; the others are followed on, and all of them have receipts (delivery rule 26).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing

import pyarrow as pa

from connect_core.contracts import Lane, Limit, OpenRange, Outcome, Range, Sink, Source, SourceBatch, Writer
from connect_core.errors import Failure, WaybillError
from connect_core.observe import Step
from connect_core.records import Partition
from connect_core.replication.worker.acks import Acknowledging
from connect_core.replication.worker.counts import cut
from connect_core.replication.worker.pacer import Pacer
from connect_core.replication.worker.range import Passage, source_failure


class Following:
    """Used once."""

    def __init__(
        self, lane: Lane, items: Sequence[OpenRange], source: Source, sink: Sink, limit: Limit, pacer: Pacer
    ) -> None:
        self._lane, self._items, self._source, self._sink = lane, items, source, sink
        self._limit, self._pacer = limit, pacer
        self._acknowledging = Acknowledging(source, sink)
        self._passages = {item.range.partition: Passage(lane, item, source, sink, limit, pacer) for item in items}
        self._writers: dict[Partition, Writer] = {}
        self._failure: Failure | None = None

    def run(self) -> list[Outcome]:
        """One outcome for each range; those into which nothing came have neither receipt nor failure."""
        try:
            with ExitStack() as opened:
                self._follow(opened)
                return [self._closed(passage) for passage in self._passages.values()]
        except (WaybillError, OSError, pa.ArrowException) as error:
            failure = self._failure or Failure.of(error)
            return [self._lost(passage, failure) for passage in self._passages.values()]

    def _follow(self, opened: ExitStack) -> None:
        """Until one of the ranges is over, or all have failed: then all are settled, and planned anew."""
        with closing(self._batches()) as batches:
            for wanted, batch in batches:
                passage = self._passages[wanted.partition]
                if not passage.failure and self._is_over(passage, batch, self._writer(wanted, opened)):
                    return
                if all(one.failure for one in self._passages.values()):
                    return

    def _is_over(self, passage: Passage, batch: SourceBatch, writer: Writer) -> bool:
        """Hands over a batch; True when the range ends with it, unless it is because of its own partition."""
        piece, rest = cut(batch, max(passage.records_left(), 1))
        passage.told(Step.RECEIVED)
        ended = passage.take(piece, writer)
        self._acknowledging.taken(passage, writer)
        if passage.failure:
            return False
        if ended or rest is not None or passage.full():
            return True
        passage.told(Step.BATCH_WRITTEN)
        return False

    def _batches(self) -> Generator[tuple[Range, SourceBatch], None, None]:
        """What comes, at its pace. When the source fails, what was read before is still worth its receipts."""
        try:
            wanted = [item.range for item in self._items]
            for one, came in self._source.follow(wanted, self._limit, self._lane.linger_s):
                if isinstance(came, Failure):
                    self._passages[one.partition].fail(came, apart=True)
                    continue
                for piece in self._pacer.pieces(came):
                    yield one, piece
                if self._pacer.over:
                    return
        except MemoryError:
            raise
        except Exception as error:
            self._failure = source_failure(error, f"connector {self._lane.connector}")

    def _writer(self, wanted: Range, opened: ExitStack) -> Writer:
        """Opened when something comes: most live ranges are idle."""
        if wanted.partition not in self._writers:
            self._writers[wanted.partition] = opened.enter_context(self._passages[wanted.partition].writer())
        return self._writers[wanted.partition]

    def _closed(self, passage: Passage) -> Outcome:
        if self._failure:
            passage.fail(self._failure, apart=False)
        writer = self._writers.get(passage.item.range.partition)
        if writer is None:
            return Outcome(passage.item.id, None, passage.failure, apart=passage.apart)
        return passage.close(writer)

    def _lost(self, passage: Passage, failure: Failure) -> Outcome:
        touched = passage.item.range.partition in self._writers
        return Outcome(passage.item.id, None, failure, clean=not touched)
