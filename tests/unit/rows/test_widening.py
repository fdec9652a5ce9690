"""Joining types: in any order the same, nothing rounded, and what one has beyond another."""

from __future__ import annotations

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.rows.types import Type, as_written, struct_of, type_of
from connect_core.rows.widening import beyond, joined, leaves

NUMBERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
WORDS = [*NUMBERS, "float32", "float64", "text", "bool", "bytes", "date", "epoch(ms)", "timestamp(us)"]
DECIMALS = st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: f"decimal({p},{s})"))
PLAIN = st.one_of(st.sampled_from(WORDS), DECIMALS)
NAMES = st.sampled_from("abc")


def _inside(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.one_of(inner.map(lambda one: [one]), st.dictionaries(NAMES, inner, min_size=1, max_size=3))


TYPES = st.recursive(PLAIN, _inside, max_leaves=4).map(type_of)
ROWS = st.dictionaries(NAMES, st.recursive(PLAIN, _inside, max_leaves=3), min_size=1, max_size=3).map(struct_of)
ALIKE = st.dictionaries(NAMES, st.sampled_from(NUMBERS), min_size=1, max_size=3).map(struct_of)
"""Rows that can be joined."""


def same(one: Type | None, other: Type | None) -> bool:
    """But for the order of fields."""
    if one is None or other is None:
        return one is other
    return as_written(Type("struct", fields=(("of", one),))) == as_written(Type("struct", fields=(("of", other),)))


def both(one: Type | None, other: Type | None) -> Type | None:
    return joined(one, other) if one and other else None


@given(TYPES, TYPES)
def test_it_does_not_count_which_comes_first(one: Type, other: Type) -> None:
    assert same(joined(one, other), joined(other, one))


@given(st.lists(st.one_of(TYPES, ROWS, ALIKE), min_size=3, max_size=3))
def test_it_does_not_count_which_are_joined_first(three: list[Type]) -> None:
    one, other, third = three
    assert same(both(both(one, other), third), both(one, both(other, third)))


@given(st.lists(st.one_of(st.sampled_from(NUMBERS), DECIMALS).map(type_of), min_size=3, max_size=5), st.randoms())
def test_numbers_are_joined_in_any_order(several: list[Type], random: object) -> None:
    others = list(several)
    random.shuffle(others)  # type: ignore[attr-defined]
    assert reduce(both, several[1:], several[0]) == reduce(both, others[1:], others[0])  # type: ignore[arg-type]


@given(TYPES, TYPES)
def test_what_is_joined_holds_both(one: Type, other: Type) -> None:
    wider = joined(one, other)
    if wider is not None:
        assert same(joined(wider, one), wider)
        assert same(joined(wider, other), wider)


@given(st.one_of(TYPES, ROWS, ALIKE), st.one_of(TYPES, ROWS, ALIKE))
def test_what_is_beyond_makes_the_one_the_other(one: Type, other: Type) -> None:
    wider = joined(one, other)
    if wider is not None:
        more = beyond(one, wider)
        assert joined(one, more) == wider if more else one == wider


@pytest.mark.parametrize(
    ("one", "other", "wider"),
    [
        ("int8", "int32", "int32"),
        ("int32", "int64", "int64"),
        ("uint8", "int8", "int16"),
        ("uint32", "int64", "int64"),
        ("uint64", "int64", "decimal(20,0)"),
        ("int64", "decimal(25,0)", "decimal(25,0)"),
        ("int64", "decimal(2,1)", "decimal(20,1)"),
        ("decimal(12,2)", "decimal(4,3)", "decimal(13,3)"),
        ("float32", "float64", "float64"),
        ("[int8]", "[int64]", "[int64]"),
    ],
)
def test_types_become_wider(one: str, other: str, wider: str) -> None:
    assert str(joined(_type(one), _type(other))) == wider


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("int64", "float64"),
        ("decimal(12,2)", "float64"),
        ("text", "int64"),
        ("bool", "int8"),
        ("epoch(ms)", "int64"),
        ("timestamp(ms)", "timestamp(us)"),
        ("decimal(38,0)", "decimal(38,1)"),
        ("[text]", "text"),
    ],
)
def test_nothing_is_rounded_or_made_a_text(one: str, other: str) -> None:
    assert joined(_type(one), _type(other)) is None


def test_fields_come_behind_those_that_are_there() -> None:
    wider = joined(struct_of({"b": "int8", "a": "text"}), struct_of({"c": "bool", "b": "int64"}))
    assert wider is not None
    assert list(as_written(wider).items()) == [("b", "int64"), ("a", "text"), ("c", "bool")]


def test_what_is_beyond_has_places() -> None:
    one = struct_of({"id": "int32", "order": {"tags": ["text"]}})
    wider = struct_of({"id": "int64", "order": {"tags": ["text"], "lines": [{"n": "int64"}]}, "late": "bool"})
    more = beyond(one, wider)
    assert [place for place, _ in leaves(more)] == ["id", "order.lines[].n", "late"]
    assert beyond(wider, wider) is None


def _type(text: str) -> Type:
    return type_of([text[1:-1]] if text.startswith("[") else text)
