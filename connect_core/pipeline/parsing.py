"""Payloads -> fields, by the format that a document gives (`formats`). Any bytes give fields or a reason. Pure.

Fields are texts; what is empty is not there. Reasons quote nothing of the payload.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from connect_core.pipeline.formats.patterns import TEXT_FORMAT, pattern_of
from connect_core.sdk.values import Json

_PAIR = re.compile(r'\s*([^\s="]+)(?:=(?:"((?:[^"\\]|\\.)*)"(?=\s|$)|([^\s"]*)))?(?=\s|$)', re.DOTALL)
"""One pair of logfmt. No part of it can match what the one before it can, so it takes time in proportion."""
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_NO_CSV = {"unexpected": "a quotation mark is not closed", "new-line": "a line ends in it"}
"""By the first word of what Python says."""
_ABSENT = {"common": "-", "combined": "-"}
"""What a format writes for nothing."""


class Unparsed(ValueError):
    """Why a payload is not of its format."""


class Parsed(NamedTuple):
    """What each payload has, None for one that is not of the format; and of those the row and why, in order."""

    payloads: list[Any]
    reasons: list[tuple[int, str]]


Parser = Callable[[pa.Array], Parsed]


@cache
def _compiled(kind: str, pattern: str, columns: tuple[str, ...], delimiter: str) -> Parser:
    if made := pattern_of(kind, pattern):
        return lambda values: _matched(values, made, _ABSENT.get(kind, ""))
    one: dict[str, Callable[[bytes], Any]] = {
        "json": _json,
        TEXT_FORMAT: _whole,
        "csv": lambda body: _row(_text(body), columns, delimiter),
        "logfmt": lambda body: _pairs(_text(body)),
    }
    return lambda values: _one_by_one(values, one[kind])


def parser(written: Json) -> Parser:
    """By the `parse` of a document, what is left out by default left out."""
    columns = tuple(written.get("columns", ()))
    return _compiled(written["format"], written.get("pattern", ""), columns, written.get("delimiter", ","))


def read_texts(values: pa.Array) -> tuple[pa.Array, list[tuple[int, str]]]:
    """Whole payloads as texts; those that are none are left out, and named."""
    try:
        return pc.fill_null(values.cast(pa.string()), ""), []
    except pa.ArrowInvalid:
        found = [_exact_text(one or b"") for one in values.to_pylist()]
        unread = [(row, "It is no UTF-8") for row, one in enumerate(found) if one is None]
        return pa.array([one for one in found if one is not None], pa.string()), unread


def _exact_text(body: bytes) -> str | None:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def _one_by_one(values: pa.Array, parse: Callable[[bytes], Any]) -> Parsed:
    payloads: list[Any] = []
    reasons: list[tuple[int, str]] = []
    for row, body in enumerate(values.to_pylist()):
        try:
            payloads.append(parse(body or b""))
        except Unparsed as why:
            payloads.append(None)
            reasons.append((row, str(why)))
    return Parsed(payloads, reasons)


def _matched(values: pa.Array, pattern: str, absent: str) -> Parsed:
    """By RE2, all at once."""
    found = pc.extract_regex(_texts(values), pattern).to_pylist()
    reasons = [(row, "It does not match the pattern") for row, one in enumerate(found) if one is None]
    return Parsed([one and _there(one, absent) for one in found], reasons)


def _there(fields: dict[str, str], absent: str = "") -> dict[str, str]:
    return {name: value for name, value in fields.items() if value not in ("", absent)}


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Unparsed(f"It is no JSON at character {error.pos + 1}") from None


def _whole(body: bytes) -> dict[str, str]:
    if (text := _exact_text(body)) is None:
        raise Unparsed("It is no UTF-8")
    return {TEXT_FORMAT: text}


def _row(text: str, columns: Sequence[str], delimiter: str) -> dict[str, str]:
    try:
        rows = list(csv.reader([text], delimiter=delimiter, strict=True))
    except csv.Error as error:
        why = _NO_CSV.get(str(error).partition(" ")[0], str(error))
        raise Unparsed(f"It is no CSV: {why}") from None
    cells = rows[0] if rows else []
    if len(cells) != len(columns):
        raise Unparsed(f"It has {len(cells)} columns and not {len(columns)}")
    return _there(dict(zip(columns, cells, strict=True)))


def _pairs(text: str) -> dict[str, str]:
    """A name without a value is `true`; of equal names the last wins."""
    fields: dict[str, str] = {}
    place, end = 0, len(text.rstrip())
    while place < end:
        found = _PAIR.match(text, place, end)
        if found is None:
            raise Unparsed(f"It is no logfmt at character {place + 1}")
        name, quoted, plain = found.groups()
        if quoted is not None:
            fields[name] = _ESCAPE.sub(lambda one: _ESCAPES.get(one[1], one[1]), quoted)
        else:
            fields[name] = "true" if plain is None else plain
        place = found.end()
    if not fields:
        raise Unparsed("It has no pair")
    return _there(fields)


def _text(body: bytes) -> str:
    return body.decode(errors="replace")


def _texts(values: pa.Array) -> pa.Array:
    try:
        return pc.fill_null(values.cast(pa.string()), "")
    except pa.ArrowInvalid:
        return pa.array([_text(one or b"") for one in values.to_pylist()], pa.string())
