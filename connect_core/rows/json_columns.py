"""What Arrow's JSON reader makes of a batch -> the columns that a document declares. Pure.

Arrow reads whole columns, and some types not as exactly as they have to be. So these travel as a wire type: moments
and bytes as the text that they are in JSON, decimals wide enough that no multiplication overflows. What then does not
fit is found by column, and named by its row.
"""

from __future__ import annotations

from binascii import Error as NotBase64
from binascii import a2b_base64
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.rows.json_faults import expected, inner
from connect_core.rows.schema import arrow_field, arrow_type
from connect_core.rows.types import MAX_PRECISION, Type

_AS_TEXT = ("date", "time", "timestamp", "datetime", "bytes")
_DATE = len("2026-01-02")


def wire_type(one: Type) -> pa.DataType:
    """What Arrow's JSON reader is asked for."""
    if one.kind == "struct":
        return pa.struct([pa.field(name, wire_type(of)) for name, of in one.fields])
    if one.item is not None:
        return pa.list_(pa.field("item", wire_type(one.item)))
    if one.kind == "decimal" and one.precision + one.scale > MAX_PRECISION:
        # The reader multiplies by 10^scale without looking whether that overflows.
        return pa.decimal256(one.precision, one.scale)
    if one.kind == "epoch":
        return pa.int64()
    return pa.string() if one.kind in _AS_TEXT else arrow_type(one)


class TypedColumns:
    """The declared columns of one batch, and by row what is wrong with it: the first fault of each."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self.unfit: dict[int, str] = {}

    def struct(self, read: pa.Table, rows: Type) -> pa.StructArray:
        """`read` has one chunk a column. Rows that do not fit are still in it, with missing values."""
        every = np.arange(self._rows + 1)
        columns = [self._of(read.column(name).chunk(0), one, name, every) for name, one in rows.fields]
        return pa.StructArray.from_arrays(columns, fields=[arrow_field(*one) for one in rows.fields])

    def _of(self, column: pa.Array, one: Type, place: str, bounds: NDArray[np.int64]) -> pa.Array:
        """`bounds`: where in this column the values of each row begin, and at last where they end."""
        if one.kind == "struct":
            return self._struct(column, one, place, bounds)
        if one.item is not None:
            return self._list(column, one.item, place, bounds)
        if one.kind in ("float32", "float64"):
            return self._finite(column, one, place, bounds)
        if (convert := _CONVERSIONS.get(one.kind)) is None:
            return column
        return self._converted(column, one, place, bounds, convert)

    def _struct(self, column: pa.Array, one: Type, place: str, bounds: NDArray[np.int64]) -> pa.Array:
        fields = [
            self._of(column.field(number), of, inner(place, name), bounds)
            for number, (name, of) in enumerate(one.fields)
        ]
        return pa.StructArray.from_arrays(fields, fields=list(arrow_type(one)), mask=_missing(column))

    def _list(self, column: pa.Array, item: Type, place: str, bounds: NDArray[np.int64]) -> pa.Array:
        offsets = column.offsets
        items = self._of(column.values, item, f"{place}[]", offsets.to_numpy()[bounds])
        made = pa.list_(arrow_field("item", item))
        return pa.ListArray.from_arrays(offsets, items, type=made, mask=_missing(column))

    def _finite(self, column: pa.Array, one: Type, place: str, bounds: NDArray[np.int64]) -> pa.Array:
        """The reader knows NaN and Infinity, which JSON does not, and rounds what is too big to infinity."""
        finite = pc.is_finite(column)
        if not pc.all(finite, min_count=0).as_py():
            values = np.flatnonzero(~finite.fill_null(True).to_numpy(zero_copy_only=False))
            self._note(np.searchsorted(bounds, values, "right") - 1, one, place)
        return column

    def _converted(
        self,
        column: pa.Array,
        one: Type,
        place: str,
        bounds: NDArray[np.int64],
        convert: Callable[[pa.Array, Type], pa.Array],
    ) -> pa.Array:
        def fails(low: int, high: int) -> bool:
            begin = int(bounds[low])
            return not _can(convert, column.slice(begin, int(bounds[high]) - begin), one)

        try:
            return convert(column, one)
        except _UNFIT:
            column = self._without_unfit(column, bounds)
        self._note(failing(fails, 0, self._rows), one, place)
        return convert(self._without_unfit(column, bounds), one)

    def _note(self, rows: Any, one: Type, place: str) -> None:
        for row in rows:
            self.unfit.setdefault(int(row), f"{place}: {expected(one)}")

    def _without_unfit(self, column: pa.Array, bounds: NDArray[np.int64]) -> pa.Array:
        """Missing values in the rows that do not fit: each of these is looked for once, not once a column."""
        fit = np.ones(self._rows, dtype=bool)
        fit[list(self.unfit)] = False
        return pc.if_else(pa.array(np.repeat(fit, np.diff(bounds))), column, pa.scalar(None, column.type))


def failing(fails: Callable[[int, int], bool], low: int, high: int) -> Iterator[int]:
    """The rows from `low` to `high` that fail each on its own, by halving."""
    if low == high or not fails(low, high):
        return
    if high - low == 1:
        yield low
        return
    middle = (low + high) // 2
    yield from failing(fails, low, middle)
    yield from failing(fails, middle, high)


_UNFIT = (pa.ArrowInvalid, NotBase64, ValueError)


def _can(convert: Callable[[pa.Array, Type], pa.Array], column: pa.Array, one: Type) -> bool:
    try:
        convert(column, one)
    except _UNFIT:
        return False
    return True


def _missing(column: pa.Array) -> pa.Array | None:
    return column.is_null() if column.null_count else None


def _decimals(column: pa.Array, one: Type) -> pa.Array:
    """The reader looks at the digits of the text, and not whether these behind the point leave room for the others."""
    if column.type != (declared := arrow_type(one)):
        return column.cast(declared)
    column.validate(full=True)
    return column


def _times(column: pa.Array, one: Type) -> pa.Array:
    """Arrow casts texts to moments, and not to times of a day as exactly."""
    moments = pc.binary_join_element_wise("1970-01-01T", column, "").cast(pa.timestamp(one.unit))
    return moments.cast(arrow_type(one))


def _moments(column: pa.Array, one: Type) -> pa.Array:
    return column.cast(arrow_type(one))


def _datetimes(column: pa.Array, one: Type) -> pa.Array:
    """A date alone is none: the cast would take midnight."""
    if pc.any(pc.less_equal(pc.binary_length(column), _DATE)).as_py():
        raise ValueError("a date without a time")
    return column.cast(arrow_type(one))


def _bytes(column: pa.Array, one: Type) -> pa.Array:
    values = (None if text is None else a2b_base64(text, strict_mode=True) for text in column.to_pylist())
    return pa.array(values, arrow_type(one))


_CONVERSIONS: dict[str, Callable[[pa.Array, Type], pa.Array]] = {
    "decimal": _decimals,
    "time": _times,
    "date": _moments,
    "timestamp": _moments,
    "epoch": _moments,
    "datetime": _datetimes,
    "bytes": _bytes,
}
