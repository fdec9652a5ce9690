"""Values of conditions, and their order as Java's: texts of properties, numbers, truth values, and what is unknown."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

LONG = 1 << 63
"""Whole numbers are below it, and not below its negation."""
_INTEGER = 1 << 31
_WHOLE = re.compile(r"[+-]?\d+")
_FRACTION = re.compile(r"([+-]?)(NaN|Infinity|(\d+\.?\d*|\.\d+)(e[+-]?\d+)?[fd]?)", re.IGNORECASE | re.ASCII)


class Whole(NamedTuple):
    """A whole number that fits into 32 bits or does not: a text that is compared with it must fit as well."""

    value: int

    @property
    def limit(self) -> int:
        return _INTEGER if -_INTEGER <= self.value < _INTEGER else LONG


class Incomparable(Exception):
    """Ends the evaluation: the record does not pass."""


def is_truth(value: Any) -> bool:
    """True, false, or unknown."""
    return value is None or isinstance(value, bool)


def equals(left: Any, right: Any) -> bool | None:
    """None when only the left one is unknown; what is known equals nothing unknown."""
    if left is None or right is None:
        return True if left is right else None if left is None else False
    return ordered(left, right) == 0


def written(value: Any) -> str:
    """As JSON writes it: properties are texts, values of a payload need not be."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value.value if isinstance(value, Whole) else value)


def ordered(left: Any, right: Any) -> int:
    """Below, at or above 0, as Java's `compareTo`. Texts beside something else become what that is."""
    if isinstance(left, bool):
        return _beside_truth(left, right)
    if isinstance(right, bool):
        return _order(left.lower() == "true", right) if isinstance(left, str) else -1
    if isinstance(left, str) and isinstance(right, str):
        return _order(left, right)
    if isinstance(left, float) or isinstance(right, float):
        return _order(_fraction(left), _fraction(right))
    limit = max(one.limit for one in (left, right) if isinstance(one, Whole))
    return _order(_whole(left, limit), _whole(right, limit))


def ordered_as_numbers(left: str, right: str) -> int:
    """Like `ordered`, of two texts that are to be numbers."""
    return _order(_fraction(left), _fraction(right))


def _beside_truth(left: bool, right: Any) -> int:
    """RocketMQ fails on a text to the right of a truth value."""
    if isinstance(right, str):
        raise Incomparable
    return _order(left, right) if isinstance(right, bool) else -1


def _order(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def _whole(value: Whole | str, limit: int) -> int:
    if isinstance(value, Whole):
        return value.value
    number = int(value) if _WHOLE.fullmatch(value) else limit
    if not -limit <= number < limit:
        raise Incomparable
    return number


def _fraction(value: Whole | float | str) -> tuple[bool, float, float]:
    """In Java's order: -0.0 before 0.0, and NaN above all."""
    if isinstance(value, str):
        number = _parsed(value.strip())
    else:
        number = float(value.value if isinstance(value, Whole) else value)
    return math.isnan(number), 0.0 if math.isnan(number) else number, math.copysign(1.0, number)


def _parsed(text: str) -> float:
    found = _FRACTION.fullmatch(text)
    if found is None or (found[3] is None and found[2] not in ("NaN", "Infinity")):
        raise Incomparable
    return float(text.rstrip("fFdD") if found[3] else text)
