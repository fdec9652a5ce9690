"""Which columns hold every value of which fields. Pure. docs/mysql.md has this table; each row of it is a test."""

from __future__ import annotations

from connect_core.rows.types import Type
from connect_core.systems.mysql.catalog import MysqlColumn

_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_WHOLE = {f"{sign}int{bits}": (bits, bool(sign)) for sign in ("", "u") for bits in (8, 16, 32, 64)}
"""Of a field's type the bits, and whether it is unsigned."""
_UNIT_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_LONGEST = 6
"""Digits of a second that a column keeps."""
_TIMES = {"time": "time", "datetime": "datetime", "timestamp": "timestamp", "epoch": "timestamp"}
_TEXTS = ("varchar", "char", "tinytext", "text", "mediumtext", "longtext", "enum", "json", "uuid", "inet4", "inet6")
"""Columns that read texts, some each in its own form: another text is refused."""
_BYTES = ("varbinary", "binary", "tinyblob", "blob", "mediumblob", "longblob")
_KEY_LENGTH = 255
"""Of a text, or of bytes, in the key of a table that is made."""


def holds(column: MysqlColumn, one: Type) -> bool:
    """Whether the column keeps all values of the field exactly, or refuses them."""
    if one.kind in _WHOLE:
        return _holds_whole(column, *_WHOLE[one.kind])
    if one.kind == "decimal":
        return _is_decimal(column, one.precision - one.scale, one.scale)
    if one.unit:
        return column.word == _TIMES[one.kind] and _UNIT_DIGITS[one.unit] <= column.digits
    if one.kind in ("struct", "list"):
        return column.word == "longtext" or (column.word == "json" and not _has_decimals(one))
    if one.kind == "bool":
        return column.word == "tinyint" or column.kind == "bit(1)"
    return column.word in _OTHERS[one.kind] and not _rounds(column)


_OTHERS = {
    "float32": ("float", "double"),
    "float64": ("double",),
    "text": _TEXTS,
    "bytes": _BYTES,
    "date": ("date",),
}


def _holds_whole(column: MysqlColumn, bits: int, unsigned: bool) -> bool:
    """A column without a sign refuses what is below zero."""
    highest = 2 ** (bits if unsigned else bits - 1) - 1
    if column.word in _BITS:
        has = _BITS[column.word]
        return bool(highest <= 2 ** (has if column.unsigned else has - 1) - 1)
    return _is_decimal(column, len(str(highest)), 0)


def _is_decimal(column: MysqlColumn, whole: int, scale: int) -> bool:
    return column.word == "decimal" and column.scale >= scale and column.precision - column.scale >= whole


def _rounds(column: MysqlColumn) -> bool:
    """`float(7,2)`, `double(9,3)`."""
    return column.word in ("float", "double") and "," in column.kind


def _has_decimals(one: Type) -> bool:
    """JSON of MySQL keeps numbers with a point as doubles."""
    parts = [part for _, part in one.fields] + ([one.item] if one.item is not None else [])
    return one.kind == "decimal" or any(map(_has_decimals, parts))


_MADE = {
    **{name: f"{word}{' unsigned' * unsigned}" for name, (bits, unsigned) in _WHOLE.items()
       for word, has in _BITS.items() if has == bits},
    "float32": "float",
    "float64": "double",
    "bool": "boolean",
    "text": "longtext",
    "bytes": "longblob",
    "date": "date",
}  # fmt: skip


def column_for(one: Type, *, in_key: bool) -> str | None:
    """The type of a column that is made for a field: the smallest that `holds` it. None where no column does."""
    if in_key and one.kind in ("text", "bytes"):
        texts = f"varchar({_KEY_LENGTH}) COLLATE utf8mb4_bin"
        return texts if one.kind == "text" else f"varbinary({_KEY_LENGTH})"
    if one.kind in ("struct", "list"):
        return None if in_key else "longtext"
    if one.kind == "decimal":
        return f"decimal({one.precision},{one.scale})" if one.scale <= 30 else None
    if one.unit:
        digits = _UNIT_DIGITS[one.unit]
        return f"{_TIMES[one.kind]}({digits})" if digits <= _LONGEST else None
    return _MADE[one.kind]
