"""Columns of stored messages -> record batches: the second half of the RocketMQ source's hot path.

Key and tags are the properties KEYS and TAGS; headers are the user's properties, as they stand in the message, without
those that only mean something in the cluster they come from, without UNIQ_KEY and without coordinates of a former hop.
A message that cannot be decoded becomes a reject.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect_core.contracts import Reject
from connect_core.errors import WireFormatError
from connect_core.records import COORDINATES_PROPERTY, OPERATION_NONE, RECORD_SCHEMA, empty_records
from connect_core.rocketmq.compression import decompress
from connect_core.rocketmq.wire.properties import KEYS, TAGS, UNIQUE_KEY, kept_in_copies
from connect_core.rocketmq.wire.stored_message import COMPRESSED, unpacked
from connect_core.systems.rocketmq.columns import Columns

MAX_ORIGINAL_BYTES = 64 * 1024

_CRC_MASK = 0x7FFFFFFF
"""Brokers store the lower 31 bits of the CRC-32."""

_NAME_END, _PAIR_END = b"\x01", b"\x02"
_KEYS, _TAGS = KEYS.encode(), TAGS.encode()
_OURS = frozenset({UNIQUE_KEY, COORDINATES_PROPERTY})
# What most messages carry and nobody needs in a copy: a whole batch of them is seen by one match over its joined
# properties, which takes a quarter of the time of looking at each.
_NOTHING_KEPT = re.compile(
    rb"(?:\x02|(?:UNIQ_KEY|WAYBILL|MSG_REGION|TRACE_ON|CLUSTER|WAIT)\x01[^\x02]*+(?:\x02|\Z))*+", re.DOTALL
)


class Attributes(NamedTuple):
    """What a record keeps of a message's properties. `headers` are in the form of `records.encode_headers`."""

    key: str | None
    tags: str | None
    headers: bytes | None


def attributes(properties: bytes) -> Attributes:
    """Raises UnicodeDecodeError when a key, a tag or a name is not UTF-8."""
    key = tags = None
    kept: list[bytes] = []
    for pair in properties.split(_PAIR_END):
        name, _, value = pair.partition(_NAME_END)
        if not name or not value:
            continue
        if name == _KEYS:
            key = value.decode()
        elif name == _TAGS:
            tags = value.decode()
        elif (text := name.decode()) not in _OURS and kept_in_copies(text):
            kept.append(pair)
    return Attributes(key, tags, _PAIR_END.join(kept) + _PAIR_END if kept else None)


def record_batch(columns: Columns, topic: str) -> tuple[pa.RecordBatch, tuple[Reject, ...]]:
    """Messages of one topic, in order, as rows of RECORD_SCHEMA, and those that are none."""
    try:
        return _rows(columns, topic), ()
    except (WireFormatError, UnicodeDecodeError):
        return _sound_rows(columns, topic)


def _sound_rows(columns: Columns, topic: str) -> tuple[pa.RecordBatch, tuple[Reject, ...]]:
    sound, rejects = [empty_records()], []
    for row in range(len(columns)):
        one = columns.between(row, row + 1)
        try:
            sound.append(_rows(one, topic))
        except (WireFormatError, UnicodeDecodeError) as error:
            rejects.append(_reject(one, topic, error))
    return pa.concat_batches(sound), tuple(rejects)


def _rows(columns: Columns, topic: str) -> pa.RecordBatch:
    if not len(columns):
        return empty_records()
    count = len(columns)
    keys, tags, headers = _attribute_columns(columns.properties)
    filled: dict[str, Any] = {
        "topic": pa.repeat(pa.scalar(topic), count),
        "key": keys,
        "tags": tags,
        "value": _plain_bodies(columns),
        "headers": headers,
        "offset": pa.array(columns.offsets),
        "timestamp": pa.array(columns.born_ms).cast(RECORD_SCHEMA.field("timestamp").type),
        "operation": pa.array(np.full(count, OPERATION_NONE, dtype=np.int8)),
    }
    return pa.RecordBatch.from_arrays([filled[field.name] for field in RECORD_SCHEMA], schema=RECORD_SCHEMA)


def _attribute_columns(properties: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Keys, tags and headers of a batch."""
    count = len(properties)
    if _NOTHING_KEPT.fullmatch(_joined(properties)):
        return pa.nulls(count, pa.string()), pa.nulls(count, pa.string()), pa.nulls(count, pa.binary())
    keys, tags, headers = zip(*map(attributes, properties.to_pylist()), strict=True)
    return _optional(keys, pa.string()), _optional(tags, pa.string()), _optional(headers, pa.binary())


def _joined(properties: pa.Array) -> memoryview:
    """All property strings with a separator between them: the last pair of a string may have none."""
    everything = pa.ListArray.from_arrays(pa.array([0, len(properties)], pa.int32()), properties)
    joined: memoryview = memoryview(pc.binary_join(everything, _PAIR_END)[0].as_buffer())
    return joined


def _optional(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    return pa.array(values, type=kind) if any(values) else pa.nulls(len(values), kind)


def _plain_bodies(columns: Columns) -> pa.Array:
    """Raises WireFormatError when a body is damaged."""
    bodies = columns.bodies.to_pylist()
    computed = np.fromiter(map(crc32, bodies), dtype=np.int64, count=len(bodies)) & _CRC_MASK
    if (computed != columns.crcs).any():
        raise WireFormatError("The body does not match the checksum that the broker stored with it")
    if not (columns.sys_flags & COMPRESSED).any():
        return columns.bodies
    flags = columns.sys_flags.tolist()
    plain = [unpacked(body, flag, decompress) for body, flag in zip(bodies, flags, strict=True)]
    return pa.array(plain, type=pa.binary())


def _reject(columns: Columns, topic: str, error: Exception) -> Reject:
    text = error.what if isinstance(error, WireFormatError) else "The properties are not UTF-8"
    return Reject(
        offset=int(columns.offsets[0]),
        ordinal=0,
        stage="read",
        kind=type(error).__name__,
        message=text,
        original=columns.bodies[0].as_py()[:MAX_ORIGINAL_BYTES],
        topic=topic,
    )
