"""The coordinates that each record carries in a log: written with it, and recognised when it is read back. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from connect_core.sdk.batches import ordinals, outputs, without_nulls
from connect_core.sdk.kits.log_connection import LogEntry
from connect_core.sdk.records import Coordinates, Lineage
from connect_core.sdk.scan import Numbers


class Mark(NamedTuple):
    """A record of one of the lineages that were asked for, and its own position in the log. The last two are those of
    `sdk.scan.Hit`."""

    lineage: Lineage
    offset: int
    ordinal: int
    position: int
    trace: int = 0
    outputs: int = 1


class Marks(NamedTuple):
    """Records of one lineage, in order, others between them or not. `rows` is int64 of shape (n, 5): offset, ordinal,
    position in the log, trace, outputs."""

    lineage: Lineage
    rows: Numbers

    def last(self) -> Mark:
        offset, ordinal, position, trace, outputs = (int(one) for one in self.rows[-1])
        return Mark(self.lineage, offset, ordinal, position, trace, outputs)


class Elsewhere(NamedTuple):
    """A record of another incarnation than `lineage`, of the same partition: a later one, or the `same` by name under
    another number. Nobody can tell whether that was cut meanwhile: its records may be those of `lineage`, or not."""

    lineage: Lineage
    offset: int
    position: int
    same: bool


class Damaged(NamedTuple):
    """A record of this connector whose mark nobody can read."""

    position: int


def marks(lineage: Lineage, records: pa.RecordBatch) -> list[str]:
    """One for each row; `sdk.records.Coordinates` has the form."""
    prefix, many, numbers = lineage.prefix(), outputs(records), ordinals(records)
    traces = records.column("trace")
    offsets = records.column("offset").to_pylist()
    each = numbers.tolist() if numbers is not None else [0] * len(offsets)
    texts = [f"{prefix}{offset}:{one}" for offset, one in zip(offsets, each, strict=True)]
    if traces.null_count == len(traces) and many is None:
        return texts
    told = without_nulls(traces, 0).to_pylist()
    texts = [f"{text}:{trace:016x}" for text, trace in zip(texts, told, strict=True)]
    return texts if many is None else [f"{text}:{count}" for text, count in zip(texts, many.tolist(), strict=True)]


class MarkRecogniser:
    """Tells the records of these lineages, all of the connector `uid`, and what matters of their partitions' other
    incarnations."""

    def __init__(self, uid: str, lineages: Iterable[Lineage]) -> None:
        wanted = list(lineages)
        self._begins = f"{uid}:"
        self._known = {(one.stream, one.partition_id, name): one for one in wanted for name in _names(one)}
        self._newest = {(one.stream, one.partition_id): one for one in sorted(wanted, key=lambda one: one.incarnation)}

    def read(self, entries: Iterable[LogEntry]) -> Iterator[Mark | Elsewhere | Damaged]:
        """In order; entries of others are left out."""
        for position, mark in entries:
            if mark is None or not mark.startswith(self._begins):
                continue
            found = self._read(mark, position)
            if found is not None:
                yield found

    def _read(self, mark: str, position: int) -> Mark | Elsewhere | Damaged | None:
        try:
            return self._of_fields(mark.split(":"), position)
        except ValueError:
            return Damaged(position)

    def _of_fields(self, fields: Sequence[str], position: int) -> Mark | Elsewhere | None:
        _, stream, partition, number, offset, ordinal, *more = fields
        if lineage := self._known.get((stream, partition, number)):
            trace = int(more[0], 16) if more else 0
            return Mark(lineage, int(offset), int(ordinal), position, trace, int(more[1]) if len(more) > 1 else 1)
        newest = self._newest.get((stream, partition))
        if newest is None:
            return None
        counted, _, origin = number.partition(".")
        same = bool(newest.origin) and origin == newest.origin
        later = same or int(counted) > newest.incarnation
        return Elsewhere(newest, int(offset), position, same) if later else None


Unreadable = TypeVar("Unreadable")


def grouped(found: Iterable[Mark | Elsewhere | Unreadable]) -> Iterator[Marks | Elsewhere | Unreadable]:
    """Marks behind each other that are of one lineage become one; the others stay as they are."""
    lineage: Lineage | None = None
    rows: list[tuple[int, ...]] = []
    for one in found:
        if rows and (not isinstance(one, Mark) or one.lineage != lineage) and lineage is not None:
            yield Marks(lineage, np.array(rows, dtype=np.int64))
            rows = []
        if not isinstance(one, Mark):
            yield one
            continue
        lineage = one.lineage
        rows.append((one.offset, one.ordinal, one.position, one.trace, one.outputs))
    if rows and lineage is not None:
        yield Marks(lineage, np.array(rows, dtype=np.int64))


def _names(lineage: Lineage) -> Iterator[str]:
    """An incarnation as it stands in coordinates; those of records from before it had a name have none."""
    yield str(lineage.incarnation)
    if lineage.origin:
        yield f"{lineage.incarnation}.{lineage.origin}"


def identity(mark: str) -> tuple[str, str, str, int, int]:
    """Which record it is, however its incarnation is counted. Raises WireFormatError for what is no mark."""
    lineage, offset, ordinal = Coordinates.parse(mark)
    return lineage.uid, lineage.stream, lineage.partition_id, offset, ordinal
