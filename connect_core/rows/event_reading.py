"""CloudEvents 1.0 -> rows: events that are JSON (structured mode), and data with attributes in headers (binary mode).
Pure.

Of each record one JSON text is made, with the fields that its row has, and these texts are read as any JSON is: so
types are as exact as there, and so are the reasons.
"""

from __future__ import annotations

import json
import re
from binascii import Error as NotBase64
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterator
from typing import Literal, NamedTuple

import pyarrow as pa

from connect_core.rows.envelope_schemas import Misfit
from connect_core.rows.event_attributes import (
    CONTENT_TYPE,
    DATA,
    INTEGERS,
    REQUIRED,
    SPECVERSION,
    STANDARD,
    VERSION,
    attribute_fault,
    media,
)
from connect_core.rows.event_headers import in_headers, is_structured
from connect_core.rows.json_faults import UNDECLARED
from connect_core.rows.json_reading import JsonReader, Read
from connect_core.rows.types import Type
from connect_core.sdk.records import header_pairs

LONGEST = 4 << 20
"""Bytes of a JSON text that is looked into: as objects of Python it is many times as big."""

_quoted = json.JSONEncoder().encode
_BASE64 = "data_base64"
_JSON = "application/json"
_NO_DATA = b"\0"
"""What the SDK for RocketMQ sends for it."""
_SPACE = re.compile(r"[ \t\r\n]*")
_PLAIN_NAME = re.compile(r'"([^"\\\x00-\x1f]*)"[ \t\r\n]*:[ \t\r\n]*')
_NEXT = re.compile(r"[ \t\r\n]*([,}])[ \t\r\n]*")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_NOT_JSON = "data: no text, though datacontenttype is not JSON"


class CloudEventReader:
    """`rows` as `event_attributes.event_rows` makes them. `unknown`: whether an event with an extension that is not
    declared does not fit, or loses it; likewise for fields of its data."""

    def __init__(self, rows: Type, *, unknown: Literal["reject", "drop"] = "reject") -> None:
        self._rows, self._drop = rows, unknown == "drop"
        *self._attributes, (_, self._data) = rows.fields
        self._known = frozenset(name for name, _ in self._attributes)
        self._extensions = self._known - frozenset(STANDARD)
        self._read = JsonReader(rows, unknown=unknown).read

    def read(self, values: pa.Array, headers: pa.Array) -> Read:
        """Both are binary, one of each a record. Each is a row or has a reason."""
        unfit: dict[int, str] = {}
        texts: list[bytes] = []
        places: list[int] = []
        for row, (value, encoded) in enumerate(zip(values.to_pylist(), headers.to_pylist(), strict=True)):
            try:
                texts.append(self._text(value, encoded).encode())
                places.append(row)
            except (Misfit, _NotThis) as why:
                unfit[row] = str(why)
        read = self._read(pa.array(texts, pa.binary()))
        unfit |= {places[row]: why for row, why in read.unfit}
        return Read(read.rows, sorted(unfit.items()))

    def _text(self, value: bytes | None, encoded: bytes | None) -> str:
        try:
            headers = header_pairs(encoded) if encoded else []
        except UnicodeDecodeError:
            raise Misfit("headers: not UTF-8") from None
        found = None if is_structured(headers) else in_headers(headers, self._extensions, drop=self._drop)
        if found is None:
            return self._of_json(value)
        data = None if found.rocketmq and value == _NO_DATA else value
        return self._row(found.attributes, found.version, self._of_bytes(data or None, found.attributes))

    def _of_json(self, value: bytes | None) -> str:
        members: dict[str, _Value] = {}
        for name, member in _members(_decoded(value or b"", "not UTF-8")):
            if name in members:
                raise Misfit("a member that is given more than once")
            if member.token != "null" or name == DATA:
                members[name] = member
        data, encoded = members.pop(DATA, None), members.pop(_BASE64, None)
        version = _canonical(SPECVERSION, members.pop(SPECVERSION, _MISSING))
        if not self._drop and not members.keys() <= self._known:
            raise Misfit(UNDECLARED)
        attributes = {name: _canonical(name, one) for name, one in members.items() if name in self._known}
        if encoded is not None:
            if data is not None:
                raise Misfit("data and data_base64: an event has one of them")
            return self._row(attributes, version, self._of_bytes(_bytes(encoded), attributes))
        if data is not None:
            attributes.setdefault(CONTENT_TYPE, _JSON)
        return self._row(attributes, version, self._of_value(data, attributes))

    def _row(self, attributes: dict[str, str], version: str, data: str | None) -> str:
        if version != VERSION:
            raise Misfit(f"{SPECVERSION}: not {VERSION}")
        if lacking := next((name for name in REQUIRED if name not in attributes), None):
            raise Misfit(f"{lacking}: missing, and no event without it")
        return f"{{{','.join(self._fields(attributes, data))}}}"

    def _fields(self, attributes: dict[str, str], data: str | None) -> Iterator[str]:
        for name, one in self._attributes:
            if (text := attributes.get(name)) is not None:
                if fault := attribute_fault(name, text):
                    raise Misfit(fault)
                yield f"{_quoted(name)}:{_token(text, one)}"
        if data is not None:
            yield f"{_quoted(DATA)}:{data}"

    def _of_value(self, value: _Value | None, attributes: dict[str, str]) -> str | None:
        """What JSON has as `data`."""
        if value is None:
            return None
        as_bytes = self._data.kind == "bytes"
        if media(attributes[CONTENT_TYPE]).json:
            return _base64(value.token.encode()) if as_bytes else value.token
        if value.token == "null":
            return None
        if value.text is None:
            raise Misfit(_NOT_JSON)
        if as_bytes:
            return _base64(_encoded(value.text))
        self._check_text()
        return value.token

    def _of_bytes(self, data: bytes | None, attributes: dict[str, str]) -> str | None:
        if data is None:
            return None
        kind, of = self._data.kind, media(attributes.get(CONTENT_TYPE))
        if kind == "bytes":
            return _base64(data)
        if not of.utf8:
            raise Misfit("data: its charset is not UTF-8 (data: bytes takes it as it is)")
        text = _decoded(data, "data: not UTF-8")
        if of.json or (not of.given and kind != "text"):
            return _one_value(text)
        self._check_text()
        return _quoted(text)

    def _check_text(self) -> None:
        if self._data.kind != "text":
            raise Misfit("data: datacontenttype is not JSON (data: text or bytes takes it)")


