"""Which columns hold every value of which fields. Pure. docs/tables.md has this table; each row of it is a test."""

from __future__ import annotations

import re

from connect_core.rows.types import Type

_WHOLE = ("smallint", "integer", "bigint")
_FIRST_WHOLE = {
    **dict.fromkeys(("int8", "int16", "uint8"), 0),
    **dict.fromkeys(("int32", "uint16"), 1),
    **dict.fromkeys(("int64", "uint32"), 2),
}
"""Of a field's type, which of these is the first that holds it."""
_DIGITS = {"int8": 3, "uint8": 3, "int16": 5, "uint16": 5, "int32": 10, "uint32": 10, "int64": 19, "uint64": 20}
_AS_TEXT = ("text", "uuid", "json", "jsonb", "inet", "cidr", "macaddr", "macaddr8", "citext", "interval")
"""Columns that read texts, each in its own form: another text is refused by the database, and rejected."""
_NUMERIC = re.compile(r"numeric(?:\((\d+),(-?\d+)\))?")
_TIMED = re.compile(r"(time|timestamp)(?:\((\d)\))? (with|without) time zone")
_UNIT_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_LONGEST = 6
"""Digits of a second that PostgreSQL keeps."""


def holds(column: str, one: Type, *, is_enum: bool = False) -> bool:
    """Whether a column of this type, as `format_type` writes it, keeps all values of the field exactly, or refuses
    them."""
    if one.kind == "struct":
        return column in ("json", "jsonb")
    if one.item is not None:
        is_array = column.endswith("[]") and one.item.kind not in ("struct", "list") and "varying(" not in column
        return column in ("json", "jsonb") or (is_array and holds(column.removesuffix("[]"), one.item))
    if one.kind in _DIGITS:
        return column in _WHOLE[_FIRST_WHOLE.get(one.kind, len(_WHOLE)) :] or _is_numeric(column, _DIGITS[one.kind], 0)
    if one.kind == "decimal":
        return _is_numeric(column, one.precision - one.scale, one.scale)
    if one.unit:
        return _keeps_time(column, one)
    if one.kind == "text":
        return is_enum or column in _AS_TEXT or column.startswith("character varying")
    return column in _OTHERS[one.kind]


_OTHERS = {
    "bool": ("boolean",),
    "float32": ("real", "double precision"),
    "float64": ("double precision",),
    "bytes": ("bytea",),
    "date": ("date",),
}


_MADE = {
    **dict.fromkeys(("int8", "int16", "uint8"), "smallint"),
    **dict.fromkeys(("int32", "uint16"), "integer"),
    **dict.fromkeys(("int64", "uint32"), "bigint"),
    "uint64": "numeric(20,0)",
    "float32": "real",
    "float64": "double precision",
    "bool": "boolean",
    "text": "text",
    "bytes": "bytea",
    "date": "date",
}
_MADE_TIMES = {
    "time": "time({}) without time zone",
    "datetime": "timestamp({}) without time zone",
    **dict.fromkeys(("timestamp", "epoch"), "timestamp({}) with time zone"),
}


def column_for(one: Type) -> str | None:
    """The type of a column that is made for a field, as `format_type` writes it: the smallest that `holds` it. None
    where no column does."""
    if one.kind == "struct":
        return "jsonb"
    if one.item is not None:
        within = column_for(one.item)
        return within and ("jsonb" if one.item.kind in ("struct", "list") else f"{within}[]")
    if one.kind == "decimal":
        return f"numeric({one.precision},{one.scale})"
    if one.unit:
        digits = _UNIT_DIGITS[one.unit]
        return _MADE_TIMES[one.kind].format(digits) if digits <= _LONGEST else None
    return _MADE[one.kind]


def _is_numeric(column: str, whole: int, scale: int) -> bool:
    found = _NUMERIC.fullmatch(column)
    if found is None:
        return False
    if found[1] is None:
        return True
    return int(found[2]) >= scale and int(found[1]) - int(found[2]) >= whole


def _keeps_time(column: str, one: Type) -> bool:
    found = _TIMED.fullmatch(column)
    if found is None:
        return False
    kind = "time" if one.kind == "time" else "timestamp"
    zone = "with" if one.kind in ("timestamp", "epoch") else "without"
    digits = _LONGEST if found[2] is None else int(found[2])
    return found[1] == kind and found[3] == zone and _UNIT_DIGITS[one.unit] <= digits
