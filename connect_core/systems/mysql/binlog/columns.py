"""Columns as the log has them: how many bytes a value takes, and what of JSON it becomes, as Debezium writes it by
default. Pure. docs/mysql-changes.md has this table; each row of it is a test.

https://debezium.io/documentation/reference/stable/connectors/mysql.html, "Data type mappings"
"""

from __future__ import annotations

import struct
from binascii import b2a_base64
from collections.abc import Callable, Mapping
from datetime import date
from json.encoder import encode_basestring as quoted
from typing import NamedTuple

import numpy as np

from connect_core.sdk.values import Json
from connect_core.systems.mysql.binlog.charsets import decoder
from connect_core.systems.mysql.binlog.decimals import DecimalForm
from connect_core.systems.mysql.binlog.json_binary import DamagedJson, json_text
from connect_core.systems.tables.change_events import UnfitForEvent

End = Callable[[bytes, int], int]
"""Where the value ends that begins there."""
ToJson = Callable[[bytes], str]
"""Raises UnfitForEvent for a value that an event cannot have."""

TINY, SHORT, LONG, FLOAT, DOUBLE, LONGLONG, INT24, DATE, YEAR = 1, 2, 3, 4, 5, 8, 9, 10, 13
VARCHAR, BIT, TIMESTAMP2, DATETIME2, TIME2, JSON, NEWDECIMAL = 15, 16, 17, 18, 19, 245, 246
ENUM, SET, BLOB, VAR_STRING, STRING, GEOMETRY = 247, 248, 252, 253, 254, 255
TEXTS = frozenset((VARCHAR, VAR_STRING, STRING, BLOB))
NUMBERS = frozenset((TINY, SHORT, LONG, FLOAT, DOUBLE, LONGLONG, INT24, YEAR, NEWDECIMAL))
"""Those of which the log says whether they have a sign."""
_META = {
    **dict.fromkeys((FLOAT, DOUBLE, BLOB, GEOMETRY, JSON, TIMESTAMP2, DATETIME2, TIME2, 242, 140), 1),
    **dict.fromkeys((VARCHAR, BIT, NEWDECIMAL, VAR_STRING, STRING, ENUM, SET, 141), 2),
}
_EPOCH = date(1970, 1, 1).toordinal()
_WHOLE = {TINY: 1, SHORT: 2, INT24: 3, LONG: 4, LONGLONG: 8}
_MS_DIGITS = 3


class LoggedField(NamedTuple):
    name: str
    kind: int
    meta: bytes
    unsigned: bool = False
    charset: str = ""
    labels: tuple[str, ...] = ()
    """Of an enum or a set."""


class FieldForm(NamedTuple):
    end: End
    to_json: ToJson
    schema: Json


def meta_bytes(kind: int) -> int:
    return _META.get(kind, 0)


def real_kind(kind: int, meta: bytes) -> int:
    """Enums and sets are logged as strings."""
    return meta[0] if kind == STRING and meta[0] in (ENUM, SET) else kind


def form_of(column: LoggedField) -> FieldForm | None:
    """None of a type that is not known, or of another age."""
    made = _FORMS.get(column.kind)
    return made(column) if made else None


def _named(kind: str, name: str, **more: Json) -> Json:
    return {"type": kind, "name": f"io.debezium.{name}", "version": 1, **more}


def _fixed(width: int) -> End:
    return lambda data, at: at + width


def _prefixed(width: int) -> End:
    return lambda data, at: at + width + int.from_bytes(data[at : at + width], "little")


def _base64(of: bytes) -> str:
    return f'"{b2a_base64(of, newline=False).decode()}"'


def _whole(column: LoggedField) -> FieldForm:
    width, signed = _WHOLE[column.kind], not column.unsigned
    kind = {1: "int16", 2: "int16" if signed else "int32", 3: "int32", 4: "int32" if signed else "int64", 8: "int64"}

    def written(raw: bytes) -> str:
        return str(int.from_bytes(raw, "little", signed=signed))

    def unsigned_64(raw: bytes) -> str:
        if raw[7] & 0x80:
            raise UnfitForEvent("is above 9223372036854775807, the largest number of an event")
        return written(raw)

    fits = width < 8 or signed
    return FieldForm(_fixed(width), written if fits else unsigned_64, {"type": kind[width]})


