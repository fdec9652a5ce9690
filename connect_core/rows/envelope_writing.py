"""Rows -> envelopes, `{"schema": …, "payload": …}`, as the JSON converters of Kafka Connect and RocketMQ Connect read
them with `schemas.enable`. Pure.

The schema is that of the rows: one text for all of them. Only payloads are written row by row, column by column.
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from connect_core.rows.envelope_schemas import DEBEZIUM, FINER, NAMES, UNSIGNED, Flavor
from connect_core.rows.json_faults import inner
from connect_core.rows.json_writing import WrittenRows, written
from connect_core.rows.schema import FORM
from connect_core.sdk.values import Json

_FINER = "finer than a millisecond, which envelopes have no type for (cast it to {}(ms) or text)"
_FAR = "too early or too late for milliseconds in 64 bits"
_PLAIN = {"bool": "boolean", "float": "float", "double": "double", "string": "string", "binary": "bytes"}
_PER_MS = {"us": 10**3, "ns": 10**6}


Names = Flavor | Literal["debezium"]
"""Whose names logical types have."""


def written_envelopes(rows: pa.StructArray, flavor: Flavor) -> WrittenRows:
    """All fields are optional in the schema: any may be missing."""
    plain, unfit = wire_rows(rows, flavor)
    payloads = written(plain)
    places = np.delete(np.arange(len(rows)), list(unfit))
    unfit |= {int(places[row]): reason for row, reason in payloads.unfit}
    schema = {**rows_schema(rows.type, flavor), "optional": False}
    before = f'{{"schema":{compact(schema)},"payload":'.encode()
    values = pc.binary_join_element_wise(pa.scalar(before), payloads.values, pa.scalar(b"}"), pa.scalar(b""))
    return WrittenRows(values, sorted(unfit.items()))


def wire_rows(rows: pa.StructArray, names: Names) -> tuple[pa.StructArray, dict[int, str]]:
    """As JSON has them in payloads; and by row why it has none, these rows left out."""
    wire = _Wire(names)
    plain = wire.struct(rows, "", np.arange(len(rows)))
    if wire.unfit:
        plain = plain.take(pa.array(np.delete(np.arange(len(rows)), list(wire.unfit))))
    return plain, wire.unfit


def rows_schema(of: pa.StructType, names: Names) -> Json:
    """As an envelope has it."""
    return {"type": "struct", "fields": _fields(of, names)}


def compact(schema: Json) -> str:
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def _fields(of: pa.StructType, flavor: Names) -> list[Json]:
    return [{**_schema(field, flavor), "optional": True, "field": field.name} for field in of]


def _schema(field: pa.Field, flavor: Names) -> Json:
    kind = field.type
    if pa.types.is_struct(kind):
        return rows_schema(kind, flavor)
    if pa.types.is_list(kind):
        return {"type": "array", "items": {**_schema(kind.value_field, flavor), "optional": True}}
    if pa.types.is_decimal(kind):
        return _decimal(kind.precision, kind.scale, flavor)
    if pa.types.is_uint64(kind):
        return _decimal(20, 0, flavor)
    if pa.types.is_temporal(kind):
        return {"type": "int64"} if _is_epoch(field) else _time_schema(kind, flavor)
    word = str(kind)
    return {"type": UNSIGNED.get(word) or _PLAIN.get(word, word)}


def _time_schema(kind: pa.DataType, flavor: Names) -> Json:
    if pa.types.is_date(kind):
        return _logical("Date", "int32", flavor)
    if flavor != "debezium" and pa.types.is_time(kind):
        return _logical("Time", "int32", flavor)
    if flavor != "debezium":
        return _logical("Timestamp", "int64", flavor) if kind.tz else {"type": "string"}
    finer = FINER.get(kind.unit, "")
    if pa.types.is_time(kind):
        return _logical(f"{finer}Time", "int64" if finer else "int32", flavor)
    return _logical("ZonedTimestamp", "string", flavor) if kind.tz else _logical(f"{finer}Timestamp", "int64", flavor)


def _logical(name: str, kind: str, flavor: Names) -> Json:
    before = DEBEZIUM if flavor == "debezium" else NAMES[flavor]
    return {"type": kind, "name": f"{before}{name}", "version": 1}


def _decimal(precision: int, scale: int, flavor: Names) -> Json:
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    decimal = _logical("Decimal", "bytes", "kafka" if flavor == "debezium" else flavor)
    return {**decimal, "parameters": parameters}


def _is_epoch(field: pa.Field) -> bool:
    return bool((field.metadata or {}).get(FORM))


class _Wire:
    """The columns as JSON has them in a payload, and by row what it cannot have: the first fault of each."""

    def __init__(self, names: Names) -> None:
        self.unfit: dict[int, str] = {}
        self._debezium = names == "debezium"

    def struct(self, rows: pa.StructArray, place: str, seen: NDArray[np.int64]) -> pa.StructArray:
        made = [
            self._column(column, field, inner(place, field.name), seen)
            for field, column in zip(rows.type, rows.flatten(), strict=True)
        ]
        fields = [
            pa.field(field.name, column.type, metadata=field.metadata)
            for field, column in zip(rows.type, made, strict=True)
        ]
        return pa.StructArray.from_arrays(made, fields=fields, mask=rows.is_null() if rows.null_count else None)

    def _column(self, column: pa.Array, field: pa.Field, place: str, rows: NDArray[np.int64]) -> pa.Array:
        kind = field.type
        rows = np.where(column.is_valid().to_numpy(zero_copy_only=False), rows, -1)
        if pa.types.is_struct(kind):
            return self.struct(column, place, rows)
        if pa.types.is_list(kind):
            return self._list(column, place, rows)
        if pa.types.is_decimal(kind):
            return _unscaled(
                pa.Array.from_buffers(
                    pa.decimal128(kind.precision, 0), len(column), column.buffers(), offset=column.offset
                )
            )
        if pa.types.is_uint64(kind):
            return _unscaled(column)
        if pa.types.is_date(kind):
            return column.view(pa.int32())
        if self._debezium and pa.types.is_temporal(kind):
            return self._moment(column, field, place, rows)
        if pa.types.is_time(kind):
            return self._milliseconds(column, f"{place}: {_FINER.format('time')}", place, rows).cast(pa.int32())
        if pa.types.is_timestamp(kind) and kind.tz and not _is_epoch(field):
            return self._milliseconds(column, f"{place}: {_FINER.format('timestamp')}", place, rows)
        return column

    def _moment(self, column: pa.Array, field: pa.Field, place: str, rows: NDArray[np.int64]) -> pa.Array:
        kind = field.type
        if pa.types.is_timestamp(kind) and (kind.tz or _is_epoch(field)):
            return column
        if kind.unit == "s":
            made = self._milliseconds(column, "", place, rows)
            return made.cast(pa.int32()) if pa.types.is_time(kind) else made
        return column.view(pa.int32() if kind.bit_width == 32 else pa.int64())

    def _list(self, column: pa.Array, place: str, rows: NDArray[np.int64]) -> pa.Array:
        """Also of a slice, whose items are a part of all."""
        offsets = column.offsets
        first, last = offsets[0].as_py(), offsets[-1].as_py()
        items = np.repeat(rows, np.diff(offsets.to_numpy()))
        field = column.type.value_field
        made = self._column(column.values.slice(first, last - first), field, f"{place}[]", items)
        of = pa.list_(pa.field("item", made.type, metadata=field.metadata))
        mask = column.is_null() if column.null_count else None
        return pa.ListArray.from_arrays(pc.subtract(offsets, offsets[0]), made, type=of, mask=mask)

    def _milliseconds(self, column: pa.Array, finer: str, place: str, rows: NDArray[np.int64]) -> pa.Array:
        unit = column.type.unit
        bits = pa.int32() if column.type.bit_width == 32 else pa.int64()
        number = pc.fill_null(column.view(bits).cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        if unit == "s":
            most = ((1 << 63) - 1) // 1000
            bad, reason = (number > most) | (number < -most), f"{place}: {_FAR}"
            number = np.where(bad, 0, number) * 1000
        else:
            per_ms = _PER_MS.get(unit, 1)
            bad, reason = number % per_ms != 0, finer
            number = number // per_ms
        for row in np.unique(rows[bad]):
            if row >= 0:
                self.unfit.setdefault(int(row), reason)
        return pa.array(number, pa.int64(), mask=column.is_null().to_numpy(zero_copy_only=False))


def _unscaled(column: pa.Array) -> pa.Array:
    """Whole numbers as base64 of their two's complement, in as few bytes as Java takes."""
    return pa.array([None if value is None else _base64(int(value)) for value in column.to_pylist()], pa.string())


def _base64(number: int) -> str:
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return b2a_base64(number.to_bytes(size, "big", signed=True), newline=False).decode()
