"""Why a JSON record is no row of the declared type: field and what was expected, never what was in it. Pure.

Arrow's reader is the judge of what fits. This says why not, record by record, for those of a batch that it refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from decimal import Context, Decimal, InvalidOperation
from math import isinf
from struct import pack
from typing import Any, Literal

from connect_core.rows.types import MAX_PRECISION, Type

_UNDECLARED = "a field that is not declared"
UNDECLARED = f"{_UNDECLARED} (unknown: drop leaves such out)"
MISFIT = "not JSON of the declared fields"
"""Of a record that the reader refuses and this finds nothing wrong with."""
EXPLAINED = 1 << 20
"""Longer records are refused without a reason of their own: as objects of Python they would be many times as big."""

_WORDS = {
    "bool": "not true or false",
    "text": "not a text",
    "bytes": "not bytes as base64 text",
    "date": "not a date, as 2026-01-02",
    "time": "not a time that {} holds, as 03:04:05",
    "timestamp": "not a moment with its zone that {} holds, as 2026-01-02T03:04:05Z",
    "datetime": "not a date and time without a zone that {} holds, as 2026-01-02T03:04:05",
    "epoch": "not a whole number that {} holds",
    "decimal": "not a number that {} holds",
    "float32": "not a number that {} holds",
    "float64": "not a number that {} holds",
    "struct": "not an object",
    "list": "not a list",
}
_TEXTS = ("text", "bytes", "date", "time", "timestamp", "datetime")
_DIGITS = 100
"""No decimal is that long, however it is written."""
_EXACT = Context(prec=_DIGITS, traps=[InvalidOperation])


_NO_NUMBERS = ("Inf", "-Inf", "-NaN")
"""Arrow's reader passes over them in fields that are dropped; the parser here knows other spellings only."""
_SURROGATE = re.compile(r"\\u[dD]")
_EXPONENT = 308
"""Of float64. Arrow's reader refuses a record with a larger one, wherever it is."""


class TooBig(ValueError):
    """A number of the record has a larger exponent."""


class Number(str):
    """A number as the record has it, so that no digit is lost."""

    __slots__ = ()


def expected(one: Type) -> str:
    return _WORDS.get(one.kind, "not a whole number that {} holds").format(one)


def inner(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


class Faults:
    """`unknown` as the reader has it."""

    def __init__(self, rows: Type, unknown: Literal["reject", "drop", "evolve"]) -> None:
        self._rows = rows
        self._unknown = unknown

    def of(self, text: str) -> str | None:
        """The first one of a record. None where it seems to fit, or only the reader knows."""
        if len(text) > EXPLAINED:
            return None
        try:
            value = decoded(text)
            return self._fault(value, self._rows, "") or half(value, text)
        except json.JSONDecodeError as error:
            if text.startswith(_NO_NUMBERS, error.pos):
                return None
            return f"not JSON, from character {error.pos + 1} on"
        except TooBig:
            return "a number beyond float64"
        except RecursionError:
            return None

    def _fault(self, value: Any, one: Type, place: str) -> str | None:
        if value is None:
            return None
        if one.kind == "struct" and isinstance(value, tuple):
            return self._struct_fault(value, one, place)
        if one.item is not None and isinstance(value, list):
            return _first(self._fault(item, one.item, f"{place}[]") for item in value)
        return None if fits(value, one) else f"{place}: {expected(one)}"

    def _struct_fault(self, pairs: tuple[tuple[str, Any], ...], one: Type, place: str) -> str | None:
        declared = dict(one.fields)
        seen = set()
        for name, value in pairs:
            if name not in declared:
                if self._unknown == "drop":
                    continue
                words = _UNDECLARED if self._unknown == "evolve" else UNDECLARED
                return f"{place}: {words}" if place else words
            if name in seen:
                return f"{inner(place, name)}: given more than once"
            seen.add(name)
            if fault := self._fault(value, declared[name], inner(place, name)):
                return fault
        return None


def decoded(text: str) -> Any:
    """A JSON value: numbers as they are written, and an object as a tuple of pairs, since it may have a name twice.
    Raises JSONDecodeError, TooBig and RecursionError."""
    return _DECODER.decode(text)


def _number(text: str) -> Number:
    mantissa, _, exponent = text.lower().partition("e")
    digits = exponent.lstrip("+0")  # empty, or still with its minus
    behind = len(mantissa.partition(".")[2])
    if digits.isdigit() and (len(digits) > 9 or int(digits) > _EXPONENT + behind):
        raise TooBig
    return Number(text)


_DECODER = json.JSONDecoder(parse_int=Number, parse_float=_number, object_pairs_hook=tuple)


def half(value: Any, text: str) -> str | None:
    """Half of a surrogate pair is no text, also in a field that is dropped."""
    if not _SURROGATE.search(text):
        return None
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return "not JSON: half of a surrogate pair"
    return None


def _first(faults: Iterable[str | None]) -> str | None:
    return next((fault for fault in faults if fault), None)


def fits(value: Any, one: Type) -> bool:
    """Of a value without others in it, as `decoded` has it."""
    if one.kind in _TEXTS:
        return isinstance(value, str) and not isinstance(value, Number)
    if one.kind == "bool":
        return isinstance(value, bool)
    if one.kind == "decimal":
        return isinstance(value, str) and _is_decimal(value, one)
    if one.kind in ("float32", "float64"):
        return isinstance(value, Number) and _is_finite(value, one)
    return one.kind not in ("struct", "list") and isinstance(value, Number) and _is_whole(value, one)


def _is_finite(number: str, one: Type) -> bool:
    if one.kind == "float64" or isinf(float(number)):
        return not isinf(float(number))
    try:
        pack("<f", float(number))
    except OverflowError:
        return False
    return True


def _is_whole(number: str, one: Type) -> bool:
    digits = number.removeprefix("-")
    if not digits.isdigit() or len(digits) > len(str(1 << 64)):
        return False
    bits = 64 if one.kind == "epoch" else int(one.kind.lstrip("uint"))
    unsigned = one.kind.startswith("u")
    low, high = (0, 1 << bits) if unsigned else (-(1 << bits - 1), 1 << bits - 1)
    return low <= int(number) < high and not (unsigned and number.startswith("-"))


def _is_decimal(text: str, one: Type) -> bool:
    if len(text) > _DIGITS:
        return False
    try:
        number = Decimal(text)
    except InvalidOperation:
        return False
    written = number.as_tuple().exponent
    if not isinstance(written, int) or -written - one.scale > MAX_PRECISION:  # no number, or too far for Arrow's reader
        return False
    whole_digits = number.adjusted() + 1
    exponent = number.normalize(_EXACT).as_tuple().exponent
    return not number or (whole_digits <= one.precision - one.scale and -int(exponent) <= one.scale)
