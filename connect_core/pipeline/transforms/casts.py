"""Which types a step can cast to which. Pure, light: `casting` does it."""

from __future__ import annotations

from collections.abc import Mapping

from connect_core.rows.types import Type

WHOLE = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
FLOATS = frozenset({"float32", "float64"})
NUMBERS = WHOLE | FLOATS | {"decimal"}
MOMENTS = frozenset({"timestamp", "datetime", "epoch"})
_FROM_TEXT = NUMBERS | {"bool", "bytes", "date", "time", "timestamp", "datetime"}

WAYS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(WHOLE, NUMBERS | {"text", "epoch"}),
    **dict.fromkeys(FLOATS | {"decimal"}, NUMBERS | {"text"}),
    **dict.fromkeys(MOMENTS, MOMENTS | {"text"}),
    "epoch": MOMENTS | {"text"} | WHOLE,
    "text": _FROM_TEXT | {"text"},
    "bytes": frozenset({"bytes", "text"}),
    "bool": frozenset({"bool", "text"}),
    "date": frozenset({"date", "text"}),
    "time": frozenset({"time", "text"}),
}
"""By the kind of a type the kinds that it can be cast to."""


def fault_of(given: Type, wanted: Type) -> str:
    """Why no value can ever be cast; empty where some can."""
    ways = WAYS.get(given.kind, frozenset())
    if wanted.kind in ways or given == wanted:
        return ""
    if given.kind in ("struct", "list"):
        return f"{given} cannot become {wanted}: objects and lists cannot be cast, only what is in an object"
    return f"{given} cannot become {wanted}: {given.kind} can become {', '.join(sorted(ways))}"
