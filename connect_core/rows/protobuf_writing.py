"""Rows -> messages of Protobuf. Pure.

Each column becomes a list of what a message has for it, and each row is encoded by itself: fields by their numbers,
entries of a map and items of a list as the row has them, so equal rows are equal bytes. Whatever a message cannot hold
exactly is named by its row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from connect_core.rows.json_faults import inner
from connect_core.rows.json_writing import WrittenRows
from connect_core.rows.protobuf_columns import FIRST_S, LAST_S, LONGEST_S, PER_S
from connect_core.rows.protobuf_parts import ProtoField
from connect_core.rows.protobuf_wire import attribute, wire_class

_PER_UNIT = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_MISSING = {
    "implicit": "missing, and the schema does not tell that from its default",
    "repeated": "missing, and the schema does not tell that from an empty list",
    "required": "missing, and the schema says that it is required",
    "entry": "missing, and an entry of a map has key and value",
}


class _Misses(ValueError):
    """Why a value is none of its field."""


class ProtobufWriter:
    """`before` stands before each value, and says which message it is."""

    def __init__(self, fields: tuple[ProtoField, ...], before: bytes) -> None:
        self._fields, self._before = fields, before
        self._message = wire_class(fields)

    def written(self, rows: pa.StructArray) -> WrittenRows:
        columns = _Columns()
        values = columns.messages(rows, self._fields, "", range(len(rows)))
        bodies = [
            self._before + self._message(**value).SerializeToString(deterministic=True)
            for row, value in enumerate(values)
            if row not in columns.unfit
        ]
        return WrittenRows(pa.array(bodies, pa.binary()), sorted(columns.unfit.items()))


class _Columns:
    """By row what the message does not hold: the first fault of each."""

    def __init__(self) -> None:
        self.unfit: dict[int, str] = {}

    def messages(
        self, column: pa.StructArray, fields: tuple[ProtoField, ...], place: str, rows: Sequence[int]
    ) -> list[dict[str, Any]]:
        """`rows`: the row of each, -1 where nobody sees it."""
        found = dict(zip((field.name for field in column.type), column.flatten(), strict=True))
        columns = [self._of(found[field.name], field, inner(place, field.name), rows) for field in fields]
        self._check_oneofs(fields, columns, place, rows)
        names = [attribute(field) for field in fields]
        return [dict(zip(names, one, strict=True)) for one in zip(*columns, strict=True)]

    def _check_oneofs(
        self, fields: tuple[ProtoField, ...], columns: list[list[Any]], place: str, rows: Sequence[int]
    ) -> None:
        for name in sorted({field.oneof for field in fields if field.oneof}):
            members = [values for field, values in zip(fields, columns, strict=True) if field.oneof == name]
            for row, given in zip(rows, zip(*members, strict=True), strict=True):
                if sum(value is not None for value in given) > 1:
                    self._note(row, inner(place, name), "more than one member of a oneof is given")

    def _of(self, column: pa.Array, field: ProtoField, place: str, rows: Sequence[int]) -> list[Any]:
        missing = column.is_null().to_pylist() if column.null_count else [False] * len(column)
        if field.presence != "explicit" and column.null_count:
            for row, gone in zip(rows, missing, strict=True):
                if gone:
                    self._note(row, place, _MISSING[field.presence])
        seen = [-1 if gone else row for gone, row in zip(missing, rows, strict=True)]
        if field.presence == "repeated":
            return self._lists(column, field, place, missing, seen)
        values = self._values(column, field, place, seen)
        return [None if gone else value for gone, value in zip(missing, values, strict=True)]

    def _lists(
        self, column: pa.Array, field: ProtoField, place: str, missing: Sequence[bool], seen: Sequence[int]
    ) -> list[Any]:
        """Also of a slice, whose items are a part of all."""
        offsets = column.offsets.to_numpy()
        first, last = int(offsets[0]), int(offsets[-1])
        rows = np.repeat(np.array(seen, np.int64), np.diff(offsets)).tolist()
        values = column.values.slice(first, last - first)
        if values.null_count:
            for row, gone in zip(rows, values.is_null().to_pylist(), strict=True):
                if gone:
                    self._note(row, f"{place}[]", "missing, and a list of the schema has a value at each place")
        items = self._values(values, field, f"{place}[]", rows)
        lists = [
            None if gone else items[begin - first : end - first]
            for gone, begin, end in zip(missing, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        ]
        if field.is_map:
            for row, entries in zip(seen, lists, strict=True):
                if entries and len({entry["f1"] for entry in entries}) < len(entries):
                    self._note(row, place, "a key twice")
        return lists

    def _values(self, column: pa.Array, field: ProtoField, place: str, rows: Sequence[int]) -> list[Any]:
        """What is missing is noted already."""
        if field.value_type.kind == "struct":
            return self.messages(column, field.fields, place, rows)
        values, convert = _plain(column, field)
        made = values if convert is None else self._converted(values, convert, place, rows)
        return [None if one is None else {"f1": one} for one in made] if field.logical == "wrapper" else made

    def _converted(
        self, values: Iterable[Any], convert: Callable[[Any], Any], place: str, rows: Sequence[int]
    ) -> list[Any]:
        made: list[Any] = []
        for value, row in zip(values, rows, strict=True):
            try:
                made.append(None if value is None else convert(value))
            except _Misses as why:
                made.append(None)
                self._note(row, place, str(why))
        return made

    def _note(self, row: int, place: str, reason: str) -> None:
        if row >= 0:
            self.unfit.setdefault(row, f"{place}: {reason}")


def _plain(column: pa.Array, field: ProtoField) -> tuple[list[Any], Callable[[Any], Any] | None]:
    """Values, and what is done with each of them that is there."""
    if pa.types.is_timestamp(column.type):
        numbers = column.view(pa.int64()).to_pylist()
        return numbers, _moment(_PER_UNIT[column.type.unit]) if field.logical == "Timestamp" else None
    if field.logical == "Duration":
        return column.to_pylist(), _duration
    if field.kind == "enum":
        return column.to_pylist(), _number(dict(field.values), closed=field.closed)
    return column.to_pylist(), None


def _moment(unit: int) -> Callable[[int], dict[str, int]]:
    def convert(number: int) -> dict[str, int]:
        seconds, nanos = divmod(number * unit, PER_S)
        if not FIRST_S <= seconds <= LAST_S:
            raise _Misses("too early or too late for a Timestamp, which has the years 1 to 9999")
        return {"f1": seconds, "f2": nanos}

    return convert


def _duration(value: Decimal) -> dict[str, int]:
    number = int(value.scaleb(9))
    seconds, nanos = divmod(abs(number), PER_S)
    if (seconds, nanos) > (LONGEST_S, 0):
        raise _Misses("too long for a Duration")
    sign = -1 if number < 0 else 1
    return {"f1": sign * seconds, "f2": sign * nanos}


def _number(values: dict[str, int], *, closed: bool) -> Callable[[Any], int]:
    numbers = frozenset(values.values())

    def convert(value: Any) -> int:
        number = values.get(value) if isinstance(value, str) else value
        if number is None or (closed and number not in numbers):
            raise _Misses("nothing that the schema's enum has")
        return int(number)

    return convert
