"""Messages of Protobuf -> the columns that a document declares. Pure.

Messages are asked for one field after the other, all of a batch at once. What the declared type cannot hold exactly is
named by its row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from connect_core.rows.json_faults import expected, inner
from connect_core.rows.protobuf_parts import ProtoField
from connect_core.rows.protobuf_schemas import DURATION_SCALE
from connect_core.rows.protobuf_wire import attribute
from connect_core.rows.schema import arrow_field, arrow_type
from connect_core.rows.types import Type

Bad = NDArray[np.bool_]
Rows = NDArray[np.int64]

MISSING = "missing, though the schema says that it is required"
FIRST_S, LAST_S = -62_135_596_800, 253_402_300_799
"""Of a Timestamp: the years 1 to 9999."""
LONGEST_S = 315_576_000_000
"""Of a Duration."""
PER_S = 10**9

_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_EXACT = Context(prec=38)


class ProtobufColumns:
    """The declared columns of one batch of one message, and by row what is wrong with it: the first fault of each."""

    def __init__(self) -> None:
        self.unfit: dict[int, str] = {}

    def rows(self, messages: Sequence[Any], fields: tuple[ProtoField, ...], declared: Type) -> pa.StructArray:
        """Rows that do not fit are still in it."""
        columns = self._fields(messages, fields, "", np.arange(len(messages)))
        return pa.StructArray.from_arrays(columns, fields=list(arrow_type(declared)))

    def _fields(
        self, messages: Sequence[Any], fields: tuple[ProtoField, ...], place: str, rows: Rows
    ) -> list[pa.Array]:
        """Of the declared ones. `rows`: the row of each message, -1 where nobody sees it."""
        return [
            self._column(messages, field, inner(place, field.name), rows)
            for field in fields
            if field.declared is not None
        ]

    def _column(self, messages: Sequence[Any], field: ProtoField, place: str, rows: Rows) -> pa.Array:
        assert field.declared is not None
        if not field.number:
            return pa.nulls(len(messages), arrow_type(field.declared))
        name = attribute(field)
        values = list(map(attrgetter(name), messages))
        if field.presence == "repeated":
            return self._list(values, field, place, rows)
        if field.presence in ("implicit", "entry"):
            return self._values(values, field, None, place, rows)
        gone = np.array([not message.HasField(name) for message in messages], np.bool_)
        if field.presence == "required":
            self._note(gone, rows, place, MISSING)
        return self._values(values, field, gone, place, np.where(gone, -1, rows))

    def _list(self, values: list[Any], field: ProtoField, place: str, rows: Rows) -> pa.Array:
        counts = np.array(list(map(len, values)), np.int64)
        if field.is_map:
            self._note(np.array(list(map(has_twice, values)), np.bool_), rows, place, "a key twice")
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        items = self._values([*chain.from_iterable(values)], field, None, f"{place}[]", np.repeat(rows, counts))
        made = pa.list_(arrow_field("item", field.value_type))
        return pa.ListArray.from_arrays(pa.array(offsets), items, type=made)

    def _values(self, values: list[Any], field: ProtoField, gone: Bad | None, place: str, rows: Rows) -> pa.Array:
        one = field.value_type
        if one.kind == "struct":
            columns = self._fields(values, field.fields, place, rows)
            mask = pa.array(gone) if gone is not None and gone.any() else None
            return pa.StructArray.from_arrays(columns, fields=list(arrow_type(one)), mask=mask)
        if field.logical == "wrapper":
            values = [value.f1 for value in values]
        made, bad = _conversion(field)(values, field, np.zeros(len(values), np.bool_) if gone is None else gone)
        self._note(bad, rows, place, _REASONS.get(field.kind if not field.logical else "") or expected(one))
        return made

    def _note(self, bad: Bad | None, rows: Rows, place: str, reason: str) -> None:
        if bad is None or not bad.any():
            return
        for row in np.unique(rows[bad]):
            if row >= 0:
                self.unfit.setdefault(int(row), f"{place}: {reason}")


def has_twice(entries: Sequence[Any]) -> bool:
    """Of the entries of a map."""
    return len(entries) > 1 and len({entry.f1 for entry in entries}) < len(entries)


Conversion = Callable[[list[Any], ProtoField, Bad], tuple[pa.Array, Bad | None]]
_REASONS = {"enum": "a number that the schema's enum does not have"}


def _conversion(field: ProtoField) -> Conversion:
    if field.logical in _LOGICAL:
        return _LOGICAL[field.logical]
    if field.kind == "enum" and field.value_type.kind == "text":
        return _symbols
    return _WHOLE.get(field.value_type.kind, _plain)


def _plain(values: list[Any], field: ProtoField, gone: Bad) -> tuple[pa.Array, None]:
    return pa.array(values, arrow_type(field.value_type), mask=gone if gone.any() else None), None


def _narrowed(values: list[Any], field: ProtoField, gone: Bad) -> tuple[pa.Array, Bad]:
    """Whole numbers whose type in the schema may be wider."""
    kind = arrow_type(field.value_type)
    numbers = np.array(values, np.int64)
    limits = np.iinfo(kind.to_pandas_dtype())
    bad = (numbers < limits.min) | (numbers > limits.max)
    return pa.array(np.where(bad, 0, numbers), kind, mask=bad | gone), bad


def _epoch(values: list[Any], field: ProtoField, gone: Bad) -> tuple[pa.Array, None]:
    return pa.array(np.array(values, np.int64), mask=gone).cast(arrow_type(field.value_type)), None


def _symbols(values: list[Any], field: ProtoField, gone: Bad) -> tuple[pa.Array, Bad]:
    """Of a number with two names the first."""
    names = dict(reversed([(number, name) for name, number in field.values]))
    found = [names.get(value) for value in values]
    bad = np.array([name is None for name in found], np.bool_)
    return pa.array(found, pa.string(), mask=gone | bad), bad


def _moments(values: list[Any], field: ProtoField, gone: Bad) -> tuple[pa.Array, Bad]:
    seconds, nanos = _parts(values)
    one = field.value_type
    per, least = _UNITS[one.unit], PER_S // _UNITS[one.unit]
    bad = (seconds < FIRST_S) | (seconds > LAST_S) | (nanos < 0) | (nanos >= PER_S) | (nanos % least != 0)
    if one.unit == "ns":
        (low, low_nanos), (high, high_nanos) = divmod(-(1 << 63), PER_S), divmod((1 << 63) - 1, PER_S)
        bad |= (seconds < low) | ((seconds == low) & (nanos < low_nanos))
        bad |= (seconds > high) | ((seconds == high) & (nanos > high_nanos))
    units = np.where(bad, 0, seconds) * per + np.where(bad, 0, nanos) // least
    return pa.array(units, pa.int64(), mask=bad | gone).cast(arrow_type(one)), bad


def _durations(values: list[Any], field: ProtoField, gone: Bad) -> tuple[pa.Array, Bad]:
    seconds, nanos = _parts(values)
    one = field.value_type
    bad = (np.abs(seconds) > LONGEST_S) | (np.abs(nanos) >= PER_S) | (np.sign(seconds) * np.sign(nanos) < 0)
    made: list[Decimal | None] = []
    for at, (second, nano) in enumerate(zip(seconds.tolist(), nanos.tolist(), strict=True)):
        number = second * PER_S + nano
        bad[at] |= abs(number) * 10 ** (one.scale - DURATION_SCALE) >= 10**one.precision
        made.append(None if bad[at] or gone[at] else Decimal(number).scaleb(-DURATION_SCALE, _EXACT))
    return pa.array(made, arrow_type(one)), bad


def _parts(values: list[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Seconds, and nanoseconds."""
    return np.array([value.f1 for value in values], np.int64), np.array([value.f2 for value in values], np.int64)


_LOGICAL: dict[str, Conversion] = {"Timestamp": _moments, "Duration": _durations}
_WHOLE: dict[str, Conversion] = {
    "epoch": _epoch,
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"), _narrowed),
}
