"""How two documents differ."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.ledger.differences import differences

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(st.text(max_size=2), JSON, max_size=3)


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, ["a.c: 2 -> 3"]),
        ({"a": 1}, {"b": [2]}, ["a: removed 1", "b: added [2]"]),
        ({"a": [1, {"x": 1}]}, {"a": [1, {"x": 2}, 3]}, ["a[1].x: 1 -> 2", "a[2]: added 3"]),
        ({"a": [1, 2]}, {"a": [1]}, ["a[1]: removed 2"]),
        ({"a": {"b": 1}}, {"a": "b"}, ['a: {"b": 1} -> "b"']),
        ({"a": True}, {"a": 1}, ["a: true -> 1"]),
        ({"a": None}, {}, ["a: removed null"]),
    ],
)
def test_each_changed_field_is_a_line(old: dict[str, Any], new: dict[str, Any], lines: list[str]) -> None:
    assert differences(old, new) == lines


@given(DOCUMENTS, DOCUMENTS)
def test_no_line_means_equal(old: dict[str, Any], new: dict[str, Any]) -> None:
    same = json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True)
    assert (differences(old, new) == []) == same
