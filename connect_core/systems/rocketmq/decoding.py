"""Stored messages -> record batches. The RocketMQ source's hot path: one pass over the properties of each message.

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

from connect_core.contracts import Reject
from connect_core.errors import WireFormatError
from connect_core.records import COORDINATES_PROPERTY, OPERATION_NONE, RECORD_SCHEMA, empty_records
from connect_core.rocketmq import StoredMessage
from connect_core.rocketmq.compression import decompress
from connect_core.rocketmq.wire.properties import KEYS, TAGS, UNIQUE_KEY, kept_in_copies
from connect_core.rocketmq.wire.stored_message import COMPRESSED, plain_body

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


def record_batch(messages: Sequence[StoredMessage]) -> tuple[pa.RecordBatch, tuple[Reject, ...]]:
    """Messages of one topic, in order, as rows of RECORD_SCHEMA, and those that are none."""
    try:
        return _rows(messages), ()
    except (WireFormatError, UnicodeDecodeError):
        return _sound_rows(messages)


def _sound_rows(messages: Sequence[StoredMessage]) -> tuple[pa.RecordBatch, tuple[Reject, ...]]:
    sound, rejects = [], []
    for message in messages:
        try:
            _rows([message])
        except (WireFormatError, UnicodeDecodeError) as error:
            rejects.append(_reject(message, error))
        else:
            sound.append(message)
    return _rows(sound), tuple(rejects)


def _rows(messages: Sequence[StoredMessage]) -> pa.RecordBatch:
    if not messages:
        return empty_records()
    count = len(messages)
    # One pass turns messages into columns; reading fields by name would cost several times as much.
    fields = dict(zip(StoredMessage._fields, zip(*messages, strict=True), strict=True))
    keys, tags, headers = _attribute_columns(fields["properties"])
    columns: dict[str, Any] = {
        "topic": pa.repeat(pa.scalar(messages[0].topic), count),
        "key": keys,
        "tags": tags,
        "value": pa.array(_bodies(messages, fields), type=pa.binary()),
        "headers": headers,
        "offset": pa.array(fields["queue_offset"], type=pa.int64()),
        "timestamp": pa.array(fields["born_timestamp_ms"], type=pa.int64()).cast(RECORD_SCHEMA.field("timestamp").type),
        "operation": pa.array(np.full(count, OPERATION_NONE, dtype=np.int8)),
    }
    return pa.RecordBatch.from_arrays([columns[field.name] for field in RECORD_SCHEMA], schema=RECORD_SCHEMA)


def _attribute_columns(properties: Sequence[bytes]) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Keys, tags and headers of a batch."""
    if _NOTHING_KEPT.fullmatch(_PAIR_END.join(properties)):
        count = len(properties)
        return pa.nulls(count, pa.string()), pa.nulls(count, pa.string()), pa.nulls(count, pa.binary())
    keys, tags, headers = zip(*map(attributes, properties), strict=True)
    return _optional(keys, pa.string()), _optional(tags, pa.string()), _optional(headers, pa.binary())


def _optional(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    return pa.array(values, type=kind) if any(values) else pa.nulls(len(values), kind)


def _bodies(messages: Sequence[StoredMessage], fields: dict[str, tuple[Any, ...]]) -> Sequence[bytes]:
    """The plain bodies. Raises WireFormatError when one is damaged."""
    bodies: tuple[bytes, ...] = fields["body"]
    computed = np.fromiter(map(crc32, bodies), dtype=np.int64, count=len(bodies)) & _CRC_MASK
    if (computed != np.array(fields["body_crc"])).any():
        raise WireFormatError("The body does not match the checksum that the broker stored with it")
    if not (np.array(fields["sys_flag"]) & COMPRESSED).any():
        return bodies
    return [plain_body(message, decompress) for message in messages]


def _reject(message: StoredMessage, error: Exception) -> Reject:
    text = error.what if isinstance(error, WireFormatError) else "The properties are not UTF-8"
    return Reject(
        offset=message.queue_offset,
        ordinal=0,
        stage="read",
        kind=type(error).__name__,
        message=text,
        original=message.body[:MAX_ORIGINAL_BYTES],
        topic=message.topic,
    )
