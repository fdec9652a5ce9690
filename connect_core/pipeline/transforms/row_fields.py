"""What conditions and templates name of rows with fields, read from their columns. Pure.

It means the same as the JSON of such a row: what is null there is missing, decimals are numbers, dates are texts, lists
and structs are compact JSON. Only the columns that are named are read.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.pipeline.fields import Fields, FieldValues, Flags, Value
from connect_core.pipeline.transforms.casts import FLOATS, NUMBERS, WHOLE
from connect_core.pipeline.transforms.columns import child
from connect_core.pipeline.transforms.texts import as_doubles, json_texts, kind_of, texts
from connect_core.rows.moments import textless_rows
from connect_core.sdk.templates import Reference

_EXACT = 1 << 53
_INT64_DIGITS = 18


class RowFields(Fields):
    """Of a batch of rows, and of the records that these rows are of."""

    def __init__(self, rows: pa.RecordBatch, records: pa.RecordBatch, path: str | None = None) -> None:
        super().__init__(records, path)
        self.rows = rows

    def where(self, flags: Flags) -> RowFields:
        mask = pa.array(flags)
        return RowFields(self.rows.filter(mask), self.records.filter(mask), self._path)

    def behind(self, rows: int) -> RowFields:
        return RowFields(self.rows.slice(rows), self.records.slice(rows), self._path)

    def textless(self, wanted: Reference) -> Flags | None:
        """The rows of which it names a moment, or what holds one, for which there is no text."""
        found = self._found(wanted.steps) if wanted.kind == "payload" else None
        return None if found is None else textless_rows(*found)

    def _values(self, wanted: Reference) -> FieldValues:
        if wanted.kind != "payload":
            return super()._values(wanted)
        found = self._found(wanted.steps)
        if found is None:
            return FieldValues(pa.nulls(len(self), pa.string()))
        field, column = found
        kind = kind_of(field)
        if kind == "bool":
            return FieldValues(column.to_pylist())
        if kind == "decimal" and not field.type.scale and field.type.precision > _INT64_DIGITS:
            return FieldValues([None if one is None else int(one) for one in column.to_pylist()])
        if kind in NUMBERS or kind == "epoch":
            return _Numbers(kind, column)
        return FieldValues(json_texts(field, column))

    def _found(self, steps: tuple[str | int, ...]) -> tuple[pa.Field, pa.Array] | None:
        """None where no row can have it."""
        place = self.rows.schema.get_field_index(steps[0]) if isinstance(steps[0], str) else -1
        if place < 0:
            return None
        field, column = self.rows.schema.field(place), self.rows.column(place)
        for step in steps[1:]:
            if isinstance(step, int):
                if not pa.types.is_list(field.type):
                    return None
                field, column = field.type.value_field, _item(column, step)
            else:
                place = field.type.get_field_index(step) if pa.types.is_struct(field.type) else -1
                if place < 0:
                    return None
                field, column = field.type.field(place), child(column, place)
        return field, column


class _Numbers(FieldValues):
    """Of a column of numbers, without a detour through Python where columns are enough. There is one zero."""

    def __init__(self, kind: str, column: pa.Array) -> None:
        super().__init__([])
        self._kind, self._column = kind, column

    @cached_property
    def _numbers(self) -> pa.Array:
        """int64, uint64 or float64."""
        if self._kind in FLOATS or (self._kind == "decimal" and self._column.type.scale):
            return pc.add(as_doubles(self._kind, self._column), 0.0)
        return self._column if self._kind in WHOLE else self._column.cast(pa.int64())

    @cached_property
    def values(self) -> list[Value]:
        values: list[Value] = self._numbers.to_pylist()
        return values

    @cached_property
    def missing(self) -> Flags:
        flags: Flags = self._numbers.is_null().to_numpy(zero_copy_only=False)
        return flags

    @cached_property
    def texts(self) -> pa.Array | None:
        """Only where nothing is there."""
        return pa.nulls(len(self._column), pa.string()) if self.missing.all() else None

    @cached_property
    def numbers(self) -> NDArray[np.float64] | None:
        if pa.types.is_integer(self._numbers.type):
            least, most = pc.min_max(self._numbers).as_py().values()
            if least is not None and (least < -_EXACT or most > _EXACT):
                return None
        numbers: NDArray[np.float64] = self._numbers.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return numbers

    @cached_property
    def written(self) -> pa.Array:
        """Decimals with all of their digits."""
        column = self._numbers if self._kind in FLOATS else self._column
        return pc.fill_null(texts("float64" if self._kind in FLOATS else self._kind, column), "")


def _item(column: pa.ListArray, place: int) -> pa.Array:
    """Of each list the item at this place, from its end where it is negative; null where there is none."""
    ends = column.offsets.to_numpy().astype(np.int64)
    first, behind = ends[:-1], ends[1:]
    at = first + place if place >= 0 else behind + place
    inside = (first <= at) & (at < behind)
    if column.null_count:
        inside &= column.is_valid().to_numpy(zero_copy_only=False)
    return column.values.take(pa.array(at, mask=~inside))
