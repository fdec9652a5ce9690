"""Rows through steps."""

from __future__ import annotations

import hashlib
from typing import Any

import pyarrow as pa
import pytest

from connect_core.pipeline.transforms.running import run
from connect_core.pipeline.transforms.steps import step_of
from connect_core.pipeline.transforms.working import TypedRows
from connect_core.rows.schema import arrow_type
from connect_core.rows.types import struct_of
from connect_core.sdk.testing.driving import records
from tests.unit.pipeline.transforms.stepping import checked_run, stepped, values

FIELDS = {"id": "int64", "user": {"name": "text", "born": "date", "at": {"zip": "text"}}, "tags": ["text"]}
ROWS: list[dict[str, Any]] = [
    {"id": 1, "user": {"name": "Ada", "born": None, "at": {"zip": "x"}}, "tags": ["a", "b"]},
    {"id": 300, "user": None, "tags": []},
    {"id": None, "user": {"name": None, "born": None, "at": None}, "tags": None},
]


def after(*written: Any) -> list[dict[str, Any]]:
    return values(stepped(written, FIELDS, ROWS))


def test_names_change_in_their_place_and_may_be_exchanged() -> None:
    rows = after({"rename": {"id": "tags", "tags": "id", "user.at.zip": "code", "user": "who"}})
    assert [list(row) for row in rows] == [["tags", "who", "id"]] * 3
    assert [row["who"] for row in rows] == [
        {"name": "Ada", "born": None, "at": {"code": "x"}},
        None,
        {"name": None, "born": None, "at": None},
    ]


def test_fields_are_dropped_and_kept() -> None:
    assert after({"drop": ["user.born", "tags", "user.at", "user.at.zip"]}) == [
        {"id": 1, "user": {"name": "Ada"}},
        {"id": 300, "user": None},
        {"id": None, "user": {"name": None}},
    ]
    assert [list(row) for row in after({"keep": ["tags", "id"]})] == [["tags", "id"]] * 3


def test_a_row_that_cannot_be_cast_is_unfit_and_says_which_step_and_field() -> None:
    done = stepped([{"cast": {"id": "int8", "user.name": "bool"}}], FIELDS, ROWS)
    assert [row["id"] for row in values(done)] == [None]
    assert done.places.tolist() == [2]
    assert done.unfit == [
        (0, "cast of user.name: this text is no bool"),
        (1, "cast of id: this int64 does not fit into int8 exactly"),
    ]


@pytest.mark.parametrize(("least", "kept"), [(2, [2, 4, 5, 6, 8, 9]), (6, [6, 8, 9]), (8, [8, 9]), (9, [9])])
def test_what_was_filtered_is_not_unfit_and_places_are_those_given(least: int, kept: list[int]) -> None:
    """Whether most of the rows are left or few of them."""
    rows = [{"n": place, "t": "x" if place in (1, 3, 7) else "1"} for place in range(10)]
    done = stepped([{"filter": f"$.n >= {least}"}, {"cast": {"t": "int8"}}], {"n": "int8", "t": "text"}, rows)
    assert done.places.tolist() == kept
    assert [place for place, _ in done.unfit] == [place for place in (3, 7) if place >= least]


def test_a_row_is_unfit_once_for_the_first_reason() -> None:
    done = stepped(
        [{"cast": {"b": "int8"}}, {"cast": {"a": "int8"}}], {"a": "text", "b": "text"}, [{"a": "x", "b": "y"}]
    )
    assert done.unfit == [(0, "cast of b: this text is no int8")]


def test_columns_that_no_step_touches_are_not_copied() -> None:
    shape = struct_of({**FIELDS, "more": {"text": "text", "id": "int64"}})
    struct = pa.array([{**row, "more": {"text": "x", "id": 1}} for row in ROWS], arrow_type(shape))
    steps = [
        {"cast": {"id": "text", "more.id": "text"}},
        {"rename": {"tags": "labels", "more.text": "words"}},
        {"set": {"new": 1, "more.new": "{topic}"}},
        {"mask": {"user.name": "hash"}},
        {"drop": ["user.born"]},
        {"filter": "$.id <> 'x' OR $.id IS NULL"},
        {"flatten": "_"},
    ]
    made = checked_run(steps, shape, struct).rows.struct
    assert texts_at(made.field("labels").flatten()) == texts_at(struct.field("tags").flatten())
    assert texts_at(made.field("more_words")) == texts_at(struct.field("more").field("text"))
    assert texts_at(made.field("more_id")) != texts_at(struct.field("more").field("text"))


