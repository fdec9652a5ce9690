"""Types of rows, and rows of a type, for Hypothesis."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from connect_core.rows.schema import arrow_type
from connect_core.rows.types import PLAIN, UNITS, Type

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
NAMES = TEXTS.filter(bool) | st.sampled_from(["a", "b", 'q"\\\n'])
_DAY = 86_400
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_BEGIN, _END = -719_528 * _DAY, 2_932_897 * _DAY
"""Seconds of the years 0 to 9999."""


@st.composite
def _decimals(draw: st.DrawFn) -> Type:
    precision = draw(st.integers(1, 38))
    return Type("decimal", precision=precision, scale=draw(st.integers(0, precision)))


LEAVES = st.one_of(
    st.sampled_from(PLAIN).map(Type),
    st.builds(Type, st.sampled_from(["time", "timestamp", "datetime", "epoch"]), unit=st.sampled_from(UNITS)),
    _decimals(),
)


def structs(of: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    fields = st.lists(st.tuples(NAMES, of), min_size=1, max_size=4, unique_by=lambda field: field[0])
    return fields.map(lambda some: Type("struct", fields=tuple(some)))


ROW_TYPES = structs(
    st.recursive(LEAVES, lambda of: st.one_of(structs(of), of.map(lambda one: Type("list", item=one))), max_leaves=6)
)


def values(one: Type) -> st.SearchStrategy[Any]:
    """What `pa.array` takes; whole numbers for moments, so that no unit is lost."""
    return st.none() | _values(one)


def _values(one: Type) -> st.SearchStrategy[Any]:
    kind = one.kind
    if kind == "struct":
        return st.fixed_dictionaries({name: values(of) for name, of in one.fields})
    if one.item is not None:
        return st.lists(values(one.item), max_size=4)
    if kind == "decimal":
        most = 10**one.precision - 1
        return st.integers(-most, most).map(lambda number: Decimal(f"{number}e-{one.scale}"))
    if one.unit:
        return _moments(kind, one.unit)
    return _WORDS[kind]


def _moments(kind: str, unit: str) -> st.SearchStrategy[int]:
    if kind == "time":
        return st.integers(0, _DAY * _PER_SECOND[unit] - 1)
    if kind == "epoch":
        return _integers(64)
    if unit == "ns":
        return st.integers(-9_223_372_036 * 10**9, 2**63 - 1)
    return st.integers(_BEGIN * _PER_SECOND[unit], _END * _PER_SECOND[unit] - 1)


def _integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


_WORDS: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "text": TEXTS,
    "bytes": st.binary(max_size=9),
    "date": st.dates(),
    **{f"float{bits}": st.floats(width=bits, allow_nan=False, allow_infinity=False) for bits in (32, 64)},
    **{f"int{bits}": _integers(bits) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": st.integers(0, (1 << bits) - 1) for bits in (8, 16, 32, 64)},
}


@st.composite
def rows(draw: st.DrawFn, types: st.SearchStrategy[Type] = ROW_TYPES) -> tuple[Type, pa.StructArray]:
    """Of any type, also a slice, and no row missing."""
    one = draw(types)
    some = draw(st.lists(_values(one), max_size=8))
    begin = draw(st.integers(0, len(some)))
    return one, pa.array(some, arrow_type(one)).slice(begin)
