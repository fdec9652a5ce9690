"""The properties that make a message of ours recognisable: coordinates and a message id made from them.

`Marker` writes them, one string for each record, in the sink's hot path; `ours` finds them in messages read back. The
user's own properties come first in the string: of equal names readers take the last, so that nobody can replace ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from connect_core.records import COORDINATES_PROPERTY, Lineage
from connect_core.rocketmq import StoredMessage
from connect_core.rocketmq.wire.properties import KEYS, TAGS, UNIQUE_KEY

_NAME_END, _PAIR_END = b"\x01", b"\x02"
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
        coordinates = f"{COORDINATES_PROPERTY}\x01{prefix}".replace("%", "%%")
        self._pattern = f"{UNIQUE_KEY}\x01{own}%012X%04X\x02{coordinates}%d:%d\x02".encode()
        self._first = f"{UNIQUE_KEY}\x01{own}%012X0000\x02{coordinates}%d:0\x02".encode()
        self._last = (-1, 0)

    def properties(self, records: pa.RecordBatch) -> list[bytes]:
        """One property string a row. Rows come in order over all calls: the outputs of one record are counted."""
        offsets = records.column("offset").to_numpy()
        if not len(offsets):
            return []
        ordinals = self._ordinals(offsets)
        self._last = (int(offsets[-1]), int(ordinals[-1]))
        if ordinals.any():
            pattern, columns = self._pattern, (offsets.tolist(), ordinals.tolist())
            marks = [pattern % (o & 0xFFFFFFFFFFFF, n & 0xFFFF, o, n) for o, n in zip(*columns, strict=True)]
        else:
            first = self._first
            marks = [first % (offset & 0xFFFFFFFFFFFF, offset) for offset in offsets.tolist()]
        if any(records.column(name).null_count < len(records) for name in ("key", "tags", "headers")):
            return [text + mark for text, mark in zip(_user_properties(records), marks, strict=True)]
        return marks

    def _ordinals(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each row how many rows right before it have the same offset."""
        rows = np.arange(len(offsets))
        starts = np.concatenate([[offsets[0] != self._last[0]], offsets[1:] != offsets[:-1]])
        first_rows = np.maximum.accumulate(np.where(starts, rows, -1))
        ordinals: NDArray[np.int64] = np.where(first_rows >= 0, rows - first_rows, rows + self._last[1] + 1)
        return ordinals


def _user_properties(records: pa.RecordBatch) -> Iterator[bytes]:
    columns = (records.column(name).to_pylist() for name in ("key", "tags", "headers"))
    for key, tags, headers in zip(*columns, strict=True):
        text: bytes = headers or b""
        if key:
            text += f"{KEYS}\x01{key}\x02".encode()
        if tags:
            text += f"{TAGS}\x01{tags}\x02".encode()
        yield text


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
