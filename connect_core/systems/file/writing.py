"""Records -> lines at the end of a target: the file sink's hot path. No Python code runs per record."""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pyarrow.compute as pc

from connect_core.sdk.digest import LinesDigest
from connect_core.sdk.values import Delivered, Limit
from connect_core.systems.file.target import Beside, Target, TargetPlace


def lines(values: pa.Array) -> memoryview:
    """Each value and a line feed, back to back; a null is an empty line."""
    joined = pc.binary_join_element_wise(pc.fill_null(values, b""), b"", b"\n")
    return _bytes_of(joined)


def holds_line_feed(values: pa.Array) -> bool:
    return len(values) > 0 and b"\n" in bytes(_bytes_of(values))


def _bytes_of(values: pa.Array) -> memoryview:
    """The bytes of all values of a binary column, back to back as Arrow keeps them."""
    _, ends, data = values.buffers()
    if not len(values) or data is None:
        return memoryview(b"")
    offsets = memoryview(ends).cast("i")
    return memoryview(data)[offsets[values.offset] : offsets[values.offset + len(values)]]


class LineWriter:
    """A `sdk.sink.Writer` for one range. `name` is what floors call the target."""

    def __init__(self, name: str, target: Target) -> None:
        self._name = name
        self._target = target
        self._begin = target.reached
        self._records = 0
        self._digest = hashlib.sha256()
        self._beside = Beside()

    def write(self, records: pa.RecordBatch, limit: Limit) -> int:
        if limit.quantum_left_s() <= 0 or not len(records):
            return 0
        data = lines(records.column("value"))
        self._target.append(data, limit)
        self._beside += self._target.claim()
        self._digest.update(data)
        self._records += len(records)
        return len(records)

    def flush(self, limit: Limit) -> Delivered:
        self._target.sync()
        begin, end = self._begin, self._target.flushed
        return Delivered(
            records=self._records,
            bytes=end.position - begin.position,
            behind={self._name: end.position},
            where={"path": self._target.path, "begin": begin.offset, "end": end.offset, **self._beside.told()},
            possible_duplicates=self._beside.repeats,
            digest=f"sha256:{self._digest.hexdigest()}",
            evidence=end.evidence(),
            began={self._name: begin.position},
        )


class MingledWriter:
    """A `sdk.sink.Writer` for one live range. Lines of other ranges may stand between its own, so its digest is a sum
    over lines: those of all receipts of a stretch of the file add up to the stretch. What they flush is one stretch for
    all of them, from where the first of them began."""

    def __init__(self, name: str, target: Target) -> None:
        self._name = name
        self._target = target
        self._begin: TargetPlace | None = None
        self._end = target.reached
        self._records = self._bytes = 0
        self._digest = LinesDigest()
        self._beside = Beside()

    def write(self, records: pa.RecordBatch, limit: Limit) -> int:
        if limit.quantum_left_s() <= 0 or not len(records):
            return 0
        self._begin = self._begin or self._target.reached
        data = lines(records.column("value"))
        self._target.append(data, limit)
        self._beside += self._target.claim()
        self._end = self._target.reached
        self._digest.add(records.column("value"))
        self._records += len(records)
        self._bytes += len(data)
        return len(records)

    def flush(self, limit: Limit) -> Delivered:
        """All of the file at once: what the others have written by now is durable as well."""
        if self._target.flushed != self._target.reached:
            self._target.sync()
        begin, flushed = self._begin or self._end, self._target.flushed
        return Delivered(
            records=self._records,
            bytes=self._bytes,
            behind={self._name: flushed.position},
            where={self._target.path: [[begin.offset, self._end.offset]], **self._beside.told()},
            possible_duplicates=self._beside.repeats,
            digest=self._digest.text(),
            evidence=flushed.evidence(),
            began={self._name: self._target.begun.position},
        )