def _float(column: LoggedField) -> FieldForm:
    return FieldForm(_fixed(4), lambda raw: str(np.frombuffer(raw, "<f4")[0]), {"type": "float"})


def _double(column: LoggedField) -> FieldForm:
    return FieldForm(_fixed(8), lambda raw: repr(struct.unpack("<d", raw)[0]), {"type": "double"})


def _decimal(column: LoggedField) -> FieldForm:
    precision, scale = column.meta
    form = DecimalForm(precision, scale)

    def written(raw: bytes) -> str:
        number = form.number(raw)
        length = (number if number >= 0 else ~number).bit_length() // 8 + 1
        return _base64(number.to_bytes(length, "big", signed=True))

    digits = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    name = "org.apache.kafka.connect.data.Decimal"
    schema: Json = {"type": "bytes", "name": name, "version": 1, "parameters": digits}
    return FieldForm(_fixed(form.bytes), written, schema)


def _date(column: LoggedField) -> FieldForm:
    def written(raw: bytes) -> str:
        number = int.from_bytes(raw, "little")
        return str(_days(number >> 9, number >> 5 & 15, number & 31))

    return FieldForm(_fixed(3), written, _named("int32", "time.Date"))


def _days(year: int, month: int, day: int) -> int:
    try:
        return date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        raise UnfitForEvent("is no day that there is, such as 0000-00-00") from None


def _year(column: LoggedField) -> FieldForm:
    return FieldForm(_fixed(1), lambda raw: str(raw[0] + 1900 if raw[0] else 0), _named("int32", "time.Year"))


