"""Values of PostgreSQL's text form -> JSON, each as Debezium writes it by default. Pure. docs/change-streams.md has
this table; each row of it is a test.

https://debezium.io/documentation/reference/stable/connectors/postgresql.html, "Data type mappings"
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from json.encoder import encode_basestring as quoted
from typing import NamedTuple

from connect_core.systems.tables.change_events import UnfitForEvent

ToJson = Callable[[str], str]
"""Takes the text of a value. Raises UnfitForEvent for one that JSON cannot have."""

_EPOCH = date(1970, 1, 1).toordinal()
_DAY_US = 86_400_000_000
_MOMENT = re.compile(r"(\d{4,})-(\d\d)-(\d\d)(?: (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?( BC)?")
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(?:([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?)?")
_PRECISE = 3
"""Up to so many digits of a second, times are in milliseconds; with more, in microseconds."""


class ColumnType(NamedTuple):
    """What a column is made of: a type of the server by its oid, or a text; or a list of these."""

    oid: int
    modifier: int
    is_list: bool = False


def column_type(kind: int, modifier: int, name: str = "") -> ColumnType:
    """By a type's oid and modifier; `name` is that of a type that is none of the server's own: of a domain what it is
    made of, of an array `_` and its element. What is not known is a text."""
    oid = _BY_NAME.get(name, kind) if name else kind
    own = modifier if oid == kind else -1
    if element := _ELEMENTS.get(oid):
        return ColumnType(element, own, is_list=True)
    known = oid if oid in _PLAIN or oid in _BY_MODIFIER else oid if oid in NAMED else TEXT
    return ColumnType(known, own, is_list=name.startswith("_") and oid == kind)


def to_json(of: ColumnType) -> ToJson:
    if of.is_list:
        return _listed(to_json(of._replace(is_list=False)))
    return _BY_MODIFIER[of.oid](of.modifier) if of.oid in _BY_MODIFIER else _PLAIN.get(of.oid, quoted)


def scale_of(modifier: int) -> int:
    """Of a `numeric`; below zero where it has none, or one below zero."""
    return (((modifier - 4) & 0x7FF) ^ 0x400) - 0x400 if modifier >= 0 else -1


def _boolean(text: str) -> str:
    return "true" if text == "t" else "false"


def _number(text: str) -> str:
    return text


def _float(text: str) -> str:
    return quoted(text) if text[-1] in "Nyn" else text  # NaN, Infinity


def _bytes(text: str) -> str:
    return _base64(bytes.fromhex(text[2:]))


def _base64(of: bytes) -> str:
    return f'"{b2a_base64(of, newline=False).decode()}"'


def _decimal(modifier: int) -> ToJson:
    """With a scale: base64 of the unscaled number, as Kafka Connect's Decimal. Without one, or with one below zero: its
    text."""
    return _unscaled if scale_of(modifier) >= 0 else quoted


def _unscaled(text: str) -> str:
    """The server writes as many digits behind the point as the scale has."""
    try:
        number = int(text.replace(".", "", 1))
    except ValueError:
        raise UnfitForEvent("is no number that an event can have") from None
    length = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return _base64(number.to_bytes(length, "big", signed=True))


def _date(text: str) -> str:
    return str(_days(text))


def _days(text: str) -> int:
    if len(text) == 10 and text[4] == "-":
        return date.fromisoformat(text).toordinal() - _EPOCH
    return _day_of(_parts(text))


def is_in_ms(modifier: int) -> bool:
    """Of a time or a timestamp without a zone; others are in microseconds."""
    return 0 <= modifier <= _PRECISE


def _timestamp(modifier: int) -> ToJson:
    in_ms = is_in_ms(modifier)

    def written(text: str) -> str:
        if len(text) >= 19 and text[10] == " " and text[-1] != "C":
            micros = _days(text[:10]) * _DAY_US + _micros(text[11:])
        else:
            parts = _parts(text)
            clock = f"{parts[4]}:{parts[5]}:{parts[6]}" + (f".{parts[7]}" if parts[7] else "")
            micros = _day_of(parts) * _DAY_US + _micros(clock)
        return str(micros // 1000 if in_ms else micros)

    return written


def _time(modifier: int) -> ToJson:
    in_ms = is_in_ms(modifier)
    return lambda text: str(_micros(text) // 1000 if in_ms else _micros(text))


def _micros(text: str) -> int:
    """Of HH:MM:SS, with up to six digits behind."""
    seconds = int(text[0:2]) * 3600 + int(text[3:5]) * 60 + int(text[6:8])
    return seconds * 1_000_000 + (int(text[9:].ljust(6, "0")) if len(text) > 8 else 0)


def _zoned_timestamp(text: str) -> str:
    """The session's time zone is UTC."""
    if len(text) < 22 or text[10] != " " or not text.endswith("+00"):
        raise UnfitForEvent("is no moment that an event can have")
    return f'"{text[:10]}T{text[11:-3]}Z"'


