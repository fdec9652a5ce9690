"""The properties that make a message of ours recognisable: coordinates and a message id made from them.

`MessageMarker` writes them, column by column, in the sink's hot path; `ours` finds them in messages read back, by the
coordinates alone. The user's own properties come first in the string: of equal names readers take the last, so that
nobody can replace ours. A record that brings a message id keeps it, and the time at which it was born stands in the
property that RocketMQ has for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.rocketmq import StoredMessage
from connect_core.rocketmq.wire.properties import BORN_TIMESTAMP, KEYS, TAGS, UNIQUE_KEY
from connect_core.sdk.batches import ordinals, outputs, without_nulls
from connect_core.sdk.kits.log_marks import Elsewhere, Mark
from connect_core.sdk.records import COORDINATES_PROPERTY, Lineage
from connect_core.systems.rocketmq.own_columns import MESSAGE_ID, own_column

Cells = NDArray[np.uint8]
"""Equally long values, a row each."""
Piece: TypeAlias = bytes | Cells | pa.Array
"""What stands in each row: the same, or cells, or values of any length."""
Numbers = NDArray[np.int64]

_NAME_END, PAIR_END = b"\x01", b"\x02"
_HEX_OF_BYTE = np.frombuffer(b"".join(b"%02X" % byte for byte in range(256)), dtype=np.uint16)
"""Two digits, as they stand in memory."""
_FOUR_DIGITS = np.frombuffer(b"".join(b"%04d" % number for number in range(10_000)), dtype=np.uint32)
"""The same in decimal."""
COORDINATES = COORDINATES_PROPERTY.encode() + _NAME_END
_ID = UNIQUE_KEY.encode() + _NAME_END
_BORN = BORN_TIMESTAMP.encode() + _NAME_END
_KEYS, _TAGS = KEYS.encode() + _NAME_END, TAGS.encode() + _NAME_END

_LINEAGE_DIGITS, _ID_DIGITS = 16, 32
_TWELVE_DIGITS, _FOUR_DIGITS_OF_HEX = 0xFFFF_FFFF_FFFF, 0xFFFF
FEW = 16
"""So many rows are sooner checked, marked and encoded one by one than by column."""
USUAL_ID_BYTES = 56
"""Clients of RocketMQ make ids of 32 characters, and of 56 on hosts with IPv6."""
MARK_BYTES = 512
"""More than the properties added here, and those that brokers add, can need."""


class MessageMarker:
    """Property strings for the records of one lineage.

    A message id made here is 32 hex digits: 16 of the lineage, 12 of the offset, 4 of the ordinal (both cut to what
    fits). The id that a record brings is that of its first output.
    """

    def __init__(self, lineage: Lineage) -> None:
        prefix = lineage.prefix()
        self._id = _id_prefix(prefix)
        self._coordinates = f"\x02{COORDINATES_PROPERTY}\x01{prefix}".encode()

    def by_row(self, records: pa.RecordBatch) -> Iterator[bytes]:
        """The same as `by_column`, which takes as long for one row as for a thousand."""
        names = ("offset", "ordinal", "outputs", "trace", "headers", "key", "tags")
        columns = [records.column(name).to_pylist() for name in names]
        ids = own_column(records, MESSAGE_ID)
        columns.append([None] * len(records) if ids is None else ids.to_pylist())
        times = records.column("timestamp").view(pa.int64()).to_pylist()
        several = outputs(records) is not None
        traced = several or records.column("trace").null_count < len(records)
        for offset, ordinal, many, trace, headers, key, tags, given, born in zip(*columns, times, strict=True):
            number = ordinal or 0
            made = b"%s%012X%04X" % (self._id, offset & _TWELVE_DIGITS, number & _FOUR_DIGITS_OF_HEX)
            user = (headers or b"", _pair(_KEYS, key), _pair(_TAGS, tags))
            own = (_ID, made if given is None or number else given, self._coordinates, b"%d:%d" % (offset, number))
            more = (b":%016X" % (trace or 0) if traced else b"", b":%d" % (many or 1) if several else b"")
            yield b"".join((*user, *own, *more, PAIR_END, _pair(_BORN, _told(born))))

    def by_column(self, records: pa.RecordBatch) -> pa.Array:
        """One property string a row, of one row or more."""
        offsets = records.column("offset").to_numpy()
        numbers = ordinals(records)
        pieces = [_ID, *self._ids(records, offsets, numbers), self._coordinates, _digits(offsets)]
        pieces += [b":0"] if numbers is None else [b":", _digits(numbers)]
        pieces += [*_further(records), PAIR_END, *_born(records)]
        user = list(user_properties(records))
        own = _side_by_side(pieces, len(offsets))
        return joined(*user, own) if user else own

    def _ids(self, records: pa.RecordBatch, offsets: Numbers, numbers: Numbers | None) -> list[Piece]:
        fourth = b"0000" if numbers is None else hex_digits(numbers, 4)
        made: list[Piece] = [self._id, hex_digits(offsets, 12), fourth]
        given = own_column(records, MESSAGE_ID)
        if given is None:
            return made
        if numbers is not None:
            given = pc.if_else(pa.array(numbers == 0), given, pa.scalar(None, pa.binary()))
        elif (cells := cells_of(given)) is not None:
            return [cells]
        return [pc.coalesce(given, _side_by_side(made, len(offsets)))]


def _pair(name: bytes, value: str | None) -> bytes:
    """A property, nothing where it has no value."""
    return b"%s%s%s" % (name, value.encode(), PAIR_END) if value else b""


def _told(born: int | None) -> str | None:
    return None if born is None or born < 0 else str(born)


def _place(lineage: Lineage) -> tuple[bytes, bytes]:
    return lineage.stream.encode(), lineage.partition_id.encode()


def _numbers_of(lineage: Lineage) -> Iterator[bytes]:
    """As they stand in coordinates; messages of before there were names have none."""
    yield b"%d" % lineage.incarnation
    if lineage.origin:
        yield b"%d.%s" % (lineage.incarnation, lineage.origin.encode())


def _id_prefix(prefix: str) -> bytes:
    """What the ids made for records of a lineage begin with."""
    return hashlib.blake2b(prefix.encode(), digest_size=_LINEAGE_DIGITS // 2).hexdigest().upper().encode()


def joined(*pieces: pa.Array | bytes) -> pa.Array:
    """The pieces of each row, one behind the other; bytes stand in every row."""
    parts = [pa.scalar(piece, pa.binary()) if isinstance(piece, bytes) else piece for piece in pieces]
    return pc.binary_join_element_wise(*parts, b"")


def fixed(cells: Cells) -> pa.Array:
    """The rows of a matrix of bytes as values."""
    count, width = cells.shape
    ends = np.arange(0, count * width + 1, width, dtype=np.int32)
    return pa.Array.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(cells))]
    )


def cells_of(values: pa.Array) -> Cells | None:
    """The inverse of `fixed`, without a copy: None when the values are not equally long, or one is null or empty."""
    _, places, data = values.buffers()
    if not len(values) or values.null_count or data is None:
        return None
    ends = np.frombuffer(places, dtype=np.int32)[values.offset : values.offset + len(values) + 1]
    width = int(ends[1] - ends[0])
    if not width or (np.diff(ends) != width).any():
        return None
    return np.frombuffer(data, dtype=np.uint8)[ends[0] : ends[-1]].reshape(-1, width)


def _further(records: pa.RecordBatch) -> list[Piece]:
    """Traces, and how many outputs each input has: nothing where no row has more to say than the usual. Zeros in a row
    without a trace."""
    traces, many = records.column("trace"), outputs(records)
    if traces.null_count == len(traces) and many is None:
        return []
    pieces: list[Piece] = [b":", hex_digits(without_nulls(traces, 0).to_numpy(), 16)]
    return pieces if many is None else [*pieces, b":", _digits(many)]


def _born(records: pa.RecordBatch) -> list[Piece]:
    """Nothing for rows that do not say when they were born, or before 1970."""
    times = records.column("timestamp").cast(pa.int64())
    if not times.null_count and (numbers := times.to_numpy()).min() >= 0:
        return [_BORN, _digits(numbers), PAIR_END]
    if times.null_count == len(times):
        return []
    said = pc.if_else(pc.greater_equal(times, 0), times, None).cast(pa.string()).cast(pa.binary())
    return [without_nulls(joined(_BORN, said, PAIR_END), b"")]


def _side_by_side(pieces: Sequence[Piece], rows: int) -> pa.Array:
    """The pieces of each row, one behind the other. Without Arrow's columns all rows are equally long: one matrix."""
    if any(isinstance(piece, pa.Array) for piece in pieces):
        return joined(*(fixed(piece) if isinstance(piece, np.ndarray) else piece for piece in pieces))
    widths = [piece.shape[1] if isinstance(piece, np.ndarray) else len(piece) for piece in pieces]
    cells = np.empty((rows, sum(widths)), dtype=np.uint8)
    for piece, end, width in zip(pieces, np.cumsum(widths), widths, strict=True):
        cells[:, end - width : end] = np.frombuffer(piece, dtype=np.uint8) if isinstance(piece, bytes) else piece
    return fixed(cells)


