"""JSON as MySQL keeps it in binary, and what the server itself shows of it. Pure.

https://dev.mysql.com/doc/dev/mysql-server/latest/json__binary_8h.html has the form; how numbers, texts and values of
other types are written is that of `Json_wrapper::to_string`.
"""

from __future__ import annotations

import struct
from binascii import b2a_base64
from collections.abc import Iterator, Mapping
from decimal import Decimal
from json.encoder import encode_basestring as quoted
from typing import NamedTuple

from connect_core.systems.mysql.binlog.decimals import DecimalForm

_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY, _LITERAL = 0, 1, 2, 3, 4
_DOUBLE, _STRING, _OPAQUE = 11, 12, 15
_NUMBERS: Mapping[int, tuple[int, bool]] = {
    5: (2, True),
    6: (2, False),
    7: (4, True),
    8: (4, False),
    9: (8, True),
    10: (8, False),
}
"""Of whole numbers how many bytes they have, and whether a sign."""
_LITERALS = ("null", "true", "false")
_TIMESTAMP, _DATE, _TIME, _DATETIME, _DECIMAL, _VAR_STRING = 7, 10, 11, 12, 246, 253
"""Types of columns that a value may have."""
_SMALL_DIGITS, _LARGE_DIGITS = -14, 15
"""Where the point of a number may be before it is written with an exponent."""
_LINE = 57
"""Bytes in a line of base64 of the server."""


class DamagedJson(ValueError):
    """What is there is no JSON."""


class _Width(NamedTuple):
    """Of counts and places, which small documents have in two bytes and large ones in four."""

    large: bool

    @property
    def size(self) -> int:
        return 4 if self.large else 2

    def at(self, data: bytes, place: int) -> int:
        return _number(data, place, self.size)


def json_text(data: bytes) -> str:
    """As SELECT shows it. Raises DamagedJson."""
    if not data:  # what the server writes where a value was required and none was given
        return "null"
    try:
        return _value(data[0], data[1:])
    except (IndexError, ValueError, struct.error, RecursionError) as error:
        raise DamagedJson(str(error)) from None


def _number(data: bytes, at: int, width: int, *, signed: bool = False) -> int:
    piece = data[at : at + width]
    if len(piece) != width:
        raise DamagedJson("it is cut off")
    return int.from_bytes(piece, "little", signed=signed)


def _value(kind: int, data: bytes) -> str:
    """`data` begins with it."""
    if kind in (_SMALL_OBJECT, _LARGE_OBJECT):
        return "{" + ", ".join(_members(data, _Width(kind == _LARGE_OBJECT))) + "}"
    if kind in (_SMALL_ARRAY, _LARGE_ARRAY):
        return "[" + ", ".join(_elements(data, _Width(kind == _LARGE_ARRAY))) + "]"
    if kind in _NUMBERS:
        width, signed = _NUMBERS[kind]
        return str(_number(data, 0, width, signed=signed))
    return _scalar(kind, data)


def _scalar(kind: int, data: bytes) -> str:
    if kind == _LITERAL:
        return _LITERALS[data[0]]
    if kind == _DOUBLE:
        return double_text(struct.unpack_from("<d", data)[0])
    if kind == _STRING:
        return _text(_sized(data, 0))
    if kind == _OPAQUE:
        return _opaque(data[0], _sized(data, 1))
    raise DamagedJson(f"it has a value of kind {kind}")


def _elements(data: bytes, width: _Width) -> Iterator[str]:
    count, data = _whole(data, width)
    for number in range(count):
        yield _entry(data, 2 * width.size + number * (1 + width.size), width)


def _members(data: bytes, width: _Width) -> Iterator[str]:
    count, data = _whole(data, width)
    keys = 2 * width.size
    values = keys + count * (width.size + 2)
    for number in range(count):
        at = keys + number * (width.size + 2)
        begin = width.at(data, at)
        key = _piece(data, begin, _number(data, at + width.size, 2))
        yield f"{_text(key)}: {_entry(data, values + number * (1 + width.size), width)}"


