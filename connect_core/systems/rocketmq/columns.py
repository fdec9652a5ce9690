"""Stored messages field by field instead of one by one: the first half of the RocketMQ source's hot path.

Most brokers store every message in the same layout (IPv4 hosts, short topic, no inner batch). Then only the walk from
message to message is a Python loop; numpy reads the fields of all heads together, and Arrow copies bodies and
properties out. Whatever looks different, or broken, goes through `wire.stored_message`, which knows all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from struct import error as struct_error

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from connect_core.rocketmq import StoredMessage
from connect_core.rocketmq.compression import decompress
from connect_core.rocketmq.wire.stored_message import (
    BORN_HOST_V6,
    INNER_BATCH,
    MAGIC_V1,
    NEED_UNWRAP,
    STORE_HOST_V6,
    decode_messages,
)

Numbers = NDArray[np.int64]

_TOTAL_SIZE = Struct(">i")
_HEAD_BYTES = 88
"""Of a message with two IPv4 hosts: everything before the body."""
_OTHER_LAYOUT = BORN_HOST_V6 | STORE_HOST_V6 | NEED_UNWRAP | INNER_BATCH
_FIELDS = {"magic": (4, 4), "crc": (8, 4), "flag": (16, 4), "offset": (20, 8), "sys_flag": (36, 4)}
_FIELDS |= {"born": (40, 8), "stored": (56, 8), "body_length": (84, 4)}
"""Place and size of the fields that are used, from the beginning of a message."""
FEW = 16
"""So many messages are decoded sooner one by one: each call of numpy or Arrow takes as long as a message or more, twice
that in a process that waited since the last one. In a window, batches are mostly this small."""
_PLACES = np.concatenate([np.arange(place, place + size) for place, size in _FIELDS.values()])


@dataclass(frozen=True)
class Columns:
    """Messages of one queue in order. Bodies are as stored (perhaps compressed: `sys_flags`); times are milliseconds
    of UTC; `crcs` are what the broker computed; `flags` are the users'."""

    offsets: Numbers
    crcs: Numbers
    flags: Numbers
    sys_flags: Numbers
    born_ms: Numbers
    stored_ms: Numbers
    bodies: pa.Array
    properties: pa.Array

    def __len__(self) -> int:
        return len(self.offsets)

    def between(self, begin: int, end: int) -> Columns:
        """Rows `begin` (included) to `end` (excluded); the same object when these are all."""
        if begin <= 0 and end >= len(self):
            return self
        rows = slice(max(begin, 0), max(end, 0))
        return Columns(*(column[rows] for column in (*self._numbers(), self.bodies, self.properties)))

    def where(self, chosen: NDArray[np.bool_]) -> Columns:
        """Those rows."""
        arrays = (self.bodies, self.properties)
        return Columns(*(one[chosen] for one in self._numbers()), *(one.filter(pa.array(chosen)) for one in arrays))

    def before(self, offset: int) -> Columns:
        """The messages below an offset."""
        return self.between(0, int(np.searchsorted(self.offsets, offset)))

    def _numbers(self) -> tuple[Numbers, ...]:
        return self.offsets, self.crcs, self.flags, self.sys_flags, self.born_ms, self.stored_ms


def columns_of(data: bytes) -> Columns:
    """All messages of `data`, as pull answers hold them back to back. Raises `WireFormatError`."""
    starts = _starts(data)
    columns = _usual(data, starts) if starts is not None and len(starts) - 1 > FEW else None
    return columns if columns is not None else columns_of_messages(decode_messages(data, decompress))


def columns_of_messages(messages: Sequence[StoredMessage]) -> Columns:
    """The same of messages that were decoded one by one."""

    fields = [
        (m.queue_offset, m.body_crc, m.flag, m.sys_flag, m.born_timestamp_ms, m.store_timestamp_ms) for m in messages
    ]
    numbers = np.array(fields, dtype=np.int64).reshape(-1, 6).T.copy()
    arrays = [message.body for message in messages], [message.properties for message in messages]
    return Columns(*numbers, *(pa.array(values, type=pa.binary()) for values in arrays))


def _usual(data: bytes, starts: Sequence[int]) -> Columns | None:
    """None when a message has another layout than most, or does not add up."""
    places = np.array(starts, dtype=np.int64)
    begins, ends = places[:-1], places[1:]
    fields = _fields(np.frombuffer(data, dtype=np.uint8), begins)
    if (fields["magic"] != MAGIC_V1).any() or (fields["sys_flag"] & _OTHER_LAYOUT).any():
        return None
    text = _text_begins(data, begins, ends, fields["body_length"])
    if text is None:
        return None
    body_begins = begins + _HEAD_BYTES
    arrays = _cut_out(data, begins, body_begins, body_begins + fields["body_length"], text)
    names = ("offset", "crc", "flag", "sys_flag", "born", "stored")
    return Columns(*(fields[name] for name in names), *arrays)


def _starts(data: bytes) -> list[int] | None:
    """Where each message begins, and the end of the last one."""
    starts: list[int] = []
    append, total_size, size, at = starts.append, _TOTAL_SIZE.unpack_from, len(data), 0
    try:
        while at < size:
            append(at)
            (total,) = total_size(data, at)
            if total <= _HEAD_BYTES:
                return None
            at += total
    except struct_error:
        return None
    append(at)
    return starts if at == size else None


def _fields(raw: NDArray[np.uint8], begins: Numbers) -> dict[str, Numbers]:
    heads = raw[begins[:, None] + _PLACES]
    fields = {}
    at = 0
    for name, (_, size) in _FIELDS.items():
        fields[name] = np.ascontiguousarray(heads[:, at : at + size]).view(f">i{size}").ravel().astype(np.int64)
        at += size
    return fields


def _text_begins(data: bytes, begins: Numbers, ends: Numbers, body_lengths: Numbers) -> Numbers | None:
    """Where the properties of each message begin; None when the lengths do not add up to its size."""
    raw = np.frombuffer(data, dtype=np.uint8)
    topics = begins + _HEAD_BYTES + body_lengths
    if (body_lengths < 0).any() or (topics >= ends).any():
        return None
    lengths = topics + 1 + raw[topics]
    if (lengths + 2 > ends).any() or not _one_topic(raw, topics):
        return None
    text = lengths + 2
    sizes = raw[lengths].astype(np.int64) << 8 | raw[lengths + 1]
    return text if np.array_equal(text + sizes, ends) else None


def _one_topic(raw: NDArray[np.uint8], topics: Numbers) -> bool:
    """Whether all messages have the same topic; its name stands behind its length."""
    if not len(topics):
        return True
    length = int(raw[topics[0]])
    if topics[-1] + length >= len(raw):
        return False
    names = raw[topics[:, None] + np.arange(length + 1)]
    return bool((names == names[:1]).all()) and names[:1, 1:].tobytes().isascii()


def _cut_out(data: bytes, begins: Numbers, bodies: Numbers, body_ends: Numbers, text: Numbers) -> Sequence[pa.Array]:
    """Bodies and properties, each back to back: every fourth value of an array that is all of `data`, cut at these
    places."""
    places = np.empty(4 * len(begins) + 1, dtype=np.int32)
    for shift, column in enumerate((begins, bodies, body_ends, text)):
        places[shift:-1:4] = column
    places[-1] = len(data)
    everything = pa.Array.from_buffers(
        pa.binary(), 4 * len(begins), [None, pa.py_buffer(places), pa.py_buffer(data)], null_count=0
    )
    return [everything.take(pa.array(np.arange(shift, 4 * len(begins), 4))) for shift in (1, 3)]