class _Value(NamedTuple):
    token: str
    """As it is written."""
    end: int
    text: str | None
    """Of a string what it says."""


class _NotThis(ValueError):
    """Why a text is no JSON."""


def _nothing(_: str) -> None:
    """Numbers are not looked at here."""


def _no_json(_: str) -> None:
    raise _NotThis("not JSON: NaN or infinity")


_DECODER = json.JSONDecoder(parse_int=_nothing, parse_float=_nothing, parse_constant=_no_json)


def _members(text: str) -> Iterator[tuple[str, _Value]]:
    """Of a JSON object, each with its value as it is written."""
    place = _behind_space(text, 0)
    if text[place : place + 1] != "{":
        raise _NotThis("not one JSON object, and no header says that it is an event" if text else "empty")
    place = _behind_space(text, place + 1)
    more = text[place : place + 1] != "}"
    place += not more
    while more:
        if found := _PLAIN_NAME.match(text, place):
            name, place = found[1], found.end()
        else:
            name, place = _name(text, place)
        value = _value(text, place)
        yield name, value
        if not (found := _NEXT.match(text, value.end)):
            raise _not_json(_behind_space(text, value.end))
        place, more = found.end(), found[1] == ","
    if _behind_space(text, place) != len(text):
        raise _NotThis("more than one JSON object")


def _name(text: str, place: int) -> tuple[str, int]:
    """One with escapes, or what is none."""
    if text[place : place + 1] != '"':
        raise _not_json(place)
    name = _value(text, place)
    place = _behind_space(text, name.end)
    if text[place : place + 1] != ":":
        raise _not_json(place)
    return name.text or "", _behind_space(text, place + 1)


def _one_value(text: str) -> str:
    value = _value(text, _behind_space(text, 0))
    if _behind_space(text, value.end) != len(text):
        raise _NotThis("data: more than one JSON value")
    return value.token


def _value(text: str, place: int) -> _Value:
    """What begins there."""
    if len(text) > LONGEST:
        raise _NotThis(f"longer than {LONGEST >> 20} MiB")
    try:
        value, end = _DECODER.raw_decode(text, place)
    except json.JSONDecodeError as error:
        raise _not_json(error.pos) from None
    except RecursionError:
        raise _NotThis("not JSON: too many lists and objects in each other") from None
    return _Value(text[place:end], end, value if type(value) is str else None)


def _behind_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place


_MISSING = _Value("null", 0, None)


def _not_json(place: int) -> _NotThis:
    return _NotThis(f"not JSON, from character {place + 1} on")


def _canonical(name: str, value: _Value) -> str:
    """An attribute as text, whatever type it has in JSON."""
    if value.text is not None:
        return value.text
    if value.token in ("true", "false") or _INTEGER.fullmatch(value.token):
        return value.token
    raise Misfit(f"{name}: missing, or no value of an attribute")


def _token(text: str, one: Type) -> str:
    """An attribute as JSON of its declared type; what it is not is left to the reader."""
    if one.kind == "bool" and text in ("true", "false"):
        return text
    if one.kind in INTEGERS and _INTEGER.fullmatch(text):
        return text
    return _quoted(text.upper() if one.kind == "timestamp" else text)


def _bytes(value: _Value) -> bytes:
    try:
        return a2b_base64("?" if value.text is None else value.text, strict_mode=True)
    except (NotBase64, ValueError):
        raise Misfit("data_base64: not bytes as base64 text") from None


def _base64(value: bytes) -> str:
    return f'"{b2a_base64(value, newline=False).decode()}"'


def _decoded(value: bytes, otherwise: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Misfit(otherwise) from None


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Misfit("data: half of a surrogate pair") from None
