"""Columns of records that only RocketMQ knows: what a copy from one cluster to another keeps of a message.

The message id and the user's flag; and where the body was stored compressed, that form of it with the bits that say how
(`wire.stored_message.SENDABLE_BITS`). `value` is always the plain body.
"""

from __future__ import annotations

import pyarrow as pa

from connect_core.sdk.batches import RECORD_SCHEMA, own_field
from connect_core.systems.rocketmq.options import SYSTEM

_FIELDS = (
    own_field(SYSTEM, "message_id", pa.binary()),
    own_field(SYSTEM, "flag", pa.int32()),
    own_field(SYSTEM, "packed", pa.binary(), of_value=True),
    own_field(SYSTEM, "packing", pa.int32(), of_value=True),
)
MESSAGE_ID, FLAG, PACKED, PACKING = (field.name for field in _FIELDS)
WHOLE_SCHEMA = pa.schema([*RECORD_SCHEMA, *_FIELDS])


def own_column(records: pa.RecordBatch, name: str) -> pa.Array | None:
    """None where no record has it."""
    if name not in records.schema.names:
        return None
    column = records.column(name)
    return None if column.null_count == len(records) else column