def texts_at(column: pa.Array) -> int:
    """Where the bytes of these texts are in memory."""
    return int(column.buffers()[2].address)


def test_values_are_masked_and_nulls_stay() -> None:
    rows = after({"mask": {"user.name": "redact", "user.at": "hash", "id": "hash", "tags": "hash"}})
    assert [row["user"] and row["user"]["name"] for row in rows] == ["***", None, None]
    assert [row["id"] for row in rows] == [digest("1"), digest("300"), None]
    assert [row["tags"] for row in rows] == [digest('["a","b"]'), digest("[]"), None]
    assert [row["user"] and row["user"]["at"] for row in rows] == [digest('{"zip":"x"}'), None, None]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_structs_are_flattened() -> None:
    rows = after({"flatten": "."})
    assert rows[0] == {"id": 1, "user.name": "Ada", "user.born": None, "user.at.zip": "x", "tags": ["a", "b"]}
    assert rows[1] == {"id": 300, "user.name": None, "user.born": None, "user.at.zip": None, "tags": []}


def test_constants_and_templates_are_set_from_the_rows_before() -> None:
    rows = after({"set": {"id": "{$.id}/{topic[2]}", "was": "<{$.id}{$.user.name|TAGS}>", "user.at.n": 7, "ok": True}})
    assert [row["id"] for row in rows] == ["1/0", "300/1", "/2"]
    assert [row["was"] for row in rows] == ["<1Ada>", "<300>", "<>"]
    assert [row["user"] and row["user"]["at"] for row in rows] == [{"zip": "x", "n": 7}, None, None]
    assert list(rows[0]) == ["id", "user", "tags", "was", "ok"]


def test_rows_of_lines_have_their_file_and_the_line() -> None:
    rows = TypedRows(pa.array([{"id": 1}, {"id": 2}]), records([b"1;", b"2;"]), "/logs/app/x.log")
    steps = [{"set": {"from": "{file:name}+{file:offset} {payload:text}"}}, {"filter": "payload:text = '2;'"}]
    done = run([step_of(one) for one in steps], rows)
    assert values(done) == [{"id": 2, "from": "x.log+1 2;"}]


@pytest.mark.parametrize(
    ("condition", "places"),
    [
        ("$.id > 1", [1]),
        ("$.id IS NULL OR $.user IS NULL", [1, 2]),
        ("$.user.name = 'Ada' AND $.tags[-1] = 'b'", [0]),
        ("$.tags[0] IS NULL", [1, 2]),
        ("$.tags CONTAINS '\"b\"'", [0]),
        ("topic = 'site/1'", [1]),
        ("$.id > 1000", []),
    ],
)
def test_rows_are_filtered(condition: str, places: list[int]) -> None:
    assert stepped([{"filter": condition}], FIELDS, ROWS).places.tolist() == places


EVERY = [
    {"filter": "$.id IS NULL OR $.id > 0"},
    {"cast": {"user.born": "text", "id": "int16"}},
    {"mask": {"user.name": "hash"}},
    {"set": {"user.at.n": 1, "t": "{$.id}"}},
    {"rename": {"user.at.n": "m"}},
    {"drop": ["user.at.zip"]},
    {"flatten": "_"},
    {"keep": ["t", "user_at_m", "tags"]},
]


def test_there_may_be_no_rows() -> None:
    assert values(stepped(EVERY, FIELDS, [])) == []
    assert values(stepped([], FIELDS, ROWS)) == ROWS


def test_a_slice_is_as_good_as_a_copy() -> None:
    shape = struct_of(FIELDS)
    several = pa.array(ROWS * 3, arrow_type(shape))
    for begin in range(4):
        cut = several.slice(begin, 5)
        copied = pa.array(cut.to_pylist(), arrow_type(shape))
        assert values(checked_run(EVERY, shape, cut)) == values(checked_run(EVERY, shape, copied))
