"""CloudEvents -> rows: the examples of the specification and its bindings, and each reason why a record is none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from connect_core.rows.event_attributes import REQUIRED, check_event_rows, event_rows
from connect_core.rows.event_headers import BINDINGS
from connect_core.rows.event_reading import CloudEventReader
from connect_core.rows.json_reading import Read
from connect_core.rows.types import struct_of
from connect_core.sdk.records import encode_headers

Headers = Sequence[tuple[str, str]]
EVENT = {"specversion": "1.0", "type": "com.example.someevent", "source": "/mycontext", "id": "A234-1234-1234"}
IDS = {"id": "A234-1234-1234", "source": "/mycontext", "type": "com.example.someevent"}
FIELDS: dict[str, Any] = {"comexampleextension1": "text", "comexampleothervalue": "int32", "unsetextension": "text"}
XML = '<much wow="xml"/>'


def read(fields: dict[str, Any] | None, value: bytes | None, headers: Headers = (), **options: Any) -> Read:
    encoded = [encode_headers(headers) if headers else None]
    reader = CloudEventReader(event_rows(fields), **options)
    return reader.read(pa.array([value], pa.binary()), pa.array(encoded, pa.binary()))


def row(fields: dict[str, Any] | None, value: bytes | None, headers: Headers = (), **options: Any) -> dict[str, Any]:
    """What is there of the only row."""
    made = read(fields, value, headers, **options)
    assert made.unfit == []
    [found] = made.rows.to_pylist()
    return {name: one for name, one in found.items() if one is not None}


def why(fields: dict[str, Any] | None, value: bytes | None, headers: Headers = (), **options: Any) -> str:
    made = read(fields, value, headers, **options)
    assert len(made.rows) == 0
    [(at, reason)] = made.unfit
    assert at == 0
    return reason


def as_json(**more: Any) -> bytes:
    return json.dumps(EVENT | more).encode()


def in_headers(prefix: str, **more: str) -> list[tuple[str, str]]:
    return [(f"{prefix}{name}", value) for name, value in (EVENT | more).items()]


# ----------------------------------------------------------------------------------------- the specification's examples


@pytest.mark.parametrize(
    ("data", "event", "content_type", "payload", "made"),
    [
        ("bytes", {"data_base64": "AP8="}, "application/vnd.apache.thrift.binary", b"\0\xff", b"\0\xff"),
        ("text", {"data": XML}, "application/xml", XML.encode(), XML),
        ("bytes", {"data": XML}, "application/xml", XML.encode(), XML.encode()),
        ({"b": "int64"}, {"data": {"b": 5}}, "application/json", b'{"b":5}', {"b": 5}),
        ("float64", {"data": 1.5}, "application/json", b"1.5", 1.5),
        ("text", {"data": "I'm a string"}, "application/json", b'"I\'m a string"', "I'm a string"),
        ("bytes", {"data": "I'm a string"}, "a/b+json", b'"I\'m a string"', b'"I\'m a string"'),
        ({"xyz": "int8"}, {"data_base64": "eyAieHl6IjogMTIzIH0="}, None, b'{ "xyz": 123 }', {"xyz": 123}),
    ],
)  # fmt: skip
def test_an_event_of_the_json_format_and_the_same_in_headers(
    data: Any, event: dict[str, Any], content_type: str | None, payload: bytes, made: Any
) -> None:
    fields, more = FIELDS | {"data": data}, {"comexampleextension1": "value", "comexampleothervalue": "5"}
    typed = {} if content_type is None else {"datacontenttype": content_type}
    expected = IDS | typed | {"comexampleextension1": "value", "comexampleothervalue": 5, "data": made}
    whole = as_json(**typed, comexampleextension1="value", comexampleothervalue=5, unsetextension=None, **event)
    assert row(fields, whole) == expected
    for prefix, name in BINDINGS.values():
        said = [(name, content_type)] if content_type else []
        assert row(fields, payload, [*in_headers(prefix, **more), *said, ("other", "x")]) == expected


def test_data_of_a_json_event_without_a_content_type_is_json() -> None:
    assert row({"data": "text"}, as_json(data="x")) == IDS | {"datacontenttype": "application/json", "data": "x"}
    assert row(None, as_json(data={"n": 1.50})) == IDS | {"datacontenttype": "application/json", "data": b'{"n": 1.5}'}
    assert row(None, as_json()) == IDS, "data may be missing"
    assert row({"data": "int8"}, as_json(data=None)) == IDS | {"datacontenttype": "application/json"}


def test_a_time_keeps_its_nine_digits_unless_another_unit_is_declared() -> None:
    whole = as_json(time="2018-04-05t17:31:00.123456789+02:00")
    assert str(row(None, whole)["time"]) == "2018-04-05 15:31:00.123456789+00:00"
    assert why({"time": "timestamp(ms)"}, whole).startswith("time: not a moment with its zone that timestamp(ms) holds")


def test_the_content_type_says_the_mode() -> None:
    both = in_headers("CE_", id="other")
    structured = [("CE_contenttype", "Application/CloudEvents+json; charset=UTF-8")]
    assert row(None, as_json(), [*both, *structured])["id"] == IDS["id"], "attributes may stand in headers beside it"
    assert row(None, b"", both)["id"] == "other"
    avro = [("content-type", "application/cloudevents+avro")]
    assert why(None, as_json(), avro) == "an event that is not in JSON, says the content type"
    batch = [("content-type", "application/cloudevents-batch+json")]
    assert why(None, b"[]", batch) == "a batch of events, says the content type"


def test_headers_as_others_write_them() -> None:
    """HTTP in any case, percent-encoded or quoted; the SDK for RocketMQ; user properties of which one comes twice."""
    named = [("Ce-Specversion", "1.0"), ("CE-ID", "a%20%E2%82%AC"), ("ce-source", "/s"), ("ce-type", '"a \\"t\\""')]
    assert row(None, None, named) == {"id": "a €", "source": "/s", "type": 'a "t"'}
    assert why(None, None, [*named[:1], ("ce-id", "%C0%A0")]).endswith("percent-encoded, but not UTF-8")
    sdk = [*in_headers("CE_"), ("traceparent", "00-a"), ("CE_contenttype", "text/plain")]
    fields = {"traceparent": "text", "data": "text"}
    assert row(fields, b"\0", sdk) == IDS | {"datacontenttype": "text/plain", "traceparent": "00-a"}
    pairs = json.dumps([*EVENT.items(), ("unit", "a"), ("unit", "b")])
    assert row(None, b"1", [("MQTT_USER_PROPERTIES", pairs)]) == IDS | {"data": b"1"}
    wrong = [("MQTT_USER_PROPERTIES", "[1]")]
    assert why(None, b"1", wrong) == "header MQTT_USER_PROPERTIES: not a JSON list of pairs"


UNDECLARED = "a field that is not declared (unknown: drop leaves such out)"
NO_URI = "source: no URI or reference to one, as /shop/north (its characters are those of RFC 3986)"
NO_JSON = "data: datacontenttype is not JSON (data: text or bytes takes it)"
NO_UTF_8 = "data: its charset is not UTF-8 (data: bytes takes it as it is)"
UNDECLARED_HEADER = "an attribute that is not declared (unknown: drop leaves such out)"


def test_extensions_that_are_not_declared() -> None:
    whole, headers = as_json(seq=5, data=1), [*in_headers("ce_"), ("ce_seq", "5")]
    assert why(None, whole) == UNDECLARED
    assert why(None, b"1", headers) == UNDECLARED_HEADER
    assert row({"data": "int8"}, whole, unknown="drop")["data"] == 1
    assert row({"data": "int8"}, b"1", headers, unknown="drop")["data"] == 1
    assert why({"data": {"a": "int8"}}, as_json(data={"b": 1})).endswith(UNDECLARED)


def test_a_value_of_an_attribute_is_its_type_or_its_text() -> None:
    fields = {"seq": "int8", "on": "bool", "raw": "bytes", "at": "timestamp(s)", "said": "text"}
    typed = {"seq": -5, "on": True, "raw": "AP8=", "at": "2026-01-31T10:00:00Z", "said": 7}
    texts = {name: one if isinstance(one, str) else json.dumps(one) for name, one in typed.items()}
    made = row(fields, as_json(**typed))
    assert (made["seq"], made["on"], made["raw"], made["said"]) == (-5, True, b"\0\xff", "7")
    assert row(fields, as_json(**texts)) == made
    assert row(fields, None, in_headers("ce_", **texts)) == made
    assert why(fields, as_json(seq=128)) == "seq: not a whole number that int8 holds"
    assert why(fields, as_json(seq="x")) == "seq: not a whole number that int8 holds"
    assert why(fields, as_json(said=[1])) == "said: missing, or no value of an attribute"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "empty"),
        (b"", "empty"),
        (b"\xff", "not UTF-8"),
        (b"[]", "not one JSON object, and no header says that it is an event"),
        (b"{", "not JSON, from character 2 on"),
        (b'{"id":NaN}', "not JSON: NaN or infinity"),
        (b'{"id":"a","id":"b"}', "a member that is given more than once"),
        (b"{} {}", "more than one JSON object"),
        (b'{"data":' + b"[" * 100_000 + b"}", "not JSON: too many lists and objects in each other"),
        (b'{"data":"' + b"x" * (4 << 20) + b'"}', "longer than 4 MiB"),
        (b"{}", "specversion: missing, or no value of an attribute"),
        (as_json(specversion="0.3"), "specversion: not 1.0"),
        (as_json(id=None), "id: missing, and no event without it"),
        (as_json(id=""), "id: empty"),
        (as_json(id="a\nb"), "id: a control character, or what is no character"),
        (as_json(id="\ud800"), "id: a control character, or what is no character"),
        (as_json(source="a b"), NO_URI),
        (as_json(subject=""), "subject: empty"),
        (as_json(dataschema="/x"), "dataschema: no URI, as https://example.com/order.json"),
        (as_json(datacontenttype="json"), "datacontenttype: no media type, as application/json"),
        (as_json(time="today"), "time: not a moment with its zone that timestamp(ns) holds, as 2026-01-02T03:04:05Z"),
        (as_json(data=1, data_base64="AA=="), "data and data_base64: an event has one of them"),
        (as_json(data_base64=1234), "data_base64: not bytes as base64 text"),
        (as_json(data=1, datacontenttype="text/plain"), "data: no text, though datacontenttype is not JSON"),
        (as_json(data="x", datacontenttype="text/plain"), NO_JSON),
        (as_json(data=[]), "data: not a whole number that int8 holds"),
    ],
)  # fmt: skip
def test_what_is_no_event(value: bytes | None, reason: str) -> None:
    assert why({"data": "int8"}, value) == reason


@pytest.mark.parametrize(
    ("value", "more", "reason"),
    [
        (b"1,\"id\":\"x\"", [], "data: more than one JSON value"),
        (b"\xff", [], "data: not UTF-8"),
        (b"1", [("content-type", "text/plain")], NO_JSON),
        (b"1", [("content-type", "a/json;charset=latin1")], NO_UTF_8),
        (b"1", [("CE_specversion", "1.0")], "specversion: in headers of several bindings"),
        (b"1", [("ce_id", "2")], "id: given more than once"),
    ],
)  # fmt: skip
def test_what_is_no_event_in_headers(value: bytes, more: Headers, reason: str) -> None:
    assert why({"data": "int8"}, value, [*in_headers("ce_"), *more]) == reason
    lacking = [("ce_specversion", "1.0"), ("ce_id", "1"), ("ce_type", "t")]
    assert why({"data": "int8"}, b"1", lacking) == "source: missing, and no event without it"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"id": "text"}, "id is text in every event"),
        ({"specversion": "text"}, "specversion is always 1.0"),
        ({"time": "text"}, "time: text is no moment"),
        ({"contenttype": "text"}, "contenttype cannot name an attribute: RocketMQ's SDK"),
        ({"trace_parent": "text"}, "trace_parent cannot name an attribute"),
        ({"seq": "int64"}, "seq is int64, and attributes of events are text, bool, int8"),
    ],
)
def test_fields_that_no_event_has(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        event_rows(fields)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (
            {"id": "text", "source": "text", "data": "text"},
            "an event needs id, source, type, and the rows have no type",
        ),
        ({**dict.fromkeys(REQUIRED, "text"), "subject": "int64"}, "subject is int64: cast it to text"),
        ({**dict.fromkeys(REQUIRED, "text"), "time": "text"}, "time is text, and no moment: cast it to timestamp"),
        ({**dict.fromkeys(REQUIRED, "text"), "price": "decimal(9,2)"}, "hoist: data puts all fields into data"),
        ({**dict.fromkeys(REQUIRED, "text"), "order": {"id": "int64"}}, "order is an object"),
    ],
)
def test_rows_that_are_no_events(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_event_rows(struct_of(fields))
