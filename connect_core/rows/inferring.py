"""The fields that JSON payloads have, and their types: what a person may begin a document's `fields` with. Pure.

A suggestion, and nothing that a run decides by: a sample shows what was there, not what may come.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NamedTuple

from connect_core.rows.types import MAX_DEPTH, MAX_PRECISION, Type, is_text

_INT64 = 1 << 63


class Inferred(NamedTuple):
    """`rows` is None where no payload was an object. `remarks` name what the fields cannot say, or what was left out;
    `unread` are the payloads that were no JSON objects."""

    rows: Type | None
    remarks: list[str]
    read: int
    unread: int


def inferred(payloads: Iterable[bytes]) -> Inferred:
    seen, read, unread = _Seen(), 0, 0
    for payload in payloads:
        try:
            value = json.loads(payload.decode(), parse_float=_finite, parse_constant=_finite, object_pairs_hook=_object)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            seen.add(value, 0)
            read += 1
        else:
            unread += 1
    remarks: list[str] = []
    return Inferred(seen.struct("", remarks), remarks, read, unread)


@dataclass
class _Seen:
    """At one place: how often which kind of value was there, the whole numbers' bounds, and what was inside."""

    kinds: Counter[str] = field(default_factory=Counter)
    least: int = 0
    most: int = 0
    fields: dict[str, _Seen] = field(default_factory=dict)
    items: _Seen | None = None
    too_deep: bool = False

    def add(self, value: Any, depth: int) -> None:
        kind = _kind(value)
        self.kinds[kind] += 1
        if kind == "whole number":
            self.least, self.most = min(self.least, value), max(self.most, value)
        elif depth >= MAX_DEPTH:
            self.too_deep |= kind in ("object", "list")
        elif kind == "object":
            for name, one in value.items():
                self.fields.setdefault(name, _Seen()).add(one, depth + 1)
        elif kind == "list":
            self.items = self.items or _Seen()
            for one in value:
                self.items.add(one, depth + 1)

    def type_of(self, place: str, remarks: list[str]) -> Type | None:
        """None where there is no type for it."""
        known = Counter({kind: count for kind, count in self.kinds.items() if kind != "null"})
        if known.keys() == {"whole number", "number"}:
            known = Counter({"number": known.total()})
        if len(known) > 1:
            counts = ", ".join(f"{kind} {count} times" for kind, count in known.most_common())
            remarks.append(f"{place}: of several types ({counts}): records with any but the first are rejected")
        if not known:
            remarks.append(f"{place}: nothing but null was there; text is a guess")
            return Type("text")
        kind = known.most_common(1)[0][0]
        if kind == "object":
            return self.struct(place, remarks)
        if kind == "list":
            return self._list(place, remarks)
        return self._whole(place, remarks) if kind == "whole number" else Type(_PLAIN[kind])

    def struct(self, place: str, remarks: list[str]) -> Type | None:
        fields = tuple(self._fields(place, remarks))
        if not fields and place:
            why = "nested too deep" if self.too_deep else "an object without fields"
            remarks.append(f"{place}: {why}, which has no type: left out, so write unknown: drop")
        return Type("struct", fields=fields) if fields else None

    def _fields(self, place: str, remarks: list[str]) -> Iterator[tuple[str, Type]]:
        for name, one in self.fields.items():
            if not name or not is_text(name):
                remarks.append(f"{place or 'the payload'}: a field without a name, left out: write unknown: drop")
            elif made := one.type_of(f"{place}.{name}" if place else name, remarks):
                yield name, made

    def _list(self, place: str, remarks: list[str]) -> Type | None:
        if self.items is None or not self.items.kinds:
            why = "nested too deep, left out" if self.too_deep else "no list had an item; text is a guess"
            remarks.append(f"{place}: {why}")
            return None if self.too_deep else Type("list", item=Type("text"))
        item = self.items.type_of(f"{place}[]", remarks)
        return item and Type("list", item=item)

    def _whole(self, place: str, remarks: list[str]) -> Type:
        if self.least >= -_INT64 and self.most < _INT64:
            return Type("int64")
        if self.least >= 0 and self.most < 2 * _INT64:
            return Type("uint64")
        remarks.append(f"{place}: whole numbers beyond 64 bits")
        return Type("decimal", precision=MAX_PRECISION)


def _finite(text: str) -> float:
    """Raises ValueError for what JSON, or a document's types, do not have."""
    if not isfinite(number := float(text)):
        raise ValueError("no number")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Raises ValueError for a name that is given twice."""
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError("a name twice")
    return found


_PLAIN = {"truth value": "bool", "number": "float64", "text": "text"}


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "truth value"
    if isinstance(value, int):
        return "whole number"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "text"
    return "object" if isinstance(value, dict) else "list"
