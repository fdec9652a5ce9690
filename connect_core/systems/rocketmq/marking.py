"""The properties that make a message of ours recognisable: coordinates and a message id made from them.

`Marker` writes them, column by column, in the sink's hot path; `ours` finds them in messages read back. The
user's own properties come first in the string: of equal names readers take the last, so that nobody can replace ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.records import COORDINATES_PROPERTY, Lineage
from connect_core.rocketmq import StoredMessage
from connect_core.rocketmq.wire.properties import KEYS, TAGS, UNIQUE_KEY

_NAME_END, _PAIR_END = b"\x01", b"\x02"
_EMPTY = pa.scalar(b"", pa.binary())
_HEX = np.frombuffer(b"0123456789ABCDEF", dtype=np.uint8)
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
        made = [self._id, _hex_digits(offsets, 12), b"0000" + self._coordinates, _decimals(offsets), b":0\x02"]
        if ordinals.any():
            made[2:] = [_hex_digits(ordinals, 4), self._coordinates, made[3], b":", _decimals(ordinals), _PAIR_END]
        return joined(*_user_properties(records), *made)

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
    return pc.binary_join_element_wise(*parts, _EMPTY)


def fixed(cells: NDArray[np.uint8]) -> pa.Array:
    """The rows of a matrix of bytes as values."""
    count, width = cells.shape
    ends = np.arange(0, count * width + 1, width, dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(cells)])


def _hex_digits(numbers: NDArray[np.int64], width: int) -> pa.Array:
    shifts = np.arange(4 * (width - 1), -1, -4)
    return fixed(_HEX[(numbers[:, None] >> shifts) & 15])


def _decimals(numbers: NDArray[np.int64]) -> pa.Array:
    return pc.cast(pa.array(numbers), pa.string()).cast(pa.binary())


def _user_properties(records: pa.RecordBatch) -> Iterator[pa.Array]:
    """The columns of the user's own properties; what a row does not have is empty."""
    if records.column("headers").null_count < len(records):
        yield pc.fill_null(records.column("headers"), b"")
    for column, name in (("key", KEYS), ("tags", TAGS)):
        values = records.column(column).cast(pa.binary())
        if values.null_count < len(records):
            given = pc.if_else(pc.equal(values, _EMPTY), pa.scalar(None, pa.binary()), values)
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
