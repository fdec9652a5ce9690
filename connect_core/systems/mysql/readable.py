"""Columns as members of JSON objects, in the forms that `parse: {format: json}` reads. Pure. docs/mysql.md has this
table; each row of it is a test."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, NamedTuple, Protocol

import numpy as np

from connect_core.systems.mysql.catalog import MysqlColumn, quoted_name


class Form(NamedTuple):
    """How a column is asked for, and what JSON its value becomes."""

    asked: str
    written: Callable[[Any], str]


def _base64(value: bytes) -> str:
    return f'"{b64encode(value).decode()}"'


def _shortest(value: float) -> str:
    return str(np.float32(value))


def _datetime(value: str) -> str:
    return f'"{value.replace(" ", "T", 1)}"'


def _moment(value: str) -> str:
    return f'"{value.replace(" ", "T", 1)}+00:00"'


def _one_line(value: str) -> str:
    """Only between members may there be line feeds: texts have them escaped."""
    return value.translate({10: " ", 13: " "})


def _decimal(value: Decimal) -> str:
    return f"{value:f}"


def _text_or_bytes(value: str | bytes) -> str:
    """Of a result the driver gives one of both, by the character set."""
    return _base64(value) if isinstance(value, bytes) else encode_basestring(value)


def _quoted(value: str) -> str:
    return f'"{value}"'


TEXT_OR_BYTES = "text or bytes"
"""What a column of a result is called whose values say it."""
_WHOLE = Form("{}", str)
_TEXT = Form("{}", encode_basestring)
_JSON = Form("{}", _one_line)
_SHOWN = Form("CAST({} AS CHAR)", _quoted)
_FORMS = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), _WHOLE),
    **dict.fromkeys(("year", "bit"), Form("{} + 0", str)),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"), _TEXT),
    **dict.fromkeys(("uuid", "inet4", "inet6"), _TEXT),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), Form("{}", _base64)),
    "decimal": Form("{}", _decimal),
    "float": Form("{} * 1e0", _shortest),  # as it is the server writes six digits of it
    "double": Form("{} * 1e0", repr),
    "date": _SHOWN,
    "time": _SHOWN,
    "datetime": Form("CAST({} AS CHAR)", _datetime),
    "timestamp": Form("CAST({} AS CHAR)", _moment),
    "json": _JSON,
    TEXT_OR_BYTES: Form("{}", _text_or_bytes),
}


def is_readable(column: MysqlColumn) -> bool:
    """Whether JSON keeps each value of the column. Not so of geometries and vectors."""
    return column.word in _FORMS


class ReadColumn(Protocol):
    @property
    def name(self) -> str:
        """As the server calls it."""

    @property
    def word(self) -> str:
        """See `MysqlColumn`."""


class RowReader:
    """Makes an object of the values of a row, and the key of that. `in_json` are the columns that hold JSON alone."""

    def __init__(self, columns: Sequence[ReadColumn], key: Sequence[str], in_json: frozenset[str]) -> None:
        forms = [_JSON if one.name in in_json else _FORMS[one.word] for one in columns]
        self.asked = ", ".join(
            form.asked.format(quoted_name(one.name)) for one, form in zip(columns, forms, strict=True)
        )
        self._names = [json.dumps(one.name, ensure_ascii=False) for one in columns]
        self._written = [form.written for form in forms]
        self._key = [[one.name for one in columns].index(name) for name in key]

    def read(self, values: Sequence[Any]) -> tuple[str | None, str]:
        """The key and the value of a record."""
        found = ["null" if one is None else write(one) for write, one in zip(self._written, values, strict=True)]
        return self._key_of(found), self._object(found, range(len(found)))

    def _object(self, found: Sequence[str], places: Sequence[int]) -> str:
        return "{" + ",".join([f"{self._names[place]}:{found[place]}" for place in places]) + "}"

    def _key_of(self, found: Sequence[str]) -> str | None:
        """Of one column its text as JSON has it, without quotation marks; of several an object."""
        if len(self._key) != 1:
            return self._object(found, self._key) if self._key else None
        text = found[self._key[0]]
        return str(json.loads(text)) if text.startswith('"') else text