def _zoned_time(text: str) -> str:
    found = _TIME.fullmatch(text)
    if not found:
        raise UnfitForEvent("is no time that an event can have")
    hour, minute, second, fraction, sign, *zone = found.groups()
    east = sum(int(part or 0) * size for part, size in zip(zone, (3600, 60, 1), strict=True))
    at = int(hour) * 3600 + int(minute) * 60 + int(second) - (east if sign == "+" else -east)
    at %= 86_400
    behind = f".{fraction}" if fraction else ""
    return f'"{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}{behind}Z"'


def _parts(text: str) -> tuple[str | None, ...]:
    found = _MOMENT.fullmatch(text)
    if not found:
        raise UnfitForEvent("is no moment that an event can have")
    return (text, *found.groups())


def _day_of(parts: tuple[str | None, ...]) -> int:
    """Days since 1970 of a date of any year, in the Gregorian calendar also before there was one."""
    year = int(parts[1] or 0)
    month, day = int(parts[2] or 0), int(parts[3] or 0)
    year = 1 - year if parts[8] else year
    cycles, within = divmod(year, 400)
    return cycles * 146_097 + date(within + 400, month, day).toordinal() - date(400, 1, 1).toordinal() + _YEAR_0


_YEAR_0 = date(400, 1, 1).toordinal() - 146_097 - _EPOCH
"""The day of 0000-01-01."""


def _listed(element: ToJson) -> ToJson:
    """Of an array, also of more than one dimension. https://www.postgresql.org/docs/15/arrays.html#ARRAYS-IO"""

    def written(text: str) -> str:
        begin = text.index("{")  # behind bounds that are not 1
        return "".join(_elements(text[begin:], element))

    return written


_TOKEN = re.compile(r'[{},]|"((?:[^"\\]|\\.)*)"|([^{},"]+)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_MARKS = {"{": "[", "}": "]", ",": ","}


def _elements(text: str, element: ToJson) -> Iterator[str]:
    for found in _TOKEN.finditer(text):
        if found[1] is not None:
            yield element(_ESCAPED.sub(r"\1", found[1]))
        elif found[2] is not None:
            yield "null" if found[2] == "NULL" else element(found[2])
        else:
            yield _MARKS[found[0]]


BOOL, BYTEA, INT8, INT2, INT4, TEXT, OID, FLOAT4, FLOAT8 = 16, 17, 20, 21, 23, 25, 26, 700, 701
DATE, TIME, TIMESTAMP, TIMESTAMPTZ, TIMETZ, NUMERIC = 1082, 1083, 1114, 1184, 1266, 1700
JSON, XML, UUID, JSONB = 114, 142, 2950, 3802
"""Oids of pg_type.dat, which never change."""
NAMED = (JSON, XML, UUID, JSONB)
"""Texts that Debezium has a name for."""
_PLAIN: Mapping[int, ToJson] = {
    BOOL: _boolean,
    BYTEA: _bytes,
    DATE: _date,
    TIMESTAMPTZ: _zoned_timestamp,
    TIMETZ: _zoned_time,
    **dict.fromkeys((INT2, INT4, INT8, OID), _number),
    **dict.fromkeys((FLOAT4, FLOAT8), _float),
}
_BY_MODIFIER: Mapping[int, Callable[[int], ToJson]] = {
    NUMERIC: _decimal,
    TIME: _time,
    TIMESTAMP: _timestamp,
}
_OF_TEXTS = (1009, 1015, 1014, 1002, 1003, 2951, 1041, 651, 1040, 199, 3807, 1561, 1563, 1187, 143)
_ELEMENTS: Mapping[int, int] = {
    **dict(zip((1000, 1001, 1016, 1005, 1007), (BOOL, BYTEA, INT8, INT2, INT4), strict=True)),
    **dict(zip((1028, 1021, 1022, 1231), (OID, FLOAT4, FLOAT8, NUMERIC), strict=True)),
    **dict(zip((1182, 1183, 1115, 1185, 1270), (DATE, TIME, TIMESTAMP, TIMESTAMPTZ, TIMETZ), strict=True)),
    **dict.fromkeys(_OF_TEXTS, TEXT),
}
"""Of arrays."""
_BY_NAME: Mapping[str, int] = {
    **dict(zip(("bool", "bytea", "int8", "int2", "int4"), (BOOL, BYTEA, INT8, INT2, INT4), strict=True)),
    **dict(zip(("oid", "float4", "float8", "numeric"), (OID, FLOAT4, FLOAT8, NUMERIC), strict=True)),
    **dict(zip(("date", "time", "timestamp"), (DATE, TIME, TIMESTAMP), strict=True)),
    **dict(zip(("timestamptz", "timetz"), (TIMESTAMPTZ, TIMETZ), strict=True)),
}
"""What a domain is made of."""
