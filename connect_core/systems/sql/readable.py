"""Columns as members of JSON objects, in the forms that `parse: {format: json}` reads. Pure. docs/sql-tables.md has
these tables; each row of them is a test.

A column of SQLite may have a value of any type, whatever type is declared: one that the form of the column does not
tell from another is unfit."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from json.encoder import encode_basestring
from typing import Any, NoReturn

import numpy as np
import sqlalchemy as sa

from connect_core.systems.sql.catalog import SqlColumn
from connect_core.systems.sql.types import is_decimal, is_float, is_plain_text, is_text

Write = Callable[[Any], str]
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d.*)")


class Computed(sa.types.NullType):
    """What a query gives: numbers and texts, told apart by what they are. Bytes would be texts."""


class UnfitValue(ValueError):
    """What a column has and a record cannot have; `value` are its bytes."""

    def __init__(self, why: str, value: object) -> None:
        super().__init__(why)
        self.value = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")


class SqlRowReader:
    """Makes an object of the values of a row, and the key of that."""

    def __init__(self, columns: Sequence[SqlColumn], key: Sequence[str]) -> None:
        self._names = [json.dumps(one.name, ensure_ascii=False) for one in columns]
        self._written = [_form(one) or _refused for one in columns]
        self._key = [[one.name for one in columns].index(name) for name in key]

    def read(self, values: Sequence[Any]) -> tuple[str | None, str]:
        """The key and the value of a record. Raises UnfitValue."""
        found = []
        for name, value, write in zip(self._names, values, self._written, strict=True):
            try:
                found.append("null" if value is None else write(value))
            except UnfitValue as error:
                raise UnfitValue(f"Column {name} {error}", error.value) from None
        return self._key_of(found), self._object(found, range(len(found)))

    def _object(self, found: Sequence[str], places: Sequence[int]) -> str:
        return "{" + ",".join([f"{self._names[place]}:{found[place]}" for place in places]) + "}"

    def _key_of(self, found: Sequence[str]) -> str | None:
        """Of one column its text as JSON has it, without quotation marks; of several an object."""
        if len(self._key) != 1:
            return self._object(found, self._key) if self._key else None
        text = found[self._key[0]]
        return str(json.loads(text)) if text.startswith('"') else text


def is_readable(column: SqlColumn) -> bool:
    """Whether JSON keeps each value of the column, or it is told which it does not."""
    return _form(column) is not None


def _form(column: SqlColumn) -> Write | None:
    return _file_form(column.type) if column.of_file else _server_form(column.type)


def _file_form(of: sa.types.TypeEngine[Any]) -> Write | None:
    if isinstance(of, sa.DateTime):
        return _moment
    if isinstance(of, sa.Date | sa.Time):
        return _number_or_text
    return next((write for kinds, write in _OF_FILE if isinstance(of, kinds)), None)


def _server_form(of: sa.types.TypeEngine[Any]) -> Write | None:
    if is_decimal(of):
        return _digits
    if is_float(of):
        return _single if isinstance(of, sa.REAL) else _finite
    if is_text(of):
        return _text if is_plain_text(of) else None
    if type(of) in (sa.DATETIME, sa.DateTime, sa.TIMESTAMP, sa.Date, sa.DATE):
        return _iso
    return next((write for kinds, write in _OF_SERVER if isinstance(of, kinds)), None)


def _refused(value: Any) -> NoReturn:
    raise UnfitValue("is of no type that is read", value)


def _digits(value: Any) -> str:
    return f"{value:f}"


def _iso(value: Any) -> str:
    return f'"{value.isoformat()}"'


def _bytes_of_server(value: Any) -> str:
    return _bytes(bytes(value))


def _single(value: Any) -> str:
    return _finite(np.float32(value))


def _bool(value: Any) -> str:
    if isinstance(value, int) and value in (0, 1):
        return "true" if value else "false"
    raise UnfitValue("has neither true nor false", value)


def _finite(value: Any) -> str:
    if math.isfinite(value):
        return str(value)
    raise UnfitValue("has a number that JSON has not: no finite one", value)


def _number(value: Any) -> str:
    if isinstance(value, int | float):
        return _finite(value)
    raise UnfitValue("has a text, or bytes, in the place of a number", value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise UnfitValue("has bytes, or a number, in the place of a text", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UnfitValue("has a text that is not in UTF-8", value) from None
    return encode_basestring(value)


def _bytes(value: Any) -> str:
    if isinstance(value, bytes):
        return f'"{b64encode(value).decode()}"'
    raise UnfitValue("has a text, or a number, in the place of bytes", value)


def _number_or_text(value: Any) -> str:
    return _text(value) if isinstance(value, str) else _number(value)


def _moment(value: Any) -> str:
    """`2026-01-02 03:04:05` has a T in the place of the blank."""
    found = _MOMENT.fullmatch(value) if isinstance(value, str) else None
    return _number_or_text(f"{found[1]}T{found[2]}" if found else value)


def _json(value: Any) -> str:
    """In one line: only between members may there be line feeds, since texts have them escaped."""
    if not isinstance(value, str):
        return _number(value)
    try:
        json.loads(value, parse_constant=_refused)
    except ValueError:
        raise UnfitValue("has a text that is not JSON", value) from None
    return value.translate({10: " ", 13: " "})


_OF_FILE: tuple[tuple[Any, Write], ...] = (
    (Computed, _number_or_text),
    (sa.Boolean, _bool),
    (sa.Integer, _number),
    (sa.Numeric, _number),
    (sa.Float, _number),
    (sa.JSON, _json),
    (sa.String, _text),
    ((sa.LargeBinary, sa.BLOB), _bytes),
)
_OF_SERVER: tuple[tuple[Any, Write], ...] = (
    (sa.Boolean, _bool),
    (sa.Integer, str),
    (sa.LargeBinary, _bytes_of_server),
)
