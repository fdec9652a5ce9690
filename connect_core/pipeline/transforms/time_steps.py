"""Steps between moments and texts of any form: how a document writes them, and the shape of rows behind. Pure, light.

parse_time: {at: "dd.MM.yyyy HH:mm"}      a text becomes timestamp(ms); without a zone it is in UTC
format_time: {at: "yyyy-MM-dd'T'HH:mm"}   a timestamp becomes a text, in UTC
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from connect_core.pipeline.transforms.paths import Path, found, written
from connect_core.pipeline.transforms.row_step import TEXT, RowStep, mapping, with_field
from connect_core.rows.types import Type

PARTS = ("yyyy", "MM", "dd", "HH", "mm", "ss", "SSS", "XXX")
"""Of a form, with the letters of Java: XXX is the zone, as Z or +01:00."""
_PIECE = re.compile(r"'(?P<quoted>(?:[^']|'')*)'|(?P<letters>([A-Za-z])\3*)|(?P<plain>[^A-Za-z']+)")
_MOMENT = Type("timestamp", unit="ms")

Form: TypeAlias = tuple[str, ...]
"""Parts, and in quotation marks what stands between them."""


@dataclass(frozen=True)
class ParseTimes(RowStep):
    forms: tuple[tuple[Path, Form], ...]

    def after(self, rows: Type) -> Type:
        for path, _ in self.forms:
            if (given := found(rows, path)) != TEXT:
                raise ValueError(f"{written(path)} is {given}, and no text")
            rows = with_field(rows, path, _MOMENT)
        return rows


@dataclass(frozen=True)
class FormatTimes(RowStep):
    forms: tuple[tuple[Path, Form], ...]

    def after(self, rows: Type) -> Type:
        for path, _ in self.forms:
            if (given := found(rows, path)).kind != "timestamp":
                raise ValueError(f"{written(path)} is {given}, and no timestamp: cast it to one first")
            rows = with_field(rows, path, TEXT)
        return rows

    def written_out(self) -> Sequence[Path]:
        return [path for path, _ in self.forms]


def parse_time_step(of: object) -> ParseTimes:
    forms = _forms(of)
    for path, form in forms:
        if "yyyy" not in form:
            raise ValueError(f"{written(path)}: a moment has a year: yyyy")
    return ParseTimes(forms)


def format_time_step(of: object) -> FormatTimes:
    return FormatTimes(_forms(of))


def _forms(of: object) -> tuple[tuple[Path, Form], ...]:
    return tuple((path, _form(path, text)) for path, text in mapping(of, '{at: "yyyy-MM-dd HH:mm:ss"}'))


def _form(path: Path, text: object) -> Form:
    if not isinstance(text, str) or not text:
        raise ValueError(f"{written(path)}: {text!r} is no form of a time, as yyyy-MM-dd HH:mm:ss")
    form, place = [], 0
    while place < len(text):
        piece = _PIECE.match(text, place)
        if piece is None:
            raise ValueError(f"{written(path)}: {text!r}: a quotation mark is not closed")
        if (letters := piece["letters"]) and letters not in PARTS:
            raise ValueError(f"{written(path)}: {text!r}: {letters} is not one of {', '.join(PARTS)}; quote 'text'")
        form.append(letters or _quoted(piece))
        place = piece.end()
    if twice := next((one for one in form if one in PARTS and form.count(one) > 1), None):
        raise ValueError(f"{written(path)}: {text!r}: {twice} is there twice")
    return tuple(form)


def _quoted(piece: re.Match[str]) -> str:
    quoted = piece["quoted"]
    text = piece["plain"] if quoted is None else quoted.replace("''", "'") or "'"
    return f"'{text}"


def literal_of(part: str) -> str | None:
    """What stands there between parts; None for a part."""
    return part[1:] if part.startswith("'") else None
