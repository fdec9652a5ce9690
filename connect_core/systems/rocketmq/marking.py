"""The properties that make a message of ours recognisable: coordinates and a message id made from them.

`Marker` writes them, column by column, in the sink's hot path; `ours` finds them in messages read back. The
user's own properties come first in the string: of equal names readers take the last, so that nobody can replace ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.records import COORDINATES_PROPERTY, Lineage
from connect_core.rocketmq import StoredMessage
from connect_core.rocketmq.wire.properties import KEYS, TAGS, UNIQUE_KEY

Cells = NDArray[np.uint8]
"""Equally long values, a row each."""

_NAME_END, _PAIR_END = b"\x01", b"\x02"
_HEX_OF_BYTE = np.frombuffer(b"".join(b"%02X" % byte for byte in range(256)), dtype=np.uint16)
"""Two digits, as they stand in memory."""
_COORDINATES = COORDINATES_PROPERTY.encode() + _NAME_END

MARK_BYTES = 512
"""More than the properties added here, and those that brokers add, can need."""


class Marker:
    """Property strings for the records of one lineage.

    The message id is 32 hex digits: 16 of the lineage, 12 of the offset, 4 of the ordinal (both cut to what fits).
    """

    def __init__(self, lineage: Lineage) -> None:
        prefix = lineage.prefix()
        own = hashlib.blake2b(prefix.encode(), digest_size=8).hexdigest().upper()
        self._id = f"{UNIQUE_KEY}\x01{own}".encode()
        self._coordinates = f"\x02{COORDINATES_PROPERTY}\x01{prefix}".encode()
        self._last = (-1, 0)

    def properties(self, records: pa.RecordBatch) -> pa.Array:
        """One property string a row. Rows come in order over all calls: the outputs of one record are counted."""
        offsets = records.column("offset").to_numpy()
        if not len(offsets):
            return pa.array([], type=pa.binary())
        ordinals = self._ordinals(offsets)
        self._last = (int(offsets[-1]), int(ordinals[-1]))
        pieces = [self._id, _hex_digits(offsets, 12), b"0000" + self._coordinates, _digits(offsets), b":0\x02"]
        if ordinals.any():
            pieces[2:] = [_hex_digits(ordinals, 4), self._coordinates, pieces[3], b":", _digits(ordinals), _PAIR_END]
        user = list(_user_properties(records))
        own = _side_by_side(pieces, len(offsets))
        return joined(*user, own) if user else own

    def _ordinals(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each row how many rows right before it have the same offset."""
        rows = np.arange(len(offsets))
        starts = np.concatenate([[offsets[0] != self._last[0]], offsets[1:] != offsets[:-1]])
        first_rows = np.maximum.accumulate(np.where(starts, rows, -1))
        ordinals: NDArray[np.int64] = np.where(first_rows >= 0, rows - first_rows, rows + self._last[1] + 1)
        return ordinals


def joined(*pieces: pa.Array | bytes) -> pa.Array:
    """The pieces of each row, one behind the other; bytes stand in every row."""
    parts = [pa.scalar(piece, pa.binary()) if isinstance(piece, bytes) else piece for piece in pieces]
    return pc.binary_join_element_wise(*parts, b"")


def fixed(cells: Cells) -> pa.Array:
    """The rows of a matrix of bytes as values."""
    count, width = cells.shape
    ends = np.arange(0, count * width + 1, width, dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(cells)])


def _side_by_side(pieces: Sequence[bytes | Cells | pa.Array], rows: int) -> pa.Array:
    """The pieces of each row, one behind the other. Without Arrow's columns all rows are equally long: one matrix."""
    if any(isinstance(piece, pa.Array) for piece in pieces):
        return joined(*(fixed(piece) if isinstance(piece, np.ndarray) else piece for piece in pieces))
    widths = [piece.shape[1] if isinstance(piece, np.ndarray) else len(piece) for piece in pieces]
    cells = np.empty((rows, sum(widths)), dtype=np.uint8)
    for piece, end, width in zip(pieces, np.cumsum(widths), widths, strict=True):
        cells[:, end - width : end] = np.frombuffer(piece, dtype=np.uint8) if isinstance(piece, bytes) else piece
    return fixed(cells)


def _hex_digits(numbers: NDArray[np.int64], width: int) -> Cells:
    """The last `width` digits, an even number of them."""
    octets = numbers.astype(">i8").view(np.uint8).reshape(-1, 8)
    return _HEX_OF_BYTE[octets[:, 8 - width // 2 :]].view(np.uint8)


def _digits(numbers: NDArray[np.int64]) -> Cells | pa.Array:
    """Decimal, without leading zeros: cells when all numbers are equally long, as those of most batches are."""
    text = pc.cast(pa.array(numbers), pa.string())
    width = len(str(numbers.max()))
    if pc.sum(pc.binary_length(text)).as_py() != width * len(numbers):
        return text.cast(pa.binary())
    return np.frombuffer(text.buffers()[2], dtype=np.uint8, count=width * len(numbers)).reshape(-1, width)


def _user_properties(records: pa.RecordBatch) -> Iterator[pa.Array]:
    """The columns of the user's own properties; what a row does not have is empty."""
    if records.column("headers").null_count < len(records):
        yield pc.fill_null(records.column("headers"), b"")
    for column, name in (("key", KEYS), ("tags", TAGS)):
        if records.column(column).null_count < len(records):
            values = records.column(column).cast(pa.binary())
            given = pc.if_else(pc.equal(values, b""), pa.scalar(None, pa.binary()), values)
            yield pc.fill_null(joined(f"{name}\x01".encode(), given, _PAIR_END), b"")


class Mark(NamedTuple):
    """What a message of ours says of itself, and its own offset in the queue."""

    lineage: Lineage
    offset: int
    ordinal: int
    position: int


def ours(messages: Iterable[StoredMessage], lineages: Iterable[Lineage]) -> Iterator[Mark]:
    """The marks of the messages that were made from records of these lineages (of one connector), in order."""
    known = {(one.stream.encode(), one.partition_id.encode(), b"%d" % one.incarnation): one for one in lineages}
    uid = next((one.uid for one in known.values()), "")
    needle, skip = _COORDINATES + uid.encode() + b":", len(_COORDINATES)
    for message in messages:
        properties = message.properties
        at = properties.rfind(needle)
        if at < 0 or (at and properties[at - 1] != _PAIR_END[0]):
            continue
        fields = properties[at + skip :].partition(_PAIR_END)[0].split(b":", 6)
        lineage = known.get((fields[1], fields[2], fields[3])) if len(fields) >= 6 else None
        if lineage is not None:
            yield Mark(lineage, int(fields[4]), int(fields[5]), message.queue_offset)
