"""Which days, moments and times have a text, and which SQL has none of. Pure.

Columns hold more than texts do: years beyond those of four digits, and numbers of a time of day that are no time of one
day. Whatever makes texts of columns asks here first.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.rows.schema import FORM

FIRST_DAY, LAST_DAY = -719_528, (date(9999, 12, 31) - date(1970, 1, 1)).days
"""Since 1970: texts have the years 0 to 9999."""
_DAY_S = 86_400
_PER_S = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FIRST_NS = -9_223_372_036 * 10**9
"""Arrow reads no moment in the second before, of which only a part fits 64 bits of nanoseconds."""
_INT32, _INT64 = (1 << 31) - 1, (1 << 63) - 1

Flags = NDArray[np.bool_]


def textless(column: pa.Array) -> pa.Array:
    """Of a column of days, moments or times; null where it is."""
    kind = column.type
    if pa.types.is_date(kind):
        return _outside(column, FIRST_DAY, LAST_DAY)
    a_second = _PER_S[kind.unit]
    if pa.types.is_time(kind):
        return _outside(column, 0, _DAY_S * a_second - 1)
    if kind.unit == "ns":  # it ends in 2262
        return _outside(column, _FIRST_NS, _INT64)
    return _outside(column, FIRST_DAY * _DAY_S * a_second, (LAST_DAY + 1) * _DAY_S * a_second - 1)


def textless_rows(field: pa.Field, column: pa.Array) -> Flags:
    """For each row whether there is such a value, at any depth. Moments that are numbers in JSON have a text."""
    return _rows(field, column, lambda of, one: None if (of.metadata or {}).get(FORM) else textless(one))


def rows_of_no_time(field: pa.Field, column: pa.Array) -> Flags:
    """For each row whether there is, at any depth, a time of day beyond its day."""
    return _rows(field, column, lambda of, one: textless(one) if pa.types.is_time(of.type) else None)


def rows_beyond_sql(field: pa.Field, column: pa.Array) -> Flags:
    """For each row whether there is, at any depth, a day or moment that DuckDB takes for infinity, or has none for."""
    return _rows(field, column, lambda of, one: None if pa.types.is_time(of.type) else _beyond_sql(one))


def _beyond_sql(column: pa.Array) -> pa.Array:
    """It counts moments with a zone in microseconds, and its largest numbers are infinities."""
    if pa.types.is_date(column.type):
        return _outside(column, 1 - _INT32, _INT32 - 1)
    most = {"s": _INT64 // 10**6, "ms": _INT64 // 10**3}.get(column.type.unit, _INT64 - 1)
    return _outside(column, -most, most)


def _outside(column: pa.Array, low: int, high: int) -> pa.Array:
    numbers = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    return pc.or_(pc.less(numbers, pa.scalar(low, numbers.type)), pc.greater(numbers, pa.scalar(high, numbers.type)))


def _rows(field: pa.Field, column: pa.Array, holds: Callable[[pa.Field, pa.Array], pa.Array | None]) -> Flags:
    found = np.zeros(len(column), np.bool_)
    kind = field.type
    if pa.types.is_struct(kind):
        for part, values in zip(kind, column.flatten(), strict=True):
            found |= _rows(part, values, holds)
    elif pa.types.is_list(kind):
        ends = column.offsets.to_numpy()
        items = _rows(kind.value_field, column.values.slice(ends[0], ends[-1] - ends[0]), holds)
        before = np.concatenate([[0], np.cumsum(items)])
        found = before[ends[1:] - ends[0]] > before[ends[:-1] - ends[0]]
        found &= column.is_valid().to_numpy(zero_copy_only=False)  # a missing list may have items that nobody sees
    elif pa.types.is_temporal(kind) and (flags := holds(field, column)) is not None:
        found = pc.fill_null(flags, False).to_numpy(zero_copy_only=False)
    return found
