"""JSON records that do not fit the declared fields, and the fields with which each would. Pure.

A member that is not declared gets a type by its value, once: from then on it is declared. One that says nothing of its
type (`null`, `{}`, `[]`) gets none, and is left out until a record says more.
"""

from __future__ import annotations

from contextlib import suppress
from decimal import Context, Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

from connect_core.rows.json_faults import EXPLAINED, Number, decoded, expected, fits, half, inner
from connect_core.rows.json_reading import JsonReader, Read
from connect_core.rows.types import MAX_DEPTH, MAX_PRECISION, Type, is_text
from connect_core.rows.widening import beyond, is_exact, joined

_INT64 = 1 << 63
_LONGEST = 2 * MAX_PRECISION
"""Of a number that may become a decimal, in characters."""
_EXACT = Context(prec=_LONGEST)


class NoType(ValueError):
    """No fields make the record fit; says where and why."""


class EvolvingReader:
    """As `JsonReader`, and tells of records that do not fit what they need (`Read.needs`)."""

    def __init__(self, rows: Type) -> None:
        self._type = rows
        self._read = JsonReader(rows, unknown="evolve").read
        self._read_without_others = JsonReader(rows, unknown="drop").read

    def read(self, values: pa.Array) -> Read:
        read = self._read(values)
        if not read.unfit:
            return read
        reasons, needs, silent = dict(read.unfit), dict[int, Type](), list[int]()
        for row in reasons:
            try:
                more = needed(values[row].as_py(), self._type)
            except NoType as why:
                reasons[row] = str(why)
            except _UNREAD:
                continue
            else:
                if more is None:
                    silent.append(row)
                else:
                    needs[row] = more
        rows = self._with_silent(read, values, silent, reasons) if silent else read.rows
        return Read(rows, sorted(reasons.items()), needs=needs)

    def _with_silent(self, read: Read, values: pa.Array, silent: list[int], reasons: dict[int, str]) -> pa.StructArray:
        """The rows, and among them those whose other members say nothing."""
        again = self._read_without_others(values.take(pa.array(silent)))
        refused = {silent[at]: why for at, why in again.unfit}
        fit = np.delete(np.arange(len(values)), list(reasons))
        found = [row for row in silent if row not in refused]
        for row in found:
            del reasons[row]
        reasons.update(refused)
        order = np.argsort(np.concatenate([fit, np.array(found, dtype=np.int64)]))
        return pa.concat_arrays([read.rows, again.rows]).take(pa.array(order))


_UNREAD = (ValueError, RecursionError)


def needed(payload: bytes | None, rows: Type) -> Type | None:
    """What the fields lack of those with which a record fits (`widening.beyond`); None where they lack nothing. Raises
    NoType where no fields make it fit, and ValueError or RecursionError for what is no JSON object."""
    text = (payload or b"").decode()
    if len(text) > EXPLAINED:
        raise ValueError("too long")
    value = decoded(text)
    if not isinstance(value, tuple):
        raise ValueError("no JSON object")
    if why := half(value, text):
        raise NoType(why)
    return beyond(rows, _object(value, rows, "", 0) or rows)


def _type(value: Any, declared: Type | None, place: str, depth: int) -> Type | None:
    """The least type that holds the value and those of the `declared` one; None where nothing says it."""
    if value is None:
        return declared
    if depth > MAX_DEPTH:
        raise NoType(f"{place}: more than {MAX_DEPTH} lists and objects in each other")
    if isinstance(value, tuple) and (declared is None or declared.kind == "struct"):
        return _object(value, declared, place, depth)
    if isinstance(value, list) and (declared is None or declared.item is not None):
        return _list(value, declared and declared.item, place, depth)
    if declared is None:
        return _type_of(value, place)
    if not fits(value, declared):
        wider = joined(declared, _type_beside(value, declared, place))
        if wider is None or not fits(value, wider):
            raise NoType(f"{place}: {expected(declared)}")
        return wider
    return declared


def _object(pairs: tuple[tuple[str, Any], ...], declared: Type | None, place: str, depth: int) -> Type | None:
    found, seen = dict(declared.fields) if declared else {}, set[str]()
    for name, value in pairs:
        if name in seen:
            raise NoType(f"{inner(place, name)}: given more than once")
        seen.add(name)
        if name not in found and not (name and is_text(name)):
            raise NoType(f"{f'{place}: ' if place else ''}a field without a name")
        if one := _type(value, found.get(name), inner(place, name), depth + 1):
            found[name] = one
    return Type("struct", fields=tuple(found.items())) if found else None


def _list(values: list[Any], item: Type | None, place: str, depth: int) -> Type | None:
    """Numbers with a fraction come first, so that a new list of both kinds is one of floats in any order."""
    for value in sorted(values, key=lambda one: not (isinstance(one, Number) and not _is_whole(one))):
        item = _type(value, item, f"{place}[]", depth + 1)
    return item and Type("list", item=item)


def _type_of(value: Any, place: str) -> Type:
    """Of what is declared nowhere."""
    if isinstance(value, bool):
        return Type("bool")
    if not isinstance(value, Number):
        if not isinstance(value, str):
            raise NoType(f"{place}: not JSON")
        return Type("text")
    return _whole_or_decimal(value, place) if _is_whole(value) else Type("float64")


def _type_beside(value: Any, declared: Type, place: str) -> Type:
    """Numbers beside exact ones are exact, whatever form they have."""
    if is_exact(declared) and isinstance(value, Number):
        return _whole_or_decimal(value, place)
    if isinstance(value, tuple | list):
        raise NoType(f"{place}: {expected(declared)}")
    return _type_of(value, place)


def _is_whole(number: str) -> bool:
    return number.removeprefix("-").isdigit()


def _whole_or_decimal(number: str, place: str) -> Type:
    if len(number) <= _LONGEST:
        if _is_whole(number) and -_INT64 <= int(number) < _INT64:
            return Type("int64")
        with suppress(InvalidOperation):  # an exponent that even Decimal does not take
            _, digits, exponent = Decimal(number).normalize(_EXACT).as_tuple()
            scale = max(-int(exponent), 0)
            precision = max(len(digits) + int(exponent), 0) + scale
            if precision <= MAX_PRECISION:
                return Type("decimal", precision=max(precision, 1), scale=scale)
    raise NoType(f"{place}: a number of more than {MAX_PRECISION} digits")
