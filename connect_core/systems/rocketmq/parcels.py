"""Records -> what requests carry: batches of entries, in order, and messages that go alone. Pure.

All bodies of a request are stored alike: those of a batch are packed in one way, or not at all. A batch must not be
longer than brokers allow a body to be; a message that would be, because of what stands around its body, goes alone:
there only its body counts.

Where packed and plain bodies alternate all the time, requests would hold one or two messages, and the copy would be
several times slower: such a stretch is sent plain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.rocketmq import Batch, BatchEntry
from connect_core.rocketmq.wire.batch_entries import decode_entries
from connect_core.sdk.batches import value_lengths, without_nulls
from connect_core.systems.rocketmq.encoding import batch_of, encode_entries, encode_few
from connect_core.systems.rocketmq.marking import FEW, MARK_BYTES, USUAL_ID_BYTES, MessageMarker
from connect_core.systems.rocketmq.own_columns import FLAG, MESSAGE_ID, PACKED, PACKING, own_column

BATCH_RECORDS = 1_000
BATCH_BYTES = 768 * 1024
"""Four times as much would take 10 to 20 % less time, for the next one is read while one is stored; but a slow line has
to take each within the time that a send has."""
MAX_SHARE = 8
"""So many times the requests may be sent that it would take if all bodies were packed alike: small ones cost little."""
MAX_PLAIN_BYTES = 64 * 1024 * 1024
"""More is not unpacked at once."""

Numbers = NDArray[np.int64]


class Parcel(NamedTuple):
    """One request: a batch, or one message. `packing` are the bits that say how its bodies are compressed. `load` and
    `begin` say of what it was made."""

    rows: int
    message: Batch | BatchEntry
    packing: int
    load: Load | None = None
    begin: int = 0

    def halves(self) -> tuple[Parcel, Parcel]:
        """Of one of several rows, in order."""
        if self.load is None:
            raise ValueError("A parcel that was made of no records cannot be parted")
        half = self.rows // 2
        return self.load.parcel(self.begin, half), self.load.parcel(self.begin + half, self.rows - half)

    def record(self) -> pa.RecordBatch:
        """Its first row."""
        if self.load is None:
            raise ValueError("A parcel was made of no records")
        return self.load.record(self.begin)


class Load(NamedTuple):
    """Encoded records. `sizes` are about those of their messages; `packing` is None when no body is packed;
    `most_bytes` is what a body may have. They are the rows `places` of `records`, None: all of them."""

    entries: pa.Array
    sizes: Numbers
    packing: Numbers | None
    most_bytes: int
    records: pa.RecordBatch
    places: Numbers | None = None

    @classmethod
    def of(cls, records: pa.RecordBatch, marker: MessageMarker, most_bytes: int) -> Load:
        flags = own_column(records, FLAG)
        given = None if flags is None else without_nulls(flags, 0).to_numpy()
        bodies, packing = _stored(records)
        if packing is None and len(records) <= FEW:
            rows = encode_few(bodies, marker.by_row(records), given)
            sizes = np.fromiter(map(len, rows), np.int64)
            return cls(pa.array(rows, type=pa.binary()), sizes, None, most_bytes, records)
        sizes = message_bytes(records)
        if packing is not None and _alternates(packing, sizes):
            bodies, packing, more = _unpacked(records, bodies, packing, most_bytes)
            sizes += more
        return cls(encode_entries(bodies, marker.by_column(records), given), sizes, packing, most_bytes, records)

    def take(self, rows: Numbers) -> Load:
        packing = None if self.packing is None else self.packing[rows]
        entries, sizes = self.entries.take(pa.array(rows)), self.sizes[rows]
        return self._replace(entries=entries, sizes=sizes, packing=packing, places=rows)

    def parcels(self) -> Iterator[Parcel]:
        """All of it, in order; made when it is asked for."""
        if len(self.sizes) == 1:
            yield self.parcel(0, 1)
            return
        begin = 0
        most_bytes = min(BATCH_BYTES, self.most_bytes)
        for run in self._runs():
            for rows in batch_sizes(self.sizes[begin : begin + run], most_bytes=most_bytes):
                yield self.parcel(begin, rows)
                begin += rows

    def parcel(self, begin: int, rows: int) -> Parcel:
        """Of so many rows, all of them packed alike."""
        batch = batch_of(self.entries.slice(begin, rows))
        alone = self.sizes[begin] > self.most_bytes
        packing = 0 if self.packing is None else int(self.packing[begin])
        return Parcel(rows, decode_entries(batch.body)[0] if alone else batch, packing, self, begin)

    def record(self, row: int) -> pa.RecordBatch:
        return self.records.slice(row if self.places is None else int(self.places[row]), 1)

    def _runs(self) -> list[int]:
        """How many rows behind each other are packed alike."""
        if self.packing is None or not len(self.packing):
            return [len(self.sizes)]
        ends = np.flatnonzero(np.diff(self.packing)) + 1
        lengths: list[int] = np.diff([0, *ends, len(self.packing)]).tolist()
        return lengths


def _stored(records: pa.RecordBatch) -> tuple[pa.Array, Numbers | None]:
    """Bodies in the form in which they are stored, and how each is packed."""
    plain, packed = without_nulls(records.column("value"), b""), own_column(records, PACKED)
    if packed is None:
        return plain, None
    return pc.coalesce(packed, plain), without_nulls(records.column(PACKING), 0).to_numpy().astype(np.int64)


def _alternates(packing: Numbers, sizes: Numbers) -> bool:
    runs = 1 + int(np.count_nonzero(np.diff(packing)))
    return runs > MAX_SHARE and runs > MAX_SHARE * len(batch_sizes(sizes))


def _unpacked(
    records: pa.RecordBatch, bodies: pa.Array, packing: Numbers, most_bytes: int
) -> tuple[pa.Array, Numbers, Numbers]:
    """Bodies, packing, and by how much each body has grown: plain, but for those that would be too large."""
    plain = without_nulls(records.column("value"), b"")
    lengths = value_lengths(plain)
    kept = (packing != 0) & (lengths > most_bytes) | (lengths.sum() > MAX_PLAIN_BYTES)
    chosen = pc.if_else(pa.array(kept), bodies, plain)
    return chosen, np.where(kept, packing, 0), value_lengths(chosen) - value_lengths(bodies)


def body_bytes(records: pa.RecordBatch) -> Numbers:
    """Of each row's body, in the form in which it is stored."""
    bodies, packed = records.column("value"), own_column(records, PACKED)
    return value_lengths(bodies if packed is None else pc.coalesce(packed, bodies))


