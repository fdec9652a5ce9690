"""Rows -> CloudEvents, whole or with attributes in headers; and what stays of the headers that there were."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from connect_core.rows.event_attributes import event_rows
from connect_core.rows.event_headers import BINDINGS
from connect_core.rows.event_reading import CloudEventReader
from connect_core.rows.event_writing import CloudEventWriter, WrittenEvents
from connect_core.rows.schema import arrow_type
from connect_core.rows.types import Type
from connect_core.sdk.records import encode_headers, header_pairs
from tests.unit.rows.test_event_reading import EVENT, IDS, Headers, in_headers

WRITTEN = [name for name in BINDINGS if name != "http"]


def write(rows: Type, some: list[Any], mode: Any, binding: str, headers: Headers = ()) -> WrittenEvents:
    encoded = [encode_headers(headers) if headers else None] * len(some)
    return CloudEventWriter(rows, mode, binding).written(
        pa.array(some, arrow_type(rows)), pa.array(encoded, pa.binary())
    )


ORDER = event_rows({"data": {"id": "int64", "price": "decimal(9,2)"}, "seq": "int32"})
ROW = IDS | {"seq": 7, "data": {"id": 9007199254740993, "price": "12.5"}, "time": 1_000_000_000}


def order(**more: Any) -> dict[str, Any]:
    return ROW | {"data": {"id": 9007199254740993, "price": Decimal("12.50")}} | more


def test_a_whole_event() -> None:
    made = write(ORDER, [order()], "structured", "")
    assert made.values.to_pylist() == [
        b'{"specversion":"1.0","id":"A234-1234-1234","source":"/mycontext","type":"com.example.someevent",'
        b'"time":"1970-01-01T00:00:01Z","seq":7,"datacontenttype":"application/json",'
        b'"data":{"id":9007199254740993,"price":12.50}}'
    ]
    assert (made.headers.to_pylist(), made.unfit) == ([None], [])


@pytest.mark.parametrize("binding", WRITTEN)
def test_data_and_headers(binding: str) -> None:
    made = write(ORDER, [order(), order(data=None)], "binary", binding, [("site", "north")])
    assert made.values.to_pylist() == [b'{"id":9007199254740993,"price":12.50}', None]
    prefix, content_type = BINDINGS[binding]
    named = [*EVENT.items(), ("time", "1970-01-01T00:00:01Z"), ("seq", "7")]
    ordered = sorted((f"{prefix}{name}", value) for name, value in named)
    with_data, without = (header_pairs(one) for one in made.headers.to_pylist())
    assert with_data[0] == without[0] == ("site", "north"), "other headers stay"
    assert sorted(without[1:]) == ordered
    assert sorted(with_data[1:]) == sorted([*ordered, (content_type, "application/json")])


@pytest.mark.parametrize("mode", ["structured", "binary"])
@pytest.mark.parametrize("binding", WRITTEN)
@pytest.mark.parametrize("former", BINDINGS)
def test_a_new_event_has_nothing_of_the_one_that_the_record_was(mode: str, binding: str, former: str) -> None:
    """Nor of the type that its content had; what is no attribute stays."""
    old = [*in_headers(BINDINGS[former].prefix, subject="old", seq="1"), (BINDINGS[former].content_type, "a/b")]
    listed = json.dumps([("id", "old"), ("hops", "1"), ("hops", "2"), ("specversion", "1.0")])
    for kept in ([("MQTT_USER_hops", "1"), ("site", "north")], [("MQTT_USER_PROPERTIES", listed), ("site", "north")]):
        made = write(ORDER, [order()], mode, binding, [*old, *kept])
        [encoded] = made.headers.to_pylist()
        made_of = CloudEventReader(ORDER).read(made.values, made.headers)
        assert made_of.unfit == []
        [found] = made_of.rows.to_pylist()
        assert (found["id"], found["subject"], found["seq"]) == (IDS["id"], None, 7)
        assert "old" not in encoded.decode()
        assert "a/b" not in encoded.decode()
        assert "hops" in encoded.decode()
        assert ("site", "north") in header_pairs(encoded)


def test_what_user_properties_would_hide_is_not_written_beside_them() -> None:
    """The MQTT sink makes a user property of any header."""
    made = write(ORDER, [order()], "binary", "mqtt", [("type", "x"), ("MQTT_USER_subject", "x"), ("unit", "x")])
    [encoded] = made.headers.to_pylist()
    assert [name for name, value in header_pairs(encoded) if value == "x"] == ["unit"]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"id": None}, "id: missing, and no event without it"),
        ({"id": ""}, "id: empty"),
        ({"source": "a b"}, "source: no URI or reference to one"),
        ({"subject": "a\x01b"}, "subject: a control character"),
        ({"datacontenttype": "text/plain"}, "datacontenttype: not JSON, which the data is"),
        ({"datacontenttype": "a/json;charset=latin1"}, "datacontenttype: its charset is not UTF-8"),
    ],
)
@pytest.mark.parametrize("mode", ["structured", "binary"])
def test_rows_that_make_no_event(more: dict[str, Any], reason: str, mode: str) -> None:
    made = write(ORDER, [order(), order(**more), order()], mode, "kafka")
    assert (len(made.values), len(made.headers)) == (2, 2)
    [(at, told)] = made.unfit
    assert at == 1
    assert told.startswith(reason)


def test_an_empty_extension_is_written_in_no_header() -> None:
    rows = event_rows({"note": "text"})
    [(_, told)] = write(rows, [IDS | {"note": ""}], "binary", "kafka").unfit
    assert told == "note: empty, which no header can be (structured mode has it)"
    made = write(rows, [IDS | {"note": ""}], "structured", "")
    assert b'"note":""' in made.values[0].as_py()


def test_headers_that_are_not_utf_8_reject_their_record() -> None:
    values, headers = pa.array([b"1"], pa.binary()), pa.array([b"a\x01\xff\x02"], pa.binary())
    assert CloudEventReader(ORDER).read(values, headers).unfit == [(0, "headers: not UTF-8")]
    rows = pa.array([order()], arrow_type(ORDER))
    assert CloudEventWriter(ORDER, "binary", "kafka").written(rows, headers).unfit == [(0, "headers: not UTF-8")]
