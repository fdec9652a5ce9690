"""Rows without their key."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from connect_core.sdk.batches import ROW


def without_key(records: pa.RecordBatch, key: Sequence[str]) -> list[tuple[int, str, str]]:
    """As `invalid_rows` of a sink says them: to an index two of them are two rows, to one batch they would be one."""
    if not key:
        return []
    rows, found = records.column(ROW), dict[int, str]()
    for name in key:
        if (place := rows.type.get_field_index(name)) >= 0 and rows.field(place).null_count:
            missing = rows.field(place).is_null().to_numpy(zero_copy_only=False).nonzero()[0].tolist()
            found |= dict.fromkeys(missing, f"Field {name}, which is in the key, is missing")
    return [(row, "NoKey", words) for row, words in sorted(found.items())]
