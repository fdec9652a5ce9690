"""Payloads that become CloudEvents, and events that become something else."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from connect_core.pipeline.digest import has_rows
from connect_core.pipeline.shaping import Pipeline, Shaped
from connect_core.sdk.batches import record_batch
from connect_core.sdk.records import Record, decode_headers
from tests.unit.pipeline.test_reshaping import bodies, shaped

PARSE = {"format": "json", "fields": {"order": "int64", "price": "decimal(9,2)", "at": "timestamp"}}
STEPS: list[dict[str, Any]] = [
    {"hoist": "data"},
    {"set": {"id": "{$.data.order}", "source": "/shop", "type": "order.placed"}},
    {"copy": {"data.at": "time"}},
]
EVENTS = {"format": "cloudevents", "fields": {"data": {"order": "int64", "price": "decimal(9,2)", "at": "timestamp"}}}
ORDER = b'{"order":9007199254740993,"price":12.50,"at":"2026-01-31T10:00:00.000001Z"}'
WHOLE = (
    b'{"specversion":"1.0","id":"9007199254740993","source":"/shop","type":"order.placed",'
    b'"time":"2026-01-31T10:00:00.000001Z","datacontenttype":"application/json","data":' + ORDER + b"}"
)


def binary(binding: str) -> dict[str, Any]:
    return {"format": "cloudevents", "mode": "binary", "binding": binding}


def with_headers(document: dict[str, Any], *some: Record) -> Shaped:
    return Pipeline(document).shape(record_batch(some, range(len(some))))


def test_json_becomes_an_event_and_an_event_json() -> None:
    document = {"parse": PARSE, "transforms": STEPS, "encode": {"format": "cloudevents"}}
    made = shaped(document, ORDER, b'{"order":null,"price":1,"at":null}')
    assert bodies(made) == [WHOLE]
    [reject] = made.rejected
    assert (reject.stage, reject.offset, reject.message) == ("encode", 1, "id: empty")
    back = shaped({"parse": EVENTS, "transforms": [{"extract": "data"}]}, WHOLE, b"{}")
    assert bodies(back) == [ORDER]
    [reject] = back.rejected
    assert (reject.stage, reject.original) == ("parse", b"{}")
    assert reject.message == "Not of format cloudevents: specversion: missing, or no value of an attribute"


def test_attributes_go_to_headers_and_come_back() -> None:
    document = {"parse": PARSE, "transforms": STEPS, "encode": binary("rocketmq")}
    made = with_headers(document, Record(ORDER, key="k", headers=(("site", "north"),)))
    [headers] = map(decode_headers, made.kept.column("headers").to_pylist())
    assert bodies(made) == [ORDER]
    assert made.kept.column("key").to_pylist() == ["k"]
    assert headers == {
        "site": "north",
        "CE_specversion": "1.0",
        "CE_id": "9007199254740993",
        "CE_source": "/shop",
        "CE_type": "order.placed",
        "CE_time": "2026-01-31T10:00:00.000001Z",
        "CE_contenttype": "application/json",
    }
    event = Record(ORDER, headers=tuple(headers.items()))
    steps = [{"filter": "$.source = '/shop' AND $.data.price > 12"}]
    whole = with_headers({"parse": EVENTS, "transforms": steps, "encode": {"format": "cloudevents"}}, event)
    assert bodies(whole) == [WHOLE]


def test_a_rejected_record_among_others_takes_its_headers_with_it() -> None:
    document = {"parse": EVENTS, "encode": binary("kafka")}
    records = [Record(WHOLE.replace(b"9007199254740993", b"%d" % n, 1), headers=(("n", str(n)),)) for n in range(4)]
    records[1] = Record(b"{}")
    made = with_headers({"transforms": [{"set": {"subject": "{$.id}"}}], **document}, *records)
    found = [decode_headers(one) for one in made.kept.column("headers").to_pylist()]
    assert [(one["n"], one["ce_id"], one["ce_subject"]) for one in found] == [(n, n, n) for n in "023"]
    assert made.kept.column("headers").type == pa.binary()


def test_events_that_nothing_changes_pass_as_they_came_and_rules_name_what_is_in_them() -> None:
    parse = {"format": "cloudevents"}
    assert has_rows({"parse": parse})
    rules = [{"name": "all", "keys": "{$.type}/{$.id}", "when": "$.source = '/shop'"}]
    mqtt = [(f"MQTT_USER_{name}", value) for name, value in {"specversion": "1.0", "source": "/shop"}.items()]
    in_headers = Record(b"\xff", headers=(*mqtt, ("MQTT_USER_id", "7"), ("MQTT_USER_type", "t"), ("a", "b")))
    made = with_headers({"parse": parse, "rules": rules}, Record(WHOLE), in_headers, Record(b"\xff"))
    assert bodies(made) == [WHOLE, b"\xff"]
    assert made.kept.column("key").to_pylist() == ["order.placed/9007199254740993", "t/7"]
    assert [one.offset for one in made.rejected] == [2]
