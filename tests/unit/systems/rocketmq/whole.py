"""Records with what only RocketMQ knows of them."""

from __future__ import annotations

import pyarrow as pa

from connect_core.systems.rocketmq.options import SYSTEM
from connect_core.systems.rocketmq.own_columns import WHOLE_SCHEMA


def whole(records: pa.RecordBatch, **own: list[object]) -> pa.RecordBatch:
    """`own` by names without that of the system; what is not given is null."""
    filled = dict(zip(records.schema.names, records.columns, strict=True))
    filled |= {f"{SYSTEM}.{name}": pa.array(values) for name, values in own.items()}
    columns = [
        filled[one.name].cast(one.type) if one.name in filled else pa.nulls(len(records), one.type)
        for one in WHOLE_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(columns, schema=WHOLE_SCHEMA)
