"""What is named of rows means the same as in the JSON of these rows."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.pipeline.conditions import compiled
from connect_core.pipeline.fields import Fields
from connect_core.pipeline.rules import Rules
from connect_core.pipeline.transforms.row_fields import RowFields
from connect_core.rows.schema import arrow_type
from connect_core.rows.types import Type, struct_of
from connect_core.sdk.templates import reference
from connect_core.sdk.testing.driving import records
from tests.unit.pipeline.transforms import one_by_one

LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": st.integers(-128, 127),
    "int64": st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-9, 9),
    "uint64": st.integers(0, (1 << 64) - 1),
    "float64": st.floats() | st.sampled_from([-0.0, 5.0, 1e300, -1e19]),
    "float32": st.floats(width=32),
    "text": st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
    | st.sampled_from(["a", "5", "1e+30", "true"]),
    "bytes": st.binary(max_size=5),
    "date": st.integers(-719_528, 2_932_896),
    "time(us)": st.integers(0, 86_400 * 10**6 - 1),
    "timestamp(ms)": st.integers(-(10**13), 10**13),
    "datetime(s)": st.integers(-(10**10), 10**10),
    "epoch(ns)": st.integers(-(1 << 63), (1 << 63) - 1),
}
DECIMALS: dict[str, st.SearchStrategy[Any]] = {
    "decimal(9,0)": st.integers(-(10**9) + 1, 10**9 - 1).map(Decimal),
    "decimal(38,0)": st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal),
    "decimal(12,2)": st.integers(-(10**12) + 1, 10**12 - 1).map(lambda number: Decimal(f"{number}e-2")),
    "decimal(38,20)": st.integers(-(10**38) + 1, 10**38 - 1).map(lambda number: Decimal(f"{number}e-20")),
}


@st.composite
def shapes(draw: st.DrawFn) -> Any:
    """Of one field: a leaf, or lists and structs of leaves that are no decimals, whose digits JSON's readers lose."""
    if draw(st.booleans()):
        return draw(st.sampled_from([*LEAVES, *DECIMALS]))
    inner = st.sampled_from(list(LEAVES))
    return draw(
        st.recursive(
            inner,
            lambda of: st.one_of(of.map(lambda one: [one]), st.fixed_dictionaries({"a": of, "b c": inner})),
            max_leaves=4,
        )
    )


def values(shape: Any, *, inside: bool = False) -> st.SearchStrategy[Any]:
    """No negative zero inside lists and structs: their texts have one zero, that of untyped JSON is as it was sent."""
    if isinstance(shape, dict):
        fields = {name: values(of, inside=True) for name, of in shape.items()}
        made: st.SearchStrategy[Any] = st.fixed_dictionaries(fields)
    elif isinstance(shape, list):
        made = st.lists(values(shape[0], inside=True), max_size=3)
    else:
        made = (LEAVES | DECIMALS)[shape]
        if inside and shape.startswith("float"):
            made = made.map(lambda number: number + 0.0)
    return st.none() | made


def as_json(value: Any, one: Type) -> Any:
    """For orjson."""
    if value is None:
        return None
    if one.kind == "struct":
        return {name: as_json(value[name], of) for name, of in one.fields}
    if one.item is not None:
        return [as_json(inner, one.item) for inner in value]
    if one.kind in ("bytes", "date", "time", "timestamp", "datetime"):
        return one_by_one.text(value, one)
    if one.kind == "decimal":
        return orjson.Fragment(f"{value:f}")
    if one.kind == "float32":
        return orjson.Fragment(one_by_one.text(value, one)) if math.isfinite(value) else None
    return value


@st.composite
def pairs(draw: st.DrawFn) -> tuple[RowFields, Fields, Any]:
    """The same rows, in columns (of a slice) and as JSON."""
    written = {"x": draw(shapes()), "y": draw(st.sampled_from(list(LEAVES)))}
    shape = struct_of(written)
    rows = draw(st.lists(st.fixed_dictionaries({name: values(of) for name, of in written.items()}), max_size=6))
    begin = draw(st.integers(0, 2))
    struct = pa.array(rows, arrow_type(shape)).slice(begin)
    bodies: list[bytes | None] = [orjson.dumps(as_json(row, shape)) for row in rows[begin:]]
    batch = pa.RecordBatch.from_struct_array(struct)
    return RowFields(batch, records([None] * len(bodies))), Fields(records(bodies)), written["x"]


