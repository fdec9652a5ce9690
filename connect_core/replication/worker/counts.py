"""Counts and digests of one range while a lane works through it: batches in, a receipt out.

Pure but for the digests' state. The invariants of a receipt are kept here: a record is read, filtered, rejected or
passed; each output of a passed one is delivered now or was there already. All counts end at one place, `end`: what lies
at or behind it is not in them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from connect_core.sdk.batches import ordinals, value_lengths
from connect_core.sdk.cutting import part_before, part_behind
from connect_core.sdk.digest import RecordDigest
from connect_core.sdk.floors import next_floors
from connect_core.sdk.records import Lineage
from connect_core.sdk.values import Delivered, Gap, Json, OpenRange, Range, Reject, SourceBatch
from connect_core.work import Receipt

MAX_REJECTS_OF_A_RANGE = 1_000
MAX_REJECT_BYTES_OF_A_RANGE = 8 * 1024 * 1024
"""Dead letters travel in the receipt: reaching either bound ends the range there (delivery rule 14)."""


@dataclass(frozen=True)
class BatchCounts:
    """What became of one source batch up to `end`: `read` are its rows, `kept` the outputs the sink was given or had;
    `left_out` counts, of the `filtered`, those that its source gave no row of."""

    end: int
    read: pa.RecordBatch
    kept: pa.RecordBatch
    deduplicated: int
    absent: int
    filtered: int
    rejects: tuple[Reject, ...]
    left_out: int = 0
    possible_duplicates: int = 0
    covered: int = 0


@dataclass
class RangeCounts:
    """`end` is the place behind the last record that is accounted for; `covered` counts positions without it."""

    begin: int
    lineage: Lineage
    end: int = field(init=False)
    read: int = 0
    absent: int = 0
    filtered: int = 0
    passed: int = 0
    emitted: int = 0
    deduplicated: int = 0
    possible_duplicates: int = 0
    covered: int = 0
    bytes_read: int = 0
    rejects: list[Reject] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.end = self.begin
        self._read_digest = RecordDigest(self.lineage)
        self._sent_digest = RecordDigest(self.lineage)

    def add(self, batch: BatchCounts) -> None:
        self.end = batch.end
        unreadable = sum(1 for reject in batch.rejects if reject.stage == "read")
        self.read += len(batch.read) + batch.left_out + unreadable
        self.absent += batch.absent
        self.filtered += batch.filtered
        self.passed += _inputs(batch.kept)
        self.emitted += len(batch.kept)
        self.deduplicated += batch.deduplicated
        self.possible_duplicates += batch.possible_duplicates
        self.covered += batch.covered
        self.bytes_read += _value_bytes(batch.read)
        self.rejects.extend(batch.rejects)
        before = self._read_digest.value
        self._read_digest.add(batch.read)
        if batch.kept is batch.read:  # nothing was changed or left out: the same hashes again
            self._sent_digest.add_sum(self._read_digest.value - before)
        else:
            self._sent_digest.add(batch.kept)

    def refuse(self, reject: Reject, output: pa.RecordBatch) -> None:
        """The target has refused an output that is counted as sent, or is about to be. Its record is rejected; what the
        target took of its other outputs stays counted."""
        known = any((one.offset, one.stage) == (reject.offset, reject.stage) for one in self.rejects)
        self.emitted -= len(output)
        refused = RecordDigest(self.lineage)
        refused.add(output)
        self._sent_digest.add_sum(-refused.value)
        if not known:
            self.passed -= 1
            self.rejects.append(reject)

    def full(self) -> bool:
        held = sum(len(reject.original) for reject in self.rejects)
        return len(self.rejects) >= MAX_REJECTS_OF_A_RANGE or held >= MAX_REJECT_BYTES_OF_A_RANGE

    def fills(self, wanted: Range) -> bool:
        """Whether this is as much as the range may hold."""
        return self.read >= wanted.max_records or self.bytes_read >= wanted.max_bytes

    def receipt(
        self, item: OpenRange, delivered: Delivered, evidence: Json, gaps: tuple[Gap, ...], seconds: float
    ) -> Receipt:
        """The receipt of the range, closed at `end`. `delivered` is what the writer made durable."""
        found = item.known
        return Receipt(
            begin=self.begin,
            end=self.end,
            read=self.read,
            absent=self.absent,
            filtered=self.filtered,
            rejected=len(self.rejects),
            passed=self.passed,
            emitted=self.emitted,
            delivered=delivered.records,
            deduplicated=self.deduplicated,
            duplicates=delivered.duplicates + found.duplicates(self.end),
            possible_duplicates=self.possible_duplicates + delivered.possible_duplicates + found.possible_duplicates,
            bytes_read=self.bytes_read,
            bytes_written=delivered.bytes,
            seconds=seconds,
            digest_read=self._read_digest.text(),
            digest_sent=delivered.digest or self._sent_digest.text(),
            where=delivered.where,
            evidence=evidence,
            floors=next_floors(item, delivered, self.end, self.deduplicated, full=self.fills(item.range)),
            rejects=tuple(sorted(self.rejects, key=lambda one: (one.offset, one.ordinal))),
            gaps=gaps,
            covered=self.covered,
        )


def covered(batch: SourceBatch, end: int, rows: pa.RecordBatch, absent: int) -> int:
    """How many positions before `end` are accounted for: `rows`, what could not be read or was left out, and `absent`.
    Each with the positions that it takes by the batch's word, not by the place of the next one."""
    odd = [one.offset for one in batch.rejects if one.stage == "read" and one.offset < end]
    odd += [offset for offset in batch.filtered if offset < end]
    if batch.places is None:
        return len(rows) + len(odd) + absent
    met = np.concatenate([rows.column("offset").to_numpy(), np.array(odd, dtype=np.int64)])
    return int(batch.places[np.isin(batch.places[:, 0], met), 1].sum()) + absent


def cut(batch: SourceBatch, rows: int) -> tuple[SourceBatch, SourceBatch | None]:
    """The first `rows` rows, with what stands before the next one, and the rest; None when that is nothing."""
    if len(batch.records) <= rows:
        return batch, None
    place = int(batch.records.column("offset")[rows].as_py())
    return part_before(batch, place), part_behind(batch, place)


def boundary(records: pa.RecordBatch, taken: int) -> int:
    """The offset of the first record that was not taken."""
    offsets = records.column("offset").to_numpy()
    if taken and offsets[taken - 1] == offsets[taken]:
        raise RuntimeError(f"a writer stopped between the outputs of one record, at offset {offsets[taken]}")
    return int(offsets[taken])


def outputs_before(records: pa.RecordBatch, end: int) -> pa.RecordBatch:
    """The leading rows with an offset below `end`; the same object when these are all."""
    rows = int(np.searchsorted(records.column("offset").to_numpy(), end))
    return records if rows == len(records) else records.slice(0, rows)


def without(records: pa.RecordBatch, rejects: tuple[Reject, ...]) -> pa.RecordBatch:
    if not rejects:
        return records
    gone = np.array([reject.offset for reject in rejects])
    return records.filter(pa.array(~np.isin(records.column("offset").to_numpy(), gone)))


def _inputs(outputs: pa.RecordBatch) -> int:
    """Of how many records these are all the outputs."""
    numbers = ordinals(outputs)
    return len(outputs) if numbers is None else int(np.count_nonzero(numbers == 0))


def _value_bytes(records: pa.RecordBatch) -> int:
    """Of a batch."""
    return int(value_lengths(records.column("value")).sum())
