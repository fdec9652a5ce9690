"""Columns as members of JSON objects, in the forms that `parse: {format: json}` reads. Pure. docs/mysql.md has this
table; each row of it is a test."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain, repeat
from json.encoder import encode_basestring
from typing import Any, NamedTuple, Protocol

import numpy as np

from connect_core.systems.mysql.catalog import MysqlColumn, quoted_name
from connect_core.systems.tables.pages import Row


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
    """Makes objects of the values of rows, and their keys. `in_json` are the columns that hold JSON alone."""

    def __init__(self, columns: Sequence[ReadColumn], key: Sequence[str], in_json: frozenset[str]) -> None:
        forms = [_JSON if one.name in in_json else _FORMS[one.word] for one in columns]
        self.asked = ", ".join(
            form.asked.format(quoted_name(one.name)) for one, form in zip(columns, forms, strict=True)
        )
        self._names = [one.name for one in columns]
        self._labels = [f"{json.dumps(name, ensure_ascii=False)}:" for name in self._names]
        self._written = [form.written for form in forms]
        self._key = [self._names.index(name) for name in key]

    def place_of(self, number: str) -> int | None:
        """Of the column that numbers rows, where its values are asked for as they are."""
        return next((at for at, name in enumerate(self._names) if name == number and self._written[at] is str), None)

    def read(self, rows: Sequence[tuple[Any, ...]], number: int | None = None) -> list[Row]:
        """Records of rows that have their number at this place, or before their values. Column by column: that is twice
        as fast."""
        if not rows:
            return []
        columns = list(zip(*rows, strict=True))
        numbers = columns.pop(0) if number is None else columns[number]
        texts = [_texts(write, column) for write, column in zip(self._written, columns, strict=True)]
        return list(zip(numbers, self._keys(texts), _objects(self._labels, texts), strict=True))

    def _keys(self, texts: Sequence[Sequence[str]]) -> Iterable[str | None]:
        """Of one column its texts as JSON has them, without quotation marks; of several objects."""
        found = [texts[place] for place in self._key]
        if len(found) == 1:
            return map(_unquoted, found[0])
        labels = [self._labels[place] for place in self._key]
        return _objects(labels, found) if found else repeat(None, len(texts[0]))


def _objects(labels: Sequence[str], texts: Sequence[Sequence[str]]) -> Iterator[str]:
    """Of each row what its members are called, with their texts."""
    before = [repeat(f"{',' if at else '{'}{label}") for at, label in enumerate(labels)]
    parts = chain.from_iterable(zip(before, texts, strict=True))
    return map("".join, zip(*parts, repeat("}")))


def _texts(write: Callable[[Any], str], column: Sequence[Any]) -> list[str]:
    if None in column:
        return ["null" if one is None else write(one) for one in column]
    return list(map(write, column))


def _unquoted(text: str) -> str:
    if not text.startswith('"'):
        return text
    return str(json.loads(text)) if "\\" in text else text[1:-1]
