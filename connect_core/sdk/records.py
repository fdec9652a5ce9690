"""What moves: the Arrow form of records, partitions, and the coordinates that identify a delivered record.

Values only; nothing here reads or writes. Used by every room.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.errors import WireFormatError

OPERATION_NONE, OPERATION_CREATE, OPERATION_UPDATE, OPERATION_DELETE, OPERATION_SNAPSHOT = range(5)

RECORD_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("key", pa.string()),
        pa.field("tags", pa.string()),
        pa.field("value", pa.binary()),
        # User properties in one encoded column (`encode_headers`): a map column costs four times as much.
        pa.field("headers", pa.binary()),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC")),
        pa.field("operation", pa.int8(), nullable=False),
        # What only RocketMQ has and takes: its unique message id, the user's flag; and where the body was stored
        # compressed, that form of it with the bits that say how. `value` is always the plain body: whoever changes it
        # has to empty these two. All null unless the source is told that its sink takes them.
        pa.field("message_id", pa.binary()),
        pa.field("flag", pa.int32()),
        pa.field("packed", pa.binary()),
        pa.field("packing", pa.int32()),
        # By what a source that pushes recognises this record when it is sent again: above zero, and nobody else's to
        # read. It travels with the coordinates, so that `scan` gives it back.
        pa.field("trace", pa.int64()),
        # Of what rules made of a record: the target's topic that a rule names (null: where the sink's options say),
        # which of the record's outputs it is, from 0 (null: 0), and how many it has in all (null: 1). The outputs of
        # one record are rows behind each other with the same offset.
        pa.field("to", pa.string()),
        pa.field("ordinal", pa.int32()),
        pa.field("outputs", pa.int32()),
    ]
)

COORDINATES_PROPERTY = "WAYBILL"
"""The one property in which coordinates travel. It is ours: a copy replaces the previous hop's."""

_PAIR, _END = "\x01", "\x02"


def encode_headers(headers: Iterable[tuple[str, str]]) -> bytes:
    """`name 0x01 value 0x02` for each header: RocketMQ's own property encoding, so that copies need no re-encoding."""
    return "".join(f"{name}{_PAIR}{value}{_END}" for name, value in headers).encode()


def header_pairs(encoded: bytes | None) -> list[tuple[str, str]]:
    """The inverse of `encode_headers`: in order, and a name as often as it was given."""
    pairs = (entry.partition(_PAIR) for entry in (encoded or b"").decode().split(_END))
    return [(name, value) for name, sep, value in pairs if sep]


def decode_headers(encoded: bytes | None) -> dict[str, str]:
    """`header_pairs` by name. Of equal names the last wins, as for RocketMQ's readers."""
    return dict(header_pairs(encoded))


@dataclass(frozen=True, order=True)
class Partition:
    """One independently ordered log: a file, a queue. `key` is readable and unique within its connector."""

    key: str

    @cached_property
    def id(self) -> str:
        """16 hex digits, short enough to travel with every record."""
        return hashlib.blake2b(self.key.encode(), digest_size=8).hexdigest()


class Lineage(NamedTuple):
    """The part of the coordinates that all records of one range share. `origin` names what is read whatever number its
    incarnation has; empty where nothing does."""

    uid: str
    stream: str
    partition_id: str
    incarnation: int
    origin: str = ""

    def prefix(self) -> str:
        """What the coordinates of every record of this lineage begin with; ends with the separator."""
        number = f"{self.incarnation}.{self.origin}" if self.origin else str(self.incarnation)
        return f"{self.uid}:{self.stream}:{self.partition_id}:{number}:"


class Coordinates(NamedTuple):
    """Identity of a delivered record. Text form: `uid:stream:partition:incarnation:offset:ordinal`, where the
    incarnation is a number or, of what has a name, `number.origin`; behind it, where a record has one, `:` and the 16
    hex digits of its trace; behind that (zeros for none), where its input has several outputs, `:` and how many."""

    lineage: Lineage
    offset: int
    ordinal: int

    def text(self) -> str:
        return f"{self.lineage.prefix()}{self.offset}:{self.ordinal}"

    @classmethod
    def parse(cls, text: str) -> Coordinates:
        """Raises WireFormatError for anything but six fields (a later version may append more)."""
        try:
            uid, stream, partition, incarnation, offset, ordinal = text.split(":")[:6]
            number, _, origin = incarnation.partition(".")
            return cls(Lineage(uid, stream, partition, int(number), origin), int(offset), int(ordinal))
        except ValueError:
            raise WireFormatError(f"Not a {COORDINATES_PROPERTY} property: {text[:80]!r}") from None


def ordinals(records: pa.RecordBatch) -> NDArray[np.int64] | None:
    """Of each row; None where all are 0, as in most batches."""
    return _filled(records.column("ordinal"), 0)


def outputs(records: pa.RecordBatch) -> NDArray[np.int64] | None:
    """How many each row's input has; None where all have one."""
    return _filled(records.column("outputs"), 1)


def _filled(column: pa.Array, default: int) -> NDArray[np.int64] | None:
    if column.null_count == len(column):
        return None
    numbers: NDArray[np.int64] = without_nulls(column, default).to_numpy().astype(np.int64)
    return numbers if (numbers != default).any() else None


def without_nulls(column: pa.Array, instead: int | str | bytes) -> pa.Array:
    """The column itself where it has none: of a single record a call into Arrow takes as long as all the rest."""
    return pc.fill_null(column, instead) if column.null_count else column


def value_lengths(column: pa.Array) -> NDArray[np.int64]:
    """Bytes of each value of a binary or string column, 0 of nulls."""
    column = without_nulls(column, b"" if pa.types.is_binary(column.type) else "")
    if not len(column):  # then there need not be a buffer
        return np.zeros(0, np.int64)
    places = np.frombuffer(column.buffers()[1], dtype=np.int32)
    return np.diff(places[column.offset : column.offset + len(column) + 1]).astype(np.int64)


def whole_records(offsets: NDArray[np.int64], rows: int) -> int:
    """The first of the places at or behind `rows` at which no record is left with some of its outputs before it."""
    return int(np.searchsorted(offsets, offsets[rows - 1], side="right")) if 0 < rows < len(offsets) else rows


class Record(NamedTuple):
    """One record as a person would write it down. Without a value it says that what had its key is gone."""

    value: bytes | None
    key: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    timestamp: datetime | None = None
    topic: str | None = None


def record_batch(
    records: Sequence[Record], offsets: Sequence[int], traces: Sequence[int] | None = None
) -> pa.RecordBatch:
    """Records of RECORD_SCHEMA, with an offset each; `traces` are those of a source that pushes."""
    given: dict[str, Sequence[object]] = {
        "topic": [one.topic for one in records],
        "value": [one.value for one in records],
        "key": [one.key for one in records],
        "headers": [encode_headers(one.headers) if one.headers else None for one in records],
        "timestamp": [one.timestamp for one in records],
        "offset": offsets,
        "operation": [OPERATION_NONE] * len(records),
        **({} if traces is None else {"trace": traces}),
    }
    columns = [pa.array(given.get(field.name, [None] * len(records)), field.type) for field in RECORD_SCHEMA]
    return pa.RecordBatch.from_arrays(columns, schema=RECORD_SCHEMA)


def empty_records() -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=RECORD_SCHEMA)