def _micros(raw: bytes, digits: int) -> int:
    """Of what is behind whole seconds."""
    return int.from_bytes(raw, "big") * (1, 10_000, 100, 1)[(digits + 1) // 2]


def _time(column: LoggedField) -> FieldForm:
    """Counted from an offset, so that bytes are in the order of times; may be negative, and beyond a day."""
    digits = column.meta[0]
    width = 3 + (digits + 1) // 2

    def written(raw: bytes) -> str:
        packed = int.from_bytes(raw, "big") - (0x800000 << 8 * (width - 3))
        sign, packed = (-1, -packed) if packed < 0 else (1, packed)
        clock, part = packed >> 8 * (width - 3), packed & ((1 << 8 * (width - 3)) - 1)
        seconds = (clock >> 12 & 0x3FF) * 3600 + (clock >> 6 & 63) * 60 + (clock & 63)
        micros = _micros(part.to_bytes(width - 3, "big"), digits)
        return str(sign * (seconds * 1_000_000 + micros))

    return FieldForm(_fixed(width), written, _named("int64", "time.MicroTime"))


def _datetime(column: LoggedField) -> FieldForm:
    digits = column.meta[0]
    in_ms = digits <= _MS_DIGITS

    def written(raw: bytes) -> str:
        packed = int.from_bytes(raw[:5], "big") - 0x8000000000
        day, clock = packed >> 17, packed & 0x1FFFF
        days = _days((day >> 5) // 13, (day >> 5) % 13, day & 31)
        seconds = days * 86_400 + (clock >> 12) * 3600 + (clock >> 6 & 63) * 60 + (clock & 63)
        micros = seconds * 1_000_000 + _micros(raw[5:], digits)
        return str(micros // 1000 if in_ms else micros)

    schema = _named("int64", "time.Timestamp" if in_ms else "time.MicroTimestamp")
    return FieldForm(_fixed(5 + (digits + 1) // 2), written, schema)


def _timestamp(column: LoggedField) -> FieldForm:
    digits = column.meta[0]

    def written(raw: bytes) -> str:
        seconds = int.from_bytes(raw[:4], "big")
        if not seconds:
            raise UnfitForEvent("is no moment that there is: 0000-00-00 00:00:00")
        days, clock = divmod(seconds, 86_400)
        micros = f".{_micros(raw[4:], digits):06}".rstrip("0").rstrip(".")
        day = date.fromordinal(days + _EPOCH).isoformat()
        return f'"{day}T{clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}{micros}Z"'

    return FieldForm(_fixed(4 + (digits + 1) // 2), written, _named("string", "time.ZonedTimestamp"))


def _bit(column: LoggedField) -> FieldForm:
    bits = column.meta[1] * 8 + column.meta[0]
    if bits == 1:
        return FieldForm(_fixed(1), lambda raw: "true" if raw[0] else "false", {"type": "boolean"})
    parameters: Json = {"length": str(bits)}
    schema = _named("bytes", "data.Bits", parameters=parameters)
    return FieldForm(_fixed((bits + 7) // 8), lambda raw: _base64(raw[::-1]), schema)


def _text(column: LoggedField) -> FieldForm:
    """A string of bytes is padded to its length: the log has no zeros at its end."""
    length, padded = int.from_bytes(column.meta, "little"), column.kind == STRING
    if padded:
        length = column.meta[1] | ((column.meta[0] & 0x30) ^ 0x30) << 4
    prefix = 1 if length <= 255 else 2
    return _of_bytes(column, prefix, length if padded else 0)


def _blob(column: LoggedField) -> FieldForm:
    return _of_bytes(column, column.meta[0])


def _of_bytes(column: LoggedField, prefix: int, length: int = 0) -> FieldForm:
    if column.charset == "binary":

        def padded(raw: bytes) -> str:
            return _base64(raw[prefix:].ljust(length, b"\0"))

        return FieldForm(_prefixed(prefix), padded, {"type": "bytes"})
    decoded = decoder(column.charset)

    def text(raw: bytes) -> str:
        if decoded is None:
            raise UnfitForEvent(f"is in the character set {column.charset}, which is not known")
        try:
            return quoted(decoded(raw[prefix:]))
        except ValueError:
            raise UnfitForEvent(f"is no text in its character set {column.charset}") from None

    return FieldForm(_prefixed(prefix), text, {"type": "string"})


def _enum(column: LoggedField) -> FieldForm:
    labels = ("", *column.labels)

    def written(raw: bytes) -> str:
        number = int.from_bytes(raw, "little")
        if number >= len(labels):
            raise UnfitForEvent("is none of the values of its enum")
        return quoted(labels[number])

    allowed: Json = {"allowed": ",".join(column.labels)}
    return FieldForm(_fixed(column.meta[1]), written, _named("string", "data.Enum", parameters=allowed))


def _set(column: LoggedField) -> FieldForm:
    def written(raw: bytes) -> str:
        bits = int.from_bytes(raw, "little")
        return quoted(",".join(label for place, label in enumerate(column.labels) if bits >> place & 1))

    allowed: Json = {"allowed": ",".join(column.labels)}
    return FieldForm(_fixed(column.meta[1]), written, _named("string", "data.EnumSet", parameters=allowed))


def _geometry(column: LoggedField) -> FieldForm:
    width = column.meta[0]

    def written(raw: bytes) -> str:
        value = raw[width:]
        return f'{{"wkb":{_base64(value[4:])},"srid":{int.from_bytes(value[:4], "little") or "null"}}}'

    fields = [
        {"type": "bytes", "optional": False, "field": "wkb"},
        {"type": "int32", "optional": True, "field": "srid"},
    ]
    schema: Json = {"type": "struct", "name": "io.debezium.data.geometry.Geometry", "version": 1, "fields": fields}
    return FieldForm(_prefixed(width), written, schema)


def _json(column: LoggedField) -> FieldForm:
    """The type of MySQL; that of MariaDB is a text."""
    width = column.meta[0]

    def written(raw: bytes) -> str:
        try:
            return quoted(json_text(raw[width:]))
        except DamagedJson as why:
            raise UnfitForEvent(f"is no JSON in MySQL's binary form: {why}") from None

    return FieldForm(_prefixed(width), written, _named("string", "data.Json"))


_FORMS: Mapping[int, Callable[[LoggedField], FieldForm]] = {
    **dict.fromkeys(_WHOLE, _whole),
    **dict.fromkeys((VARCHAR, VAR_STRING, STRING), _text),
    FLOAT: _float,
    DOUBLE: _double,
    NEWDECIMAL: _decimal,
    DATE: _date,
    YEAR: _year,
    TIME2: _time,
    DATETIME2: _datetime,
    TIMESTAMP2: _timestamp,
    BIT: _bit,
    BLOB: _blob,
    ENUM: _enum,
    SET: _set,
    GEOMETRY: _geometry,
    JSON: _json,
}