def hex_digits(numbers: Numbers, width: int) -> Cells:
    """The last `width` digits, an even number of them."""
    octets = numbers.astype(">i8").view(np.uint8).reshape(-1, 8)
    return _HEX_OF_BYTE[octets[:, 8 - width // 2 :]].view(np.uint8)


def _digits(numbers: Numbers) -> Cells | pa.Array:
    """Decimal, without leading zeros, of numbers that are not negative: cells when all are equally long, as those of
    most batches are."""
    width = len(str(numbers.max()))
    if len(str(numbers.min())) != width:
        return pc.cast(pa.array(numbers), pa.string()).cast(pa.binary())
    groups = -(-width // 4)
    digits = np.empty((len(numbers), groups), dtype=np.uint32)
    for group in reversed(range(groups)):
        higher = numbers // 10_000
        digits[:, group] = _FOUR_DIGITS[numbers - higher * 10_000]
        numbers = higher
    return digits.view(np.uint8)[:, 4 * groups - width :]


def user_properties(records: pa.RecordBatch) -> Iterator[pa.Array]:
    """The columns of the user's own properties; what a row does not have is empty."""
    if records.column("headers").null_count < len(records):
        yield without_nulls(records.column("headers"), b"")
    for column, name in (("key", _KEYS), ("tags", _TAGS)):
        if records.column(column).null_count < len(records):
            values = records.column(column).cast(pa.binary())
            given = pc.if_else(pc.equal(values, b""), pa.scalar(None, pa.binary()), values)
            yield without_nulls(joined(name, given, PAIR_END), b"")


class Torn(NamedTuple):
    """A message whose properties end in zeros: its broker died while it stored a batch, and its log ended there. When
    the broker came back it kept what has a body with the right checksum, whatever became of the properties.

    `lineage` is of whose record it was made, `offset` of which; None where what is left of it does not tell."""

    lineage: Lineage | None
    offset: int | None
    position: int


def ours(messages: Iterable[StoredMessage], lineages: Iterable[Lineage]) -> Iterator[Mark]:
    """The marks of the messages that were made from records of these lineages (of one connector), in order."""
    return (mark for mark in MessageRecogniser(lineages).read(messages) if isinstance(mark, Mark))


class MessageRecogniser:
    """Tells messages that were made from records of these lineages (of one connector), and what matters of their
    partitions' other incarnations."""

    def __init__(self, lineages: Iterable[Lineage]) -> None:
        wanted = list(lineages)
        self._known = {(*_place(one), number): one for one in wanted for number in _numbers_of(one)}
        self._last = {_place(one): one for one in sorted(wanted, key=lambda one: one.incarnation)}
        self._ids = {_id_prefix(one.prefix()): one for one in wanted}
        uid = next((one.uid for one in wanted), "")
        self.needle = COORDINATES + uid.encode() + b":"
        """What the coordinates of this connector's records begin with."""

    def read(self, messages: Iterable[StoredMessage]) -> Iterator[Mark | Elsewhere | Torn]:
        """The messages of ours, in order, and those that were torn, whosever they are."""
        return self.read_pairs((message.properties, message.queue_offset) for message in messages)

    def lineage_of(self, fields: Sequence[bytes]) -> Lineage | None:
        """By what coordinates begin with: uid, stream, partition, incarnation."""
        return self._known.get((fields[1], fields[2], fields[3]))

    def elsewhere(self, fields: Sequence[bytes], offset: int, position: int) -> Elsewhere | None:
        """What a record of another incarnation of a partition of these lineages says; None where it does not matter."""
        last = self._last.get((fields[1], fields[2]))
        if last is None:
            return None
        number, _, origin = fields[3].partition(b".")
        same = bool(last.origin) and origin == last.origin.encode()
        return Elsewhere(last, offset, position, same) if same or int(number) > last.incarnation else None

    def read_pairs(self, messages: Iterable[tuple[bytes, int]]) -> Iterator[Mark | Elsewhere | Torn]:
        """The same of properties, and the place of each message in its queue."""
        needle, skip = self.needle, len(COORDINATES)
        for properties, position in messages:
            if properties and properties[-1] == 0:
                yield self._torn(properties, position)
                continue
            at = properties.rfind(needle)
            if at < 0 or (at and properties[at - 1] != PAIR_END[0]):
                continue
            fields = properties[at + skip :].partition(PAIR_END)[0].split(b":")
            if len(fields) < 6:
                continue
            lineage = self.lineage_of(fields)
            if lineage is None:
                other = self.elsewhere(fields, int(fields[4]), position)
                if other is not None:
                    yield other
            else:
                trace = int(fields[6], 16) if len(fields) > 6 else 0
                several = int(fields[7]) if len(fields) > 7 else 1
                yield Mark(lineage, int(fields[4]), int(fields[5]), position, trace, several)

    def _torn(self, properties: bytes, position: int) -> Torn:
        """By its coordinates, as far as they are whole, else by the message id, where that was made here."""
        left = properties.rstrip(b"\0")
        at = left.rfind(self.needle)
        fields = left[at + len(COORDINATES) :].split(b":") if at >= 0 else []
        if len(fields) > 4 and (lineage := self.lineage_of(fields)):
            return Torn(lineage, int(fields[4]) if len(fields) > 5 else None, position)
        at = left.find(_ID)
        made = left[at + len(_ID) :].partition(PAIR_END)[0] if at >= 0 else b""
        lineage = self._ids.get(made[:_LINEAGE_DIGITS])
        whole = lineage is not None and len(made) == _ID_DIGITS
        return Torn(lineage, int(made[_LINEAGE_DIGITS:-4], 16) if whole else None, position)