def message_bytes(records: pa.RecordBatch) -> Numbers:
    """For each row about how many bytes its message takes."""
    return body_bytes(records) + property_bytes(records)


def property_bytes(records: pa.RecordBatch) -> Numbers:
    """For each row about how many bytes its properties take, and what is added to them."""
    total = np.full(len(records), MARK_BYTES, np.int64)
    for name in ("key", "tags", "headers"):
        column = records.column(name)
        if column.null_count < len(records):
            total += value_lengths(column)
    if (ids := own_column(records, MESSAGE_ID)) is not None:
        total += np.maximum(value_lengths(ids) - USUAL_ID_BYTES, 0)
    return total


def batch_sizes(sizes: Numbers, most_records: int = BATCH_RECORDS, most_bytes: int = BATCH_BYTES) -> Sequence[int]:
    """How many rows go into each batch: in order, all rows, none empty, within both limits where one row is. `sizes`
    are those of the rows."""
    ends = np.cumsum(sizes)
    counts: list[int] = []
    row = 0
    while row < len(ends):
        before = int(ends[row - 1]) if row else 0
        fit = int(np.searchsorted(ends, before + most_bytes, side="right"))
        end = min(max(fit, row + 1), row + most_records, len(ends))
        counts.append(end - row)
        row = end
    return counts
