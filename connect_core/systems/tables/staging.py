"""What a batch of changes does to the rows of a table, in its order: rows that come, and keys that go. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect_core.sdk.batches import BEFORE, ROW
from connect_core.sdk.kits.refused import RowsRefused
from connect_core.sdk.records import OPERATION_DELETE


class Staged(NamedTuple):
    rows: pa.StructArray
    numbers: pa.Array
    """The order of what is done: of one key the last counts."""
    gone: pa.Array
    """Whether the row with this key is deleted. Then nothing but the key counts."""


def staged(records: pa.RecordBatch, key: Sequence[str]) -> Staged:
    """A row that gets another key is one that goes, and one that comes right behind it. Raises RowsRefused for one that
    goes and lacks its key, as where the source logs another key of deleted rows: no row would go, and nobody know."""
    rows = records.column(ROW)
    gone = pc.equal(records.column("operation"), OPERATION_DELETE)
    _require_key(rows.filter(gone), key)
    numbers = np.arange(len(rows), dtype=np.int64) * 2 + 1
    moved = _moved(records, key)
    if not len(moved):
        return Staged(rows, pa.array(numbers), gone)
    former = _with_key(rows.take(pa.array(moved)), records.column(BEFORE).take(pa.array(moved)), key)
    return Staged(
        pa.concat_arrays([rows, former]),
        pa.array(np.concatenate([numbers, numbers[moved] - 1])),
        pa.concat_arrays([gone, pa.array(np.ones(len(moved), dtype=np.bool_))]),
    )


def _require_key(rows: pa.StructArray, key: Sequence[str]) -> None:
    for name in key:
        if _field(rows, name).null_count:
            raise RowsRefused("NoKey", f"Field {name}, which is in the key, is missing: it is not known which row goes")


def _moved(records: pa.RecordBatch, key: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The rows whose former key is known and another one. To take one for another that is none does no harm."""
    there = np.zeros(len(records), dtype=np.bool_)
    if BEFORE not in records.schema.names:
        return np.flatnonzero(there)
    now, before = records.column(ROW), records.column(BEFORE)
    for name in key:
        there |= _differ(_field(now, name), _field(before, name))
    for name in key:
        there &= _field(before, name).is_valid().to_numpy(zero_copy_only=False)
    return np.flatnonzero(there)


def _differ(now: pa.Array, before: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    if pa.types.is_nested(now.type):
        return np.ones(len(now), dtype=np.bool_)
    differ: np.ndarray[tuple[int], np.dtype[np.bool_]]
    differ = pc.fill_null(pc.not_equal(now, before), True).to_numpy(zero_copy_only=False)
    return differ


def _field(rows: pa.StructArray, name: str) -> pa.Array:
    """Null where the row is."""
    return rows.flatten()[rows.type.get_field_index(name)]


def _with_key(now: pa.StructArray, before: pa.StructArray, key: Sequence[str]) -> pa.StructArray:
    """The key from before. All else is as it is now: the table may no longer take what it was, nor NULL."""
    columns = [_field(before if one.name in key else now, one.name) for one in now.type]
    return pa.StructArray.from_arrays(columns, fields=list(now.type))
