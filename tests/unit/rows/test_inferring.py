"""Suggested fields: what a sample says, and what it leaves open."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.rows.inferring import Inferred, inferred
from connect_core.rows.json_reading import JsonReader
from connect_core.rows.types import as_written, struct_of


def of(*values: Any) -> Inferred:
    return inferred(json.dumps(value).encode() for value in values)


def fields(*values: Any) -> dict[str, Any]:
    found = of(*values)
    assert found.rows is not None
    return as_written(found.rows)


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ([{"a": 1, "b": "x"}, {"b": None, "c": True}], {"a": "int64", "b": "text", "c": "bool"}),
        ([{"a": 1}, {"a": 1.5}], {"a": "float64"}),
        ([{"a": 1 << 63}], {"a": "uint64"}),
        ([{"a": 1 << 64}], {"a": "decimal(38,0)"}),
        ([{"a": 1 << 63}, {"a": -1}], {"a": "decimal(38,0)"}),
        ([{"a": {"b": [{"c": 1}, {"d": "x"}]}}], {"a": {"b": [{"c": "int64", "d": "text"}]}}),
    ],
)
def test_types(values: list[Any], written: dict[str, Any]) -> None:
    assert fields(*values) == written


@pytest.mark.parametrize(
    ("values", "written", "remark"),
    [
        ([{"a": 1}, {"a": "x"}, {"a": "y"}], {"a": "text"}, "a: of several types (text 2 times, whole number 1 times)"),
        ([{"a": None}], {"a": "text"}, "a: nothing but null was there; text is a guess"),
        ([{"a": []}], {"a": ["text"]}, "a: no list had an item; text is a guess"),
        ([{"a": {}, "b": 1}], {"b": "int64"}, "a: an object without fields, which has no type: left out"),
        ([{"": 1, "b": 1}], {"b": "int64"}, "the payload: a field without a name, left out"),
        ([{"a": {"b": None}}], {"a": {"b": "text"}}, "a.b: nothing but null"),
    ],
)
def test_what_the_sample_leaves_open_is_said(values: list[Any], written: dict[str, Any], remark: str) -> None:
    found = of(*values)
    assert found.rows is not None
    assert as_written(found.rows) == written
    assert any(one.startswith(remark) for one in found.remarks), found.remarks


def test_what_is_no_object_is_counted() -> None:
    found = inferred([b"no JSON", b"[1]", b'{"a": 1}', b"[" * 100_000])
    assert (found.read, found.unread) == (1, 3)
    assert inferred([b"7"]).rows is None
    assert inferred([b"{}"]).rows is None


def test_what_a_run_would_reject_is_not_read() -> None:
    bodies = ['{"a": 1}'.encode("utf-16"), b'\xef\xbb\xbf{"a": 1}', b'{"a": 1e999}', b'{"a": NaN}', b'{"a": 1, "a": 2}']
    assert inferred(bodies)[2:] == (0, len(bodies))
    half = inferred([b'{"a": 1, "\\ud800": 2}'])
    assert half.rows is not None
    assert as_written(half.rows) == {"a": "int64"}


def test_nesting_ends_somewhere() -> None:
    deep: Any = 1
    for _ in range(100):
        deep = {"a": deep}
    found = of({"x": 1, "deep": deep})
    assert found.rows is not None
    struct_of(as_written(found.rows))
    assert any("nested too deep" in one for one in found.remarks)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 62), 1 << 62) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(st.lists(st.dictionaries(st.text(min_size=1, max_size=3), VALUES, max_size=4), min_size=1, max_size=4))
def test_where_nothing_is_left_open_the_sample_fits(values: list[dict[str, Any]]) -> None:
    found = of(*values)
    guesses = ("nothing but null was there; text is a guess", "no list had an item; text is a guess")
    if found.rows is not None and all(one.endswith(guesses) for one in found.remarks):
        import pyarrow as pa

        bodies = pa.array([json.dumps(value).encode() for value in values], pa.binary())
        assert JsonReader(struct_of(as_written(found.rows))).read(bodies).unfit == []
