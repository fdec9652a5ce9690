"""Types of fields -> Arrow types, and back. Pure.

A field's metadata say what the Arrow type does not: `epoch` moments are whole numbers in JSON, not texts.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from connect_core.rows.types import Type

FORM = b"form"
"""The metadata key under which a field has `epoch` where its moments are whole numbers in JSON."""

_PLAIN: Mapping[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "text": pa.string(),
    "bytes": pa.binary(),
    "date": pa.date32(),
}
_BY_ARROW: Mapping[pa.DataType, Type] = {kind: Type(name) for name, kind in _PLAIN.items()}


def arrow_type(one: Type) -> pa.DataType:
    """Every field of a struct, and every item of a list, may be null."""
    if one.kind == "struct":
        return pa.struct([arrow_field(name, of) for name, of in one.fields])
    if one.item is not None:
        return pa.list_(arrow_field("item", one.item))
    if one.kind == "decimal":
        return pa.decimal128(one.precision, one.scale)
    if one.kind == "time":
        return pa.time32(one.unit) if one.unit in ("s", "ms") else pa.time64(one.unit)
    if one.kind in ("timestamp", "epoch"):
        return pa.timestamp(one.unit, "UTC")
    if one.kind == "datetime":
        return pa.timestamp(one.unit)
    return _PLAIN[one.kind]


def arrow_field(name: str, one: Type) -> pa.Field:
    return pa.field(name, arrow_type(one), metadata={FORM: b"epoch"} if one.kind == "epoch" else None)


def shape_of(schema: pa.Schema) -> Type:
    """The rows of which this is the schema: of types that `arrow_type` gives."""
    return Type("struct", fields=tuple((field.name, _type_of(field)) for field in schema))


def _type_of(field: pa.Field) -> Type:
    kind = field.type
    if pa.types.is_struct(kind):
        return Type("struct", fields=tuple((inner.name, _type_of(inner)) for inner in kind))
    if pa.types.is_list(kind):
        return Type("list", item=_type_of(kind.value_field))
    if pa.types.is_decimal(kind):
        return Type("decimal", precision=kind.precision, scale=kind.scale)
    if pa.types.is_time(kind):
        return Type("time", unit=kind.unit)
    if pa.types.is_timestamp(kind):
        epoch = (field.metadata or {}).get(FORM)
        return Type("epoch" if epoch else "timestamp" if kind.tz else "datetime", unit=kind.unit)
    return _BY_ARROW[kind]
