"""Which columns hold every value of which fields. Pure. docs/sql-tables.md has these tables; each row is a test.

A column of SQLite keeps any value of any type, after its affinity has changed it or not: by that it is judged. Of other
databases only types are taken that are the same everywhere."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from connect_core.rows.types import Type
from connect_core.systems.sql.catalog import SqlColumn

_BITS = {
    "int8": 8,
    "int16": 16,
    "int32": 32,
    "int64": 64,
    "uint8": 9,
    "uint16": 17,
    "uint32": 33,
    "uint64": 65,
}
"""Bits of a number with a sign that has all values of a field."""
_HAS = ((sa.SmallInteger, 16), (sa.BigInteger, 64), (sa.Integer, 32))
_DIGITS = 15
"""Significant ones of a decimal that a floating number gives again."""
_KEY_LENGTH = 255
"""Of a text, in the key of a table that is made on a server."""


def holds(column: SqlColumn, one: Type) -> bool:
    """Whether the column keeps all values of the field exactly, or refuses them."""
    return _file_holds(column.type, one) if column.of_file else _server_holds(column.type, one)


def _file_holds(of: sa.types.TypeEngine[Any], one: Type) -> bool:
    if one.kind in _BITS:
        return isinstance(of, sa.Integer) and _BITS[one.kind] <= 64
    if one.kind == "decimal":
        return is_text(of) or (is_decimal(of) and one.precision <= _DIGITS)
    if one.kind == "bool":
        return isinstance(of, sa.Boolean | sa.Integer)
    if one.kind in ("struct", "list"):
        return isinstance(of, sa.JSON) or is_text(of)
    if one.unit == "ns":
        return False
    return _of_kind(of, one.kind)


def _of_kind(of: sa.types.TypeEngine[Any], kind: str) -> bool:
    if kind in ("text", "bytes"):
        return is_text(of) if kind == "text" else isinstance(of, sa.LargeBinary | sa.BLOB)
    if kind in ("float32", "float64"):
        return is_float(of)
    if kind in ("timestamp", "epoch"):
        return isinstance(of, sa.TIMESTAMP)
    return isinstance(of, {"date": sa.Date, "time": sa.Time, "datetime": sa.DateTime}[kind])


def _server_holds(of: sa.types.TypeEngine[Any], one: Type) -> bool:
    if one.kind in _BITS:
        has = next((bits for known, bits in _HAS if isinstance(of, known)), 0)
        return _BITS[one.kind] <= has
    if one.kind == "decimal":
        return is_decimal(of) and _has_digits(of, one)
    if one.kind == "bool":
        return isinstance(of, sa.Boolean)
    if one.kind in ("text", "bytes"):
        return is_plain_text(of) if one.kind == "text" else isinstance(of, sa.LargeBinary)
    if one.kind in ("float32", "float64"):
        return isinstance(of, sa.Double)
    return one.kind == "date" and type(of) in (sa.Date, sa.DATE)


def _has_digits(of: Any, one: Type) -> bool:
    if of.precision is None or of.scale is None:
        return False
    return bool(of.scale >= one.scale and of.precision - of.scale >= one.precision - one.scale)


def is_text(of: sa.types.TypeEngine[Any]) -> bool:
    return isinstance(of, sa.String)


def is_plain_text(of: sa.types.TypeEngine[Any]) -> bool:
    """CHAR fills texts with blanks; of an enum nobody knows what it does with others."""
    return isinstance(of, sa.String) and not isinstance(of, sa.CHAR | sa.NCHAR | sa.Enum)


def is_float(of: sa.types.TypeEngine[Any]) -> bool:
    return isinstance(of, sa.Float)


def is_decimal(of: sa.types.TypeEngine[Any]) -> bool:
    return isinstance(of, sa.Numeric) and not isinstance(of, sa.Float)


def column_for(one: Type, *, in_key: bool, of_file: bool) -> sa.types.TypeEngine[Any] | None:
    """The type of a column that is made for a field. None where none holds it."""
    if one.kind in _BITS:
        return _whole(_BITS[one.kind], of_file=of_file)
    if one.kind == "decimal":
        return sa.Numeric(one.precision, one.scale) if not of_file or one.precision <= _DIGITS else sa.Text()
    if one.kind == "text":
        return sa.String(_KEY_LENGTH) if in_key and not of_file else sa.Text()
    if one.kind in ("struct", "list", "time", "datetime", "timestamp", "epoch"):
        return _MADE_IN_FILES[one.kind] if of_file and one.unit != "ns" else None
    return _MADE[one.kind]


def _whole(bits: int, *, of_file: bool) -> sa.types.TypeEngine[Any] | None:
    if bits > 64:
        return None
    if of_file:
        return sa.INTEGER()
    return sa.SmallInteger() if bits <= 16 else sa.Integer() if bits <= 32 else sa.BigInteger()


_MADE: dict[str, sa.types.TypeEngine[Any]] = {
    "bool": sa.Boolean(),
    "bytes": sa.LargeBinary(),
    "date": sa.Date(),
    "float32": sa.Double(),
    "float64": sa.Double(),
}
_MADE_IN_FILES: dict[str, sa.types.TypeEngine[Any]] = {
    "struct": sa.JSON(),
    "list": sa.JSON(),
    "time": sa.TIME(),
    "datetime": sa.DATETIME(),
    "timestamp": sa.TIMESTAMP(),
    "epoch": sa.TIMESTAMP(),
}
