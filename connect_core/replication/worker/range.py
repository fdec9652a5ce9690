"""One range on its way from source to sink: batches are shaped, written and counted, and become one receipt.

Used by a lane, in its worker. Nothing is written that a receipt does not tell of, unless the outcome says so (`clean`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from connect_core import clock
from connect_core.config import sealing_cipher, with_keys
from connect_core.errors import Failure, LeaseHeld, PartitionUnreachable, TooManyRejects, Unreachable, WaybillError
from connect_core.observe import Step, reached
from connect_core.pipeline.rejecting import as_read, reject_row
from connect_core.pipeline.shaping import Pipeline, Shaped
from connect_core.pipeline.transforms.too_slow import StatementTooSlow
from connect_core.replication.worker.counts import (
    BatchCounts,
    RangeCounts,
    boundary,
    covered,
    cut,
    outputs_before,
    without,
)
from connect_core.replication.worker.outside import unpinned
from connect_core.replication.worker.pacer import Pacer
from connect_core.replication.worker.reject_budget import first_over, is_spent, words
from connect_core.replication.worker.rejects import invalid_rows_of, shape
from connect_core.replication.worker.schemas import lookup_of
from connect_core.replication.worker.slow_statements import AtOnce, stopped_at
from connect_core.rows.types import as_written
from connect_core.sdk.batches import ordinals, outputs
from connect_core.sdk.cutting import rows_before
from connect_core.sdk.sink import Outdating, Refusable, Sink, Storing, TakesRows, Writer
from connect_core.sdk.source import OfFiles, Seeking, Source
from connect_core.sdk.values import Delivered, Json, Limit, OpenRange, Reject, SourceBatch
from connect_core.work import Lane, LetterPlace, Outcome, ReadLately, Receipt

_MOMENT_NS = 1_000_000_000


def home_of(lane: Lane) -> Path:
    return Path(lane.lock_paths[0]).parent.parent


class _Due(NamedTuple):
    """Outputs of one batch: of the `kept` ones whether they are in the target `already`, and those that are not
    (`fresh`). `outdated` are the offsets of records that the writer leaves out."""

    kept: pa.RecordBatch
    already: NDArray[np.bool_]
    fresh: pa.RecordBatch
    outdated: tuple[int, ...] = ()


class WorkerRange:
    """One range on its way from source to sink. `run` works through a range that ends; of a live one the batches are
    brought by whoever follows the source: `take` them, then `close` it."""

    def __init__(self, lane: Lane, item: OpenRange, source: Source, sink: Sink, limit: Limit, pacer: Pacer) -> None:
        self.lane, self.item, self.source, self.sink, self.limit = lane, item, source, sink, limit
        self.pacer = pacer
        path = source.path_of(item.range.partition) if isinstance(source, OfFiles) else None
        self.pipeline = Pipeline(
            with_keys(lane.pipeline), path, lookup_of(lane.pipeline), isinstance(sink, TakesRows), lane.evolving
        )
        self._cipher = sealing_cipher(lane.encrypt) if lane.encrypt else None
        self.counts = RangeCounts(item.range.begin, item.range.lineage(lane.uid))
        self.failure: Failure | None = None
        self.apart = False
        """Whether the failure concerns this partition alone (`Outcome`)."""
        self.clean = True
        self._wanted: tuple[str, ...] = ()
        """The targets for which the range ends (`Outcome`)."""
        self._needs: Json | None = None
        """The fields for which it ends."""
        self._stopped = False
        """Whether the target has refused a record that is not tolerated: nothing more is written."""
        self._rejecting = 0
        """So many rejects of the batch that is being written are not counted yet."""
        self._writing: pa.RecordBatch | None = None
        """The records of that batch, as they were read."""
        lately = lane.lately.get(item.range.partition.id, ReadLately())
        self._budget = (lane.reject_limit, lately) if lane.reject_limit else None
        self._at_once = AtOnce()
        self.started = clock.monotonic()

    def run(self) -> Outcome:
        try:
            with self.writer() as writer:
                for batch in self._batches():
                    if self.take(batch, writer):
                        break
                    self.reached(Step.BATCH_WRITTEN)
                return self.close(writer)
        except (WaybillError, OSError, pa.ArrowException) as error:
            return Outcome(self.item.id, None, Failure.of(error), self.clean, isinstance(error, PartitionUnreachable))

    @contextmanager
    def writer(self) -> Iterator[Writer]:
        """The way into the target; what that refuses is reported to this object. An error of the work ends it, also
        when the sink's own context swallows it."""
        failed: BaseException | None = None
        with self.sink.writer(self.lane.attempt, self.item) as writer:
            if isinstance(writer, Refusable):
                writer.on_refused = self._refused
            try:
                yield writer
            except BaseException as error:
                failed = error
                raise
        if failed is not None:
            raise failed

    def flush(self, writer: Writer) -> Delivered | None:
        """None when the target has refused a record that is not tolerated: then no receipt tells of what was written,
        and the next attempt finds it."""
        try:
            return None if self._stopped else writer.flush(self.limit)
        except TooManyRejects as error:
            self._stop(error)
            return None

    def store(self, writer: Writer) -> bool:
        """Makes durable what was taken; False when the target has refused a record that is not tolerated."""
        if not isinstance(writer, Storing):
            return self.flush(writer) is not None
        try:
            if not self._stopped:
                writer.store(self.limit)
        except TooManyRejects as error:
            self._stop(error)
        return not self._stopped

    def close(self, writer: Writer) -> Outcome:
        """Makes what was taken durable, and says so."""
        delivered = self.flush(writer)
        if delivered is None:
            return Outcome(self.item.id, None, self.failure, clean=False, apart=self.apart)
        self.clean = True
        if self.counts.end == self.counts.begin:
            came = self.source.reached(self.item.range) if isinstance(self.source, Seeking) else 0
            return self._outcome(None, came)
        self.clean = False  # without its evidence there is no receipt that tells of what was written
        evidence = self.source.evidence(self.item.range, self.counts.end)
        self.reached(Step.BEFORE_RECEIPT)
        seconds = clock.monotonic() - self.started
        receipt = self.counts.receipt(self.item, delivered, evidence, self.item.range.gaps, seconds)
        return self._outcome(self._sealed(receipt))

    def _outcome(self, receipt: Receipt | None, reached: int = 0) -> Outcome:
        wanted, needs = self._wanted, self._needs
        return Outcome(
            self.item.id, receipt, self.failure, apart=self.apart, wanted=wanted, needs=needs, reached=reached
        )

    def _sealed(self, receipt: Receipt) -> Receipt:
        """Where the document has a key for it, what is rejected leaves the worker encrypted alone."""
        if self._cipher is None:
            return receipt
        lineage, cipher = self.item.range.lineage(self.lane.uid), self._cipher
        here = (lineage.uid, lineage.stream, lineage.partition_id, lineage.incarnation)
        places = ((one, LetterPlace(*here, one.offset, one.ordinal, one.stage)) for one in receipt.rejects)
        return replace(receipt, rejects=tuple(cipher.sealed(one, place) for one, place in places))

    def fail(self, failure: Failure, *, apart: bool) -> None:
        """What was taken of the range is still worth its receipt; nothing more is taken. The first failure counts."""
        if self.failure is None:
            self.failure, self.apart = failure, apart

    def reached(self, step: Step) -> None:
        reached(step, home=home_of(self.lane), where=self.lane.connector)

    def _batches(self) -> Iterator[SourceBatch]:
        """The batches of the source. When it fails, what was read before is still worth a receipt."""
        try:
            for batch in self.source.read(self.item.range, self.limit):
                yield from self.pacer.pieces(batch)
                if self.pacer.over:
                    return
        except MemoryError:
            raise
        except Exception as error:
            self.fail(source_failure(error, self.where()), apart=concerns_one(error))

    def where(self) -> str:
        """For errors."""
        return f"connector {self.lane.connector}, partition {self.item.range.partition.key}"

    def records_left(self) -> int:
        """How many more records the range may hold."""
        return self.item.range.max_records - self.counts.read

    def full(self) -> bool:
        """Whether the range holds as much as it may; asked of live ones, which their source does not end."""
        return self.counts.fills(self.item.range)

    def take(self, batch: SourceBatch, writer: Writer) -> bool:
        """Hands one batch to the writer and counts it. True when the range ends here."""
        try:
            return self._take_all(batch, writer)
        except TooManyRejects as error:
            self._stop(error)
            return True

    def _take_all(self, batch: SourceBatch, writer: Writer) -> bool:
        rest: SourceBatch | None = batch
        while rest is not None:
            some, began = self._at_once.of(rest.records), clock.monotonic()
            try:
                shaped = shape(self.pipeline, some)
            except StatementTooSlow as slow:
                if not self._at_once.reduce(some, slow):
                    self.fail(Failure.of(stopped_at(slow, rest, self.item, self.lane.connector)), apart=True)
                    return True
            else:
                self._at_once.took(clock.monotonic() - began)
                piece, rest = cut(rest, shaped.rows)
                if self._take(piece, shaped, writer):
                    return True
                if shaped.needs is not None:
                    self._needs = as_written(shaped.needs)
                    return True
            if self._at_once.reduced and self._is_over():
                return True
        return False

    def _is_over(self) -> bool:
        """Whether the quantum is, and the range has moved on: what is left of a batch is read again."""
        return self.counts.end > self.counts.begin and self.limit.quantum_left_s() <= 0

    def _take(self, batch: SourceBatch, shaped: Shaped, writer: Writer) -> bool:
        self.clean = False  # from here on only a flush that returns says what is in the target
        invalid = self._invalid_rows(shaped.kept)
        kept = without(shaped.kept, invalid)
        outside = unpinned(self.sink, kept, self.item.range.pins.target)
        unfit = as_read((*invalid, *outside.rejected), batch.records)
        rejects = sorted((*batch.rejects, *shaped.rejected, *unfit), key=lambda r: (r.offset, r.ordinal))
        end, failure = self._tolerated(rejects, batch.next_offset)
        end, failure = self._within_budget(rejects, batch.records, end, failure)
        wanted: tuple[str, ...] = ()
        if outside.end is not None and outside.end < end:
            end, failure, wanted = outside.end, None, outside.wanted
        kept = without(kept, outside.rejected)
        if end < batch.next_offset:
            kept = outputs_before(kept, end)
        kept, already, fresh, outdated = self._due(kept, writer)
        self._rejecting = sum(1 for reject in rejects if reject.offset < end)
        self._writing = batch.records
        taken = writer.write(fresh, self._time_to_write()) if len(fresh) else 0
        if taken < len(fresh):  # the time is over: what was not taken is not part of this receipt
            end, failure, wanted = boundary(fresh, taken), None, ()
            kept = outputs_before(kept, end)
            already = already[: len(kept)]
        rows, absent = rows_before(batch, end), batch.absent_before(end)
        left_out = sum(1 for offset in batch.filtered if offset < end)
        self.counts.add(
            BatchCounts(
                end=end,
                read=rows,
                kept=kept,
                deduplicated=int(already.sum()),
                absent=absent,
                left_out=left_out,
                filtered=left_out + sum(1 for offset in (*shaped.filtered, *outdated) if offset < end),
                rejects=tuple(reject for reject in rejects if reject.offset < end),
                possible_duplicates=sum(1 for offset in batch.doubtful if offset < end),
                covered=covered(batch, end, rows, absent),
            )
        )
        self._rejecting = 0
        self._wanted = wanted
        if failure:
            self.fail(failure, apart=True)
        return end < batch.next_offset or self.counts.full()

    def _time_to_write(self) -> Limit:
        """A first batch that comes when the quantum is over gets a moment all the same: else nothing would ever move
        where a quantum is too short for it. So does what comes into a live range: a source that pushes cannot give it
        once more."""
        if self.counts.end > self.counts.begin and not self.item.range.live:
            return self.limit
        moment = min(clock.now_ns() + _MOMENT_NS, self.limit.deadline_ns)
        return self.limit._replace(quantum_end_ns=max(self.limit.quantum_end_ns, moment))

    def _invalid_rows(self, records: pa.RecordBatch) -> tuple[Reject, ...]:
        """The records of which the target can never take an output, each once, with the bytes they had."""
        rejects: dict[int, Reject] = {}
        for row, kind, message in invalid_rows_of(self.sink, records):
            rejected = reject_row(records, row, "encode", kind, message)
            rejects.setdefault(rejected.offset, rejected)
        return tuple(rejects.values())

    def _refused(self, record: pa.RecordBatch, kind: str, message: str) -> None:
        """The target has refused one of the rows that the writer has taken: see `sdk.sink.OnRefused`."""
        reject = reject_row(record, 0, "write", kind, message)
        if self.lane.tolerance >= 0 and self._rejects_left() <= self._rejecting:
            raise self._not_tolerated(reject)
        if self._budget and is_spent(*self._budget, self.counts.read, len(self.counts.rejects) + self._rejecting):
            raise self._over_budget(reject)
        self.counts.refuse(self._as_read(reject, record) if self.pipeline.changes else reject, record)

    def _as_read(self, reject: Reject, output: pa.RecordBatch) -> Reject:
        """With all that its record came with, so that it can be replayed: not where the record has other outputs, which
        the target may have taken, nor where the writer has refused it in a later batch."""
        came = self._writing
        was_now = came is not None and len(came) > 0 and came.column("offset")[0].as_py() <= reject.offset
        if came is None or not was_now or outputs(output) is not None:
            return replace(reject, attributes=None)
        return next(as_read((reject,), came))

    def _stop(self, error: TooManyRejects) -> None:
        self._stopped = True
        self.fail(Failure.of(error), apart=True)

    def _tolerated(self, rejects: list[Reject], end: int) -> tuple[int, Failure | None]:
        """Where this batch ends: at `end`, or at the first record rejected that the document does not tolerate."""
        left = self._rejects_left()
        if self.lane.tolerance < 0 or len(rejects) <= left:
            return end, None
        first = rejects[max(left, 0)]
        return first.offset, Failure.of(self._not_tolerated(first))

    def _within_budget(
        self, rejects: list[Reject], records: pa.RecordBatch, end: int, failure: Failure | None
    ) -> tuple[int, Failure | None]:
        """The same where the document says how many may be rejected within a time."""
        if not (self._budget and rejects):
            return end, failure
        offsets = records.column("offset").to_numpy()
        first = first_over(*self._budget, self.counts.read, len(self.counts.rejects), rejects, offsets)
        if first is None or first.offset >= end:
            return end, failure
        return first.offset, Failure.of(self._over_budget(first))

    def _over_budget(self, first: Reject) -> TooManyRejects:
        limit = words(self.lane.reject_limit) if self.lane.reject_limit else ""
        return TooManyRejects(
            f"A record was rejected at stage {first.stage} ({first.kind}: {first.message}), and errors.budget allows"
            f" {limit} of each partition",
            where=f"{self.where()}, offset {first.offset}",
            next_step="Correct the source or the document; a run continues here when the window has moved on, or with a"
            " larger errors.budget",
        )

    def _rejects_left(self) -> int:
        """How many more the document tolerates, where it does not tolerate any number."""
        before = self.lane.rejected.get(self.item.range.partition.id, 0) + len(self.counts.rejects)
        return self.lane.tolerance - before

    def _not_tolerated(self, first: Reject) -> TooManyRejects:
        return TooManyRejects(
            f"A record was rejected at stage {first.stage} ({first.kind}: {first.message}) and"
            f" a run tolerates {self.lane.tolerance} of each partition",
            where=f"{self.where()}, offset {first.offset}",
            next_step="Correct the source, or allow it in the document (errors.tolerance): it becomes a dead letter",
        )

    def _due(self, kept: pa.RecordBatch, writer: Writer) -> _Due:
        """Of the outputs that the target is to have. What is there already is not outdated (delivery rule 8)."""
        fresh, already = self._fresh(kept)
        if not isinstance(writer, Outdating) or not len(fresh):
            return _Due(kept, already, fresh)
        late = writer.outdated(fresh)
        if not late.any():
            return _Due(kept, already, fresh)
        stays = np.ones(len(kept), dtype=np.bool_)
        stays[~already] = ~late
        outdated = np.unique(fresh.column("offset").to_numpy()[late])
        return _Due(kept.filter(pa.array(stays)), already[stays], fresh.filter(pa.array(~late)), tuple(outdated))

    def _fresh(self, kept: pa.RecordBatch) -> tuple[pa.RecordBatch, NDArray[np.bool_]]:
        """The outputs that are not in the target, and for each of `kept` whether it is there already."""
        if self.item.found is None or not self.item.found.there():
            return kept, np.zeros(len(kept), dtype=np.bool_)
        already = self.item.found.present(kept.column("offset").to_numpy(), ordinals(kept))
        return (kept.filter(pa.array(~already)) if already.any() else kept), already


def concerns_one(error: Exception) -> bool:
    """Whether what a source raises for one partition says nothing of the others. Where it does not answer at all, or
    somebody else has taken over, nothing else can be read either."""
    return isinstance(error, PartitionUnreachable) or not isinstance(error, (Unreachable, LeaseHeld))


def source_failure(error: Exception, where: str) -> Failure:
    """What a source raised while it read."""
    return Failure.unexpected(error, "reading", where)
