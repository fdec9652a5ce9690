"""Steps that put fields elsewhere: into an object and out of it, to another place, into key, tags and headers."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

from connect_core.pipeline.transforms.running import run
from connect_core.pipeline.transforms.steps import step_of
from connect_core.pipeline.transforms.working import TypedRows
from connect_core.rows.schema import arrow_type
from connect_core.rows.types import struct_of
from connect_core.sdk.records import encode_headers, header_pairs
from connect_core.sdk.testing.driving import records
from tests.unit.pipeline.transforms.stepping import stepped, values

FIELDS = {"id": "int64", "who": {"name": "text", "card": "text"}}
ROWS = [{"id": 1, "who": {"name": "Ann", "card": "a"}}, {"id": None, "who": None}]


def test_hoist_and_extract_are_each_others_inverse() -> None:
    hoisted = stepped([{"hoist": "order"}], FIELDS, ROWS)
    assert values(hoisted) == [{"order": one} for one in ROWS]
    assert values(stepped([{"hoist": "order"}, {"extract": "order"}], FIELDS, ROWS)) == ROWS


def test_extract_rejects_a_row_without_the_object() -> None:
    done = stepped([{"extract": "who"}], FIELDS, ROWS)
    assert values(done) == [{"name": "Ann", "card": "a"}]
    assert done.unfit == [(1, "extract of who: it is missing")]


def test_copy_keeps_types_and_takes_what_was_there_before() -> None:
    done = stepped([{"copy": {"who.name": "name", "id": "who.name"}}], FIELDS, ROWS)
    assert values(done) == [
        {"id": 1, "who": {"name": 1, "card": "a"}, "name": "Ann"},
        {"id": None, "who": None, "name": None},
    ]


FIELDS_OF_ALL = {"t": "text", "n": "int32", "d": "decimal(6,2)", "b": "bool", "at": "timestamp(ms)", "day": "date"}


def test_mask_with_another_value_keeps_the_type_and_what_is_missing() -> None:
    ways = {"t": "x", "n": 0, "d": "0.00", "b": False, "at": "1970-01-01T00:00:00Z", "day": "1970-01-01"}
    step = {"mask": {name: {"with": value} for name, value in ways.items()}}
    done = stepped([step, {"cast": {"at": "text", "day": "text", "d": "text"}}], FIELDS_OF_ALL, [{"t": "a", "n": 7}])
    assert values(done) == [{"t": "x", "n": 0, "d": None, "b": None, "at": None, "day": None}]


@pytest.mark.parametrize(
    ("step", "fields", "words"),
    [
        ({"mask": {"n": {"with": "x"}}}, {"n": "int32"}, "n: x is no int32"),
        ({"mask": {"n": {"with": 1 << 31}}}, {"n": "int32"}, "is no int32"),
        ({"mask": {"n": {"with": "x"}}}, {"n": ["text"]}, "with is for single values, and n is [text]"),
        ({"hoist": "a.b"}, {"n": "int32"}, "a.b is a path: hoist takes one name"),
        ({"extract": "n"}, {"n": "int32"}, "n is int32, and has no fields"),
        ({"copy": {"n": "m", "o": "m"}}, {"n": "int32", "o": "text"}, "two fields come to m"),
        ({"filter_out": {"pattern": "(", "fields": ["n"]}}, {"n": "text"}, "pattern is not one of RE2"),
        ({"filter_out": {"pattern": "a", "fields": ["n"]}}, {"n": "int32"}, "n is int32, and no text"),
        ({"filter_out": "a"}, {"n": "int32"}, "needs a pattern and fields"),
        ({"record": {}}, {"n": "int32"}, "needs a mapping"),
        ({"record": {"topic": "x"}}, {"n": "int32"}, "sets key, tags and headers, not topic"),
        ({"record": {"headers": {"WAYBILL": "x"}}}, {"n": "int32"}, "is Waybill's own"),
        ({"record": {"headers": {"KEYS": "x"}}}, {"n": "int32"}, "set key"),
        ({"record": {"headers": {"a\x01": "x"}}}, {"n": "int32"}, "is no name of a header"),
        ({"record": {"key": 1}}, {"n": "int32"}, "1 is no text"),
        ({"record": {"key": "{$.m}"}}, {"n": "int32"}, "names no field"),
    ],
)
def test_a_fault_says_what_is_wrong(step: dict[str, Any], fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        step_of(step).after(struct_of(fields))


def test_rows_with_a_text_of_the_pattern_are_left_out() -> None:
    given = [{"level": "DEBUG"}, {"level": "xDEBUG"}, {"level": None}, {"level": "INFO", "note": "DEBUGGED"}]
    step = {"filter_out": {"pattern": "DEBUG.*|TRACE", "fields": ["level", "note"]}}
    done = stepped([step], {"level": "text", "note": "text"}, given)
    assert done.places.tolist() == [1, 2]


def marked(step: dict[str, Any], headers: list[bytes | None], ids: list[str | None]) -> Any:
    shape = struct_of({"id": "text"})
    given = records([b""] * len(ids), headers=headers, key=["old"] * len(ids), topic=["t"] * len(ids))
    rows = TypedRows(pa.array([{"id": one} for one in ids], arrow_type(shape)), given)
    return run([step_of({"record": step})], rows)


def test_a_record_gets_key_tags_and_headers_from_its_fields() -> None:
    done = marked(
        {"key": "{$.id}", "tags": "v{$.id}", "headers": {"id": "{$.id}", "to": "{topic}"}}, [None] * 2, ["1", None]
    )
    made = done.rows.records
    assert made.column("key").to_pylist() == ["1", None]
    assert made.column("tags").to_pylist() == ["v1", "v"]
    assert [header_pairs(one) for one in made.column("headers").to_pylist()] == [
        [("id", "1"), ("to", "t")],
        [("to", "t")],
    ]


def test_headers_of_a_name_are_replaced_wherever_and_however_often_they_stand() -> None:
    pairs = [("a", "1"), ("b", "2"), ("b", "3"), ("ab", "4"), ("c", "5"), ("b", "6")]
    whole = encode_headers(pairs)
    given: list[bytes | None] = [whole, whole[:-1], encode_headers([("b", "1")]), None]
    done = marked({"headers": {"b": "new", "c": None}}, given, ["x"] * 4)
    kept = [("a", "1"), ("ab", "4"), ("b", "new")]
    found = [header_pairs(one) for one in done.rows.records.column("headers").to_pylist()]
    assert found == [kept, kept, [("b", "new")], [("b", "new")]]


def test_dropping_the_last_header_leaves_none() -> None:
    done = marked({"headers": {"b": None}}, [encode_headers([("b", "1"), ("b", "2")]), None], ["x", "y"])
    assert done.rows.records.column("headers").to_pylist() == [None, None]


def test_a_value_that_would_tear_headers_apart_rejects_its_record() -> None:
    done = marked({"headers": {"id": "{$.id}"}}, [None, None], ["a\x02b\x01c", "fine"])
    assert done.unfit == [(0, "header id: its value holds what separates headers")]
    assert [header_pairs(one) for one in done.rows.records.column("headers").to_pylist()] == [[("id", "fine")]]