def _whole(data: bytes, width: _Width) -> tuple[int, bytes]:
    """How many values it has, and its bytes: places are counted from where they begin."""
    return width.at(data, 0), _piece(data, 0, width.at(data, width.size))


def _entry(data: bytes, at: int, width: _Width) -> str:
    """What is small is in the entry itself; else that says where it is."""
    kind = data[at]
    if kind == _LITERAL or (kind in _NUMBERS and _NUMBERS[kind][0] <= width.size):
        return _value(kind, data[at + 1 : at + 1 + width.size])
    begin = width.at(data, at + 1)
    if begin <= at:  # what is damaged would go round
        raise DamagedJson("a place in it leads back")
    return _value(kind, data[begin:])


def _sized(data: bytes, at: int) -> bytes:
    """Its length is before it, seven bits a byte."""
    size = shift = 0
    while True:
        size |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            return _piece(data, at, size)


def _piece(data: bytes, at: int, size: int) -> bytes:
    piece = data[at : at + size]
    if len(piece) != size:
        raise DamagedJson("it is cut off")
    return piece


def _text(data: bytes) -> str:
    return quoted(data.decode())


def double_text(number: float) -> str:
    """The fewest digits that mean this number, as the server writes them."""
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    if not isinstance(exponent, int):
        raise DamagedJson("it has a number that is none")
    text = "".join(map(str, digits))
    minus, point = "-" if sign else "", len(text) + exponent
    if not number:
        return f"{minus}0.0"
    if point < _SMALL_DIGITS or (point > _LARGE_DIGITS and len(text) <= point):
        behind = f".{text[1:]}" if len(text) > 1 else ""
        return f"{minus}{text[0]}{behind}e{point - 1}"
    if point <= 0:
        return f"{minus}0.{'0' * -point}{text}"
    return f"{minus}{text[:point].ljust(point, '0')}.{text[point:] or '0'}"


def _opaque(kind: int, data: bytes) -> str:
    """A value of another type of column."""
    if kind == _DECIMAL:
        return _decimal(data)
    if kind in (_DATE, _DATETIME, _TIMESTAMP):
        return f'"{_moment(_number(data, 0, 8, signed=True), has_time=kind != _DATE)}"'
    if kind == _TIME:
        return f'"{_time(_number(data, 0, 8, signed=True))}"'
    if kind == _VAR_STRING:
        return _text(data)
    lines = (b2a_base64(data[at : at + _LINE], newline=False).decode() for at in range(0, len(data), _LINE))
    return quoted(f"base64:type{kind}:" + "\n".join(lines))


def _moment(packed: int, *, has_time: bool) -> str:
    day, clock = packed >> 41, packed >> 24
    text = f"{(day >> 5) // 13:04}-{(day >> 5) % 13:02}-{day & 31:02}"
    return f"{text} {clock >> 12 & 31:02}:{clock >> 6 & 63:02}:{clock & 63:02}{_micros(packed)}" if has_time else text


def _time(packed: int) -> str:
    sign, packed = ("-", -packed) if packed < 0 else ("", packed)
    clock = packed >> 24
    return f"{sign}{clock >> 12 & 0x3FF:02}:{clock >> 6 & 63:02}:{clock & 63:02}{_micros(packed)}"


def _micros(packed: int) -> str:
    return f".{packed & 0xFFFFFF:06}"


def _decimal(data: bytes) -> str:
    """How many digits it has, how many of them behind the point, and then as a column has it."""
    precision, scale = data[0], data[1]
    number = DecimalForm(precision, scale).number(data[2:])
    text = f"{abs(number):0{scale + 1}}"
    whole, behind = (text[:-scale], f".{text[-scale:]}") if scale else (text, "")
    return f"{'-' if number < 0 else ''}{whole}{behind}"
