"""What a batch of changes does to a table: which rows go and which come, each key once. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from connect_core.systems.mysql.catalog import quoted_name
from connect_core.systems.mysql.literals import cell, joined
from connect_core.systems.tables.staging import staged


class Changes(NamedTuple):
    """Done in this order. Keys are told apart byte by byte, so none of one part is in the other."""

    gone: pa.StructArray
    come: pa.StructArray


def changes(records: pa.RecordBatch, key: Sequence[str]) -> Changes:
    """Of the rows with one key the last counts."""
    rows, numbers, gone = staged(records, key)
    last = _last(_of_key(rows, key), numbers.to_numpy())
    goes = gone.to_numpy(zero_copy_only=False)[last]
    return Changes(rows.take(pa.array(last[goes])), rows.take(pa.array(last[~goes])))


def conditions(rows: pa.StructArray, key: Sequence[str]) -> pa.Array:
    """SQL that is true of the row with the key of each. A column of texts may take other spellings for the same
    (`a`, `A`): these are not meant."""
    parts = []
    for name in key:
        place = rows.type.get_field_index(name)
        field, values = rows.type.field(place), cell(rows.type.field(place), rows.flatten()[place])
        parts.append(joined("", f"{quoted_name(name)}=", values))
        if pa.types.is_string(field.type):
            parts.append(joined("", f"CAST(CONVERT({quoted_name(name)} USING utf8mb4) AS BINARY)=", values))
    return joined("", "(", joined(" AND ", *parts), ")")


def _of_key(rows: pa.StructArray, key: Sequence[str]) -> pa.Array:
    """A text for each key."""
    columns = dict(zip((one.name for one in rows.type), zip(rows.type, rows.flatten(), strict=True), strict=True))
    return joined(",", *(cell(*columns[name]) for name in key))


def _last(keys: pa.Array, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the last row of each key is, in the order of the numbers."""
    order = np.argsort(numbers, kind="stable")
    codes = keys.dictionary_encode().indices.to_numpy()[order]
    _, first_from_behind = np.unique(codes[::-1], return_index=True)
    last: NDArray[np.int64] = order[np.sort(len(order) - 1 - first_from_behind)]
    return last
