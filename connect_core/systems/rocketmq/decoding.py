"""Columns of stored messages -> record batches: the second half of the RocketMQ source's hot path.

Key and tags are the properties KEYS and TAGS; headers are the user's properties, as they stand in the message, without
those that only mean something in the cluster they come from, without UNIQ_KEY and without coordinates of a former hop.
The timestamp is when the message was born: what its property BORN_TIMESTAMP says, in which copies keep it, else the
field. A message that cannot be decoded becomes a reject.

`record_batch` is for any sink; `whole_messages` adds what only another RocketMQ takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect_core.errors import Failure, WireFormatError
from connect_core.rocketmq.compression import decompress
from connect_core.rocketmq.wire.stored_message import COMPRESSED, SENDABLE_BITS, unpacked
from connect_core.sdk.batches import RECORD_SCHEMA, empty_records
from connect_core.sdk.records import COORDINATES_PROPERTY, OPERATION_NONE
from connect_core.sdk.values import Reject
from connect_core.systems.rocketmq.attributes import AttributeColumns, attribute_columns
from connect_core.systems.rocketmq.columns import Columns
from connect_core.systems.rocketmq.own_columns import FLAG, MESSAGE_ID, PACKED, PACKING, WHOLE_SCHEMA

MAX_ORIGINAL_BYTES = 64 * 1024

_CRC_MASK = 0x7FFFFFFF
"""Brokers store the lower 31 bits of the CRC-32."""

_COPY = f"(^|\x02){COORDINATES_PROPERTY}\x01"


def without_copies(columns: Columns) -> tuple[Columns, tuple[int, ...]]:
    """The messages that carry no coordinates, and the offsets of those that do: Waybill has brought these here."""
    copies = pc.match_substring_regex(columns.properties, _COPY).to_numpy(zero_copy_only=False)
    if not copies.any():
        return columns, ()
    return columns.where(~copies), tuple(columns.offsets[copies].tolist())


def record_batch(columns: Columns, topic: str) -> tuple[pa.RecordBatch, tuple[Reject, ...]]:
    """Messages of one topic, in order, as rows of RECORD_SCHEMA, and those that are none."""
    return sound(columns, topic, lambda some: _rows(some, topic))


def whole_messages(columns: Columns, topic: str) -> tuple[pa.RecordBatch, tuple[Reject, ...]]:
    """The same with everything that another RocketMQ can take over: message id, flag, bodies as they were stored."""
    return sound(columns, topic, lambda some: _rows(some, topic, whole=True))


def sound(
    columns: Columns, topic: str, rows: Callable[[Columns], pa.RecordBatch]
) -> tuple[pa.RecordBatch, tuple[Reject, ...]]:
    """What `rows` makes of the messages, and those for which it raises something."""
    try:
        return rows(columns), ()
    except MemoryError:
        raise
    except Exception:
        return _one_by_one(columns, topic, rows)


def _one_by_one(
    columns: Columns, topic: str, rows: Callable[[Columns], pa.RecordBatch]
) -> tuple[pa.RecordBatch, tuple[Reject, ...]]:
    kept, rejects = [rows(columns.between(0, 0))], []
    for row in range(len(columns)):
        one = columns.between(row, row + 1)
        try:
            kept.append(rows(one))
        except MemoryError:
            raise
        except Exception as error:
            rejects.append(_reject(one, topic, error))
    return pa.concat_batches(kept), tuple(rejects)


def _rows(columns: Columns, topic: str, *, whole: bool = False) -> pa.RecordBatch:
    schema = WHOLE_SCHEMA if whole else RECORD_SCHEMA
    if not len(columns):
        return empty_records(schema)
    count = len(columns)
    given = attribute_columns(columns.properties)
    filled: dict[str, Any] = {
        "topic": pa.repeat(pa.scalar(topic), count),
        "key": given.key,
        "tags": given.tags,
        "value": plain_bodies(columns),
        "headers": given.headers,
        "offset": pa.array(columns.offsets),
        "timestamp": born_at(columns, given),
        "operation": pa.array(np.full(count, OPERATION_NONE, dtype=np.int8)),
        **(_own_columns(columns, given) if whole else {}),
    }
    arrays = [filled[one.name] if one.name in filled else pa.nulls(count, one.type) for one in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _own_columns(columns: Columns, given: AttributeColumns) -> dict[str, pa.Array]:
    made = {MESSAGE_ID: given.message_id, FLAG: pa.array(columns.flags.astype(np.int32))}
    packed = (columns.sys_flags & COMPRESSED) != 0
    if packed.any():
        bits = (columns.sys_flags & SENDABLE_BITS).astype(np.int32)
        made[PACKED] = pc.if_else(pa.array(packed), columns.bodies, pa.scalar(None, pa.binary()))
        made[PACKING] = pa.array(bits, mask=~packed)
    return made


def born_at(columns: Columns, given: AttributeColumns) -> pa.Array:
    """When each message was born: what its properties say, else its field."""
    kind = RECORD_SCHEMA.field("timestamp").type
    fields = pa.array(columns.born_ms, kind)
    return fields if given.born_ms is None else pc.coalesce(given.born_ms.cast(kind), fields)


def plain_bodies(columns: Columns) -> pa.Array:
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
    text = "The properties are not UTF-8"
    if not isinstance(error, UnicodeDecodeError):
        text = Failure.unexpected(error, "reading it").what
    return Reject(
        offset=int(columns.offsets[0]),
        ordinal=0,
        stage="read",
        kind=type(error).__name__,
        message=text,
        original=columns.bodies[0].as_py()[:MAX_ORIGINAL_BYTES],
        topic=topic,
    )
