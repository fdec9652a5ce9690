"""JSON texts of rows: exact forms, slices, and rows that have none."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.rows import json_writing
from connect_core.rows.json_escaping import escaped
from connect_core.rows.json_writing import written
from connect_core.rows.schema import arrow_type
from connect_core.rows.types import struct_of
from tests.unit.rows.strategies import TEXTS


def rows(kind: object, *values: Any) -> pa.StructArray:
    return pa.array([{"x": value} for value in values], arrow_type(struct_of({"x": kind})))


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("int8", -128, "-128"),
        ("uint64", 2**64 - 1, "18446744073709551615"),
        ("float64", 1.0, "1.0"),
        ("float64", -0.0, "-0.0"),
        ("float64", 0.1, "0.1"),
        ("float32", np.float32(0.1), "0.1"),
        ("float64", 1e300, "1e+300"),
        ("float64", 5e-324, "5e-324"),
        ("decimal(38)", Decimal(10**38 - 1), "9" * 38),
        ("decimal(12,2)", Decimal("1.5"), "1.50"),
        ("decimal(12,6)", Decimal("-1e-6"), "-0.000001"),
        ("decimal(12,7)", Decimal("1e-7"), "0.0000001"),
        ("decimal(12,7)", Decimal("-12345.6"), "-12345.6000000"),
        ("decimal(38,38)", Decimal("-1e-38"), "-0." + "0" * 37 + "1"),
        ("decimal(38,10)", Decimal(0), "0.0000000000"),
        ("bool", True, "true"),
        ("text", 'a"\\\n\t\x01\x1f\x7f/\N{GRINNING FACE}', '"a\\"\\\\\\n\\t\\u0001\\u001f\x7f/\N{GRINNING FACE}"'),
        ("bytes", b"\1\2\3\4", '"AQIDBA=="'),
        ("date", dt.date(1, 2, 3), '"0001-02-03"'),
        ("time(s)", dt.time(3, 4, 5), '"03:04:05"'),
        ("time(ns)", 1, '"00:00:00.000000001"'),
        ("timestamp(ms)", dt.datetime(2026, 1, 2, 3, 4, 5, 123000, dt.UTC), '"2026-01-02T03:04:05.123Z"'),
        ("timestamp(ns)", -9_223_372_036 * 10**9, '"1677-09-21T00:12:44.000000000Z"'),
        ("timestamp(ns)", 2**63 - 1, '"2262-04-11T23:47:16.854775807Z"'),
        ("datetime(s)", dt.datetime(2026, 1, 2, 3, 4, 5), '"2026-01-02T03:04:05"'),
        ("epoch(ms)", dt.datetime(2023, 11, 14, 22, 13, 20, 123000, dt.UTC), "1700000000123"),
        (["epoch(s)"], [-1, None], "[-1,null]"),
        (["text"], [], "[]"),
        (["text"], ["a", None, '"'], '["a",null,"\\""]'),
        ({"a": "int8", "b": ["bool"]}, {"b": [None]}, '{"a":null,"b":[null]}'),
    ],
)
def test_each_type_has_one_form(kind: object, value: Any, text: str) -> None:
    """Also where others are missing, and in a slice."""
    whole = f'{{"x":{text}}}'.encode()
    assert written(rows(kind, value)) == (pa.array([whole], pa.binary()), [])
    some = rows(kind, value, None, value, None, value).slice(1, 3)
    assert written(some).values.to_pylist() == [b'{"x":null}', whole, b'{"x":null}']
    json.loads(whole)


def test_names_are_escaped_and_in_order() -> None:
    kind = arrow_type(struct_of({'b"\n': "int8", "a": "int8", "\N{LATIN SMALL LETTER E WITH ACUTE}": "int8"}))
    text = written(pa.array([{}], kind)).values[0].as_py().decode()
    assert text == '{"b\\"\\n":null,"a":null,"\N{LATIN SMALL LETTER E WITH ACUTE}":null}'


NAN, FAR = "JSON has neither NaN nor infinity", "too early or too late for a JSON text"


@pytest.mark.parametrize(
    ("kind", "fit", "unfit", "reason"),
    [
        ("float64", 1.0, float("nan"), f"x: {NAN}"),
        ("float32", 1.0, float("-inf"), f"x: {NAN}"),
        (["float64"], [1.0], [1.0, float("inf"), float("nan")], f"x[]: {NAN}"),
        ({"a": [{"b": "float32"}]}, {"a": []}, {"a": [None, {"b": float("nan")}]}, f"x.a[].b: {NAN}"),
        ("date", -719_528, -719_529, f"x: {FAR}"),
        ("date", 2_932_896, 2_932_897, f"x: {FAR}"),
        ("timestamp(s)", -719_528 * 86_400, -719_528 * 86_400 - 1, f"x: {FAR}"),
        ("datetime(us)", 2_932_897 * 86_400_000_000 - 1, 2_932_897 * 86_400_000_000, f"x: {FAR}"),
        ("datetime(ns)", -9_223_372_036 * 10**9, -9_223_372_036 * 10**9 - 1, f"x: {FAR}"),
        (["timestamp(ms)"], [0], [2**63 - 1], f"x[]: {FAR}"),
    ],
)
def test_rows_without_a_json_form_are_named(kind: object, fit: Any, unfit: Any, reason: str) -> None:
    some = rows(kind, unfit, fit, None, unfit, fit, unfit)
    got = written(some)
    assert got.unfit == [(0, reason), (3, reason), (5, reason)]
    assert got.values.equals(written(rows(kind, fit, None, fit)).values)
    assert written(some.slice(1, 3)).unfit == [(2, reason)]
    assert len(written(rows(kind, unfit)).values) == 0


@pytest.mark.parametrize("part", [1, 100])
def test_a_batch_is_written_in_parts(monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    some = rows(["text"], *([str(row)] * (row % 3) for row in range(50))).slice(7)
    whole = written(some)
    monkeypatch.setattr(json_writing, "PART", part)
    assert written(some) == whole


def test_a_missing_row_has_no_form() -> None:
    some = pa.array([{"x": 1}, None, {"x": 2}], arrow_type(struct_of({"x": "int8"})))
    assert written(some) == (pa.array([b'{"x":1}', b'{"x":2}'], pa.binary()), [(1, "no value")])


def test_what_is_beneath_a_missing_value_does_not_count() -> None:
    """Arrow lets a missing list have items, and a missing struct fields."""
    nan = pa.array([float("nan"), 1.0, float("nan")])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 3], pa.int32()), nan, mask=pa.array([True, False]))
    structs = pa.StructArray.from_arrays([nan.slice(0, 2)], ["y"], mask=pa.array([True, False]))
    got = written(pa.StructArray.from_arrays([lists, structs], ["l", "s"]))
    assert got == (pa.array([b'{"l":null,"s":null}'], pa.binary()), [(1, f"l[]: {NAN}")])


@given(st.lists(st.none() | TEXTS | st.text(st.sampled_from('\0\1\x1f\b\t\n\f\r "/\\a')), max_size=20), st.data())
def test_texts_are_escaped_as_by_the_standard_library(some: list[str | None], data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(some)))
    column = pa.array(some, pa.string()).slice(begin)
    got = escaped(column)
    got.validate(full=True)
    assert [text and json.loads(f'"{text}"') for text in got.to_pylist()] == some[begin:]
    assert [text and f'"{text}"' for text in got.to_pylist()] == [
        text and json.dumps(text, ensure_ascii=False) for text in some[begin:]
    ]
