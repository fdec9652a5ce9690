"""Types as documents have them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from connect_core.rows.schema import FORM, arrow_type
from connect_core.rows.types import as_written, struct_of, type_of

WRITTEN: dict[str, Any] = {
    "id": "uint64",
    "price": "decimal(12,2)",
    "who": {"name": "text", "born": "date", "at": ["epoch(ms)"]},
    "tags": ["text"],
    "noon": "time(us)",
    "moment": "timestamp(ns)",
    "local": "datetime(s)",
    "sound": "bytes",
}


def test_a_type_is_written_as_it_was_read() -> None:
    assert as_written(struct_of(WRITTEN)) == WRITTEN
    assert str(type_of({"a": ["decimal(3)"], "b": "timestamp"})) == "{a: [decimal(3,0)], b: timestamp(us)}"


def test_arrow_has_a_type_for_each() -> None:
    made = arrow_type(struct_of(WRITTEN))
    assert made.field("price").type == pa.decimal128(12, 2)
    assert made.field("moment").type == pa.timestamp("ns", "UTC")
    assert made.field("local").type == pa.timestamp("s")
    item = made.field("who").type.field("at").type.value_field
    assert (item.type, item.metadata) == (pa.timestamp("ms", "UTC"), {FORM: b"epoch"})


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({}, "fields needs at least one field"),
        ({"a": {}}, "a needs at least one field"),
        ({"a": "int63"}, "a: 'int63' is no type; did you mean int64"),
        ({"a": {"b": ["integer"]}}, r"a.b\[\]: 'integer' is no type"),
        ({"a": ["text", "text"]}, "a: a list has one type"),
        ({"a": 7}, "a: 7 is no type"),
        ({"a": "decimal(39,2)"}, r"a: decimal\(39,2\): at most 38 digits"),
        ({"a": "decimal(3,4)"}, "not more of them behind the point"),
        ({"a": "timestamp(h)"}, "a: .* is no type; did you mean timestamp"),
        ({"": "text"}, "'' is no name of a field"),
        ({"a\ud800": "text"}, "holds half of a surrogate pair"),
    ],
)
def test_what_is_no_type_is_named_with_its_place(written: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        struct_of(written)


def test_nesting_has_a_limit() -> None:
    deep: Any = "text"
    for _ in range(40):
        deep = [deep]
    with pytest.raises(ValueError, match="more than 20 lists and structs"):
        struct_of({"a": deep})