NAMES = ["$.x", "$.y", "$.x.a", "$.x['b c']", "$.x[0]", "$.x[-1]", "$.x[1].a", "$.x.a.a", "$.x[0][0]", "$.z", "$.x.z"]
CONDITIONS = [
    "{} > 5",
    "{} = 5",
    "{} <> 5.5",
    "{} BETWEEN -1 AND 100",
    "{} = 'a'",
    "{} IN ('5', 'true', 'a')",
    "{} CONTAINS 'a'",
    "{} NOT STARTSWITH '2'",
    "{} IS NULL",
    "{}",
    "{} = TRUE",
    "{} >= $.y",
    "{} = 9223372036854775807",
]


def plain(values: list[Any]) -> list[Any]:
    return [(type(one), repr(one)) for one in values]


@given(pairs())
def test_rows_mean_what_their_json_means(pair: tuple[RowFields, Fields, Any]) -> None:
    rows, parsed, shape = pair
    for name in NAMES:
        one, other = rows.column(reference(name)), parsed.column(reference(name))
        assert plain(one.values) == plain(other.values), name
        assert one.missing.tolist() == other.missing.tolist()
        assert one.some_missing == other.some_missing
        if not str(shape).startswith("decimal"):
            assert one.written.to_pylist() == other.written.to_pylist(), name
        for condition in CONDITIONS:
            text = condition.replace("{}", name)
            assert compiled(text)(rows).tolist() == compiled(text)(parsed).tolist(), text


FIELDS = {"id": "int64", "price": "decimal(38,20)", "of": {"price": "decimal(9,2)", "at": "date"}}
ROWS = [
    {"id": 1, "price": Decimal("1234567890123456.00000000000000000001"), "of": {"price": Decimal("12.50"), "at": None}},
    {"id": 2, "price": Decimal("1e-20"), "of": None},
    {"id": 3, "price": None, "of": {"price": None, "at": None}},
]


def fields() -> RowFields:
    struct = pa.array(ROWS, arrow_type(struct_of(FIELDS)))
    return RowFields(pa.RecordBatch.from_struct_array(struct), records([b"1", b"2", b"3"], topic=["a", "b", "a"]))


def test_decimals_are_numbers_in_conditions_and_have_all_digits_in_texts() -> None:
    prices = fields().column(reference("$.price"))
    assert prices.values == [1234567890123456.0, 1e-20, None]
    assert prices.written.to_pylist() == ["1234567890123456.00000000000000000001", "0.00000000000000000001", ""]
    assert fields().column(reference("$.of")).written.to_pylist() == [
        '{"price":12.50,"at":null}',
        "",
        '{"price":null,"at":null}',
    ]


@pytest.mark.parametrize("part", ["where", "behind"])
def test_some_of_the_rows_have_their_records(part: str) -> None:
    some = fields().where(np.array([False, True, True])) if part == "where" else fields().behind(1)
    assert len(some) == 2
    assert some.column(reference("$.id")).values == [2, 3]
    assert some.column(reference("topic")).values == ["b", "a"]


def test_rules_work_on_rows() -> None:
    rules = Rules(
        [{"name": "r", "filter": "a", "when": "$.id >= 1 AND $.price > 0", "to": "t", "keys": "{$.of.price}"}]
    )
    outputs, passed, rows = rules.shaped(fields())
    assert (passed.tolist(), rows) == ([True, False, False], 3)
    assert outputs.column("key").to_pylist() == ["12.50"]


def test_a_column_that_nobody_names_is_not_read() -> None:
    """A text that is none would be an error."""
    broken = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    rows = pa.RecordBatch.from_arrays([pa.array([1]), broken], names=["id", "broken"])
    assert compiled("$.id = 1")(RowFields(rows, records([b""]))).tolist() == [1]
