"""Columns as members of JSON objects, in the forms that `parse: {format: json}` reads. Pure. docs/tables.md has this
table; each row of it is a test."""

from __future__ import annotations

import re

from connect_core.systems.postgresql.catalog import TableColumn, quoted_name

_NUMBERS = r"smallint|integer|bigint|numeric(\(.*\))?|real|double precision|boolean"
_TEXTS = r"text|citext|uuid|inet|cidr|macaddr8?|character( varying)?(\(\d+\))?|bit( varying)?(\(\d+\))?|interval.*"
_TIMES = r"date|(time|timestamp)(\(\d\))? with(out)? time zone"
_KEPT = re.compile(rf"({_NUMBERS}|{_TEXTS}|{_TIMES}|jsonb?)(\[\])?")
_SAME = re.compile(r"smallint|integer|bigint|text|uuid|character varying(\(\d+\))?")
_BYTES = "bytea"


def is_readable(column: TableColumn) -> bool:
    """Whether JSON keeps each value of the column. Not so of `money` and composite types, whose texts depend on
    settings or hide types, nor of lists of bytes."""
    return column.is_enum or column.kind == _BYTES or _KEPT.fullmatch(column.kind) is not None


def is_text_in_json(column: TableColumn) -> bool:
    """Whether each value has in JSON the text that a cast gives, which costs the server a fifth less a row. That of
    `character` has no blanks at its end."""
    return _SAME.fullmatch(column.kind) is not None


def expression(column: TableColumn) -> str:
    """SQL that makes a value which `row_to_json` writes in that form. Bytes are base64 without line feeds."""
    name = quoted_name(column.name)
    return f"translate(encode({name}, 'base64'), E'\\n', '') AS {name}" if column.kind == _BYTES else name


def one_line(text: str, columns: tuple[TableColumn, ...]) -> str:
    """SQL of the object in one line: only blanks around members of a `json` column may hold line feeds, since texts
    have them escaped."""
    has_json = any(column.kind in ("json", "json[]") for column in columns)
    return f"translate({text}, E'\\n\\r', '  ')" if has_json else text
