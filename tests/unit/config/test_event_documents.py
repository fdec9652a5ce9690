"""What a document says of CloudEvents and CSV: all that does not go together is a fault before anything runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from connect_core.config import Settings, check, load_document, read_text
from connect_core.config.ruling import pipeline_of

Faults = Callable[..., list[str]]

FILE, ROCKETMQ = "{file: {path: out.log}}", "{rocketmq: {connection: main, topic: events}}"
MQTT = "{mqtt: {host: broker, topic: a%s}}"
EVENTS = "parse: {format: cloudevents, fields: {data: text}}\n"
FIELDS = "parse: {format: json, fields: {id: int64}}\n"
SHAPE = "transforms: [hoist: data, set: {id: '{$.data.id}', source: /shop, type: order}]\n"
BINARY = "encode: {format: cloudevents, mode: binary}"


def document(rest: str, sink: str = ROCKETMQ) -> str:
    return f"version: 1\nname: x\nsource: {{file: {{path: 'logs/*.log'}}}}\nsink: {sink}\n{rest}\n"


@pytest.mark.parametrize(
    ("rest", "sink", "place", "words"),
    [
        ("parse: {format: cloudevents, fields: {seq: int64}}", ROCKETMQ, "parse", "seq is int64, and attributes of"),
        ("parse: {format: cloudevents, fields: {id: text}}", ROCKETMQ, "parse", "id is text in every event"),
        ("parse: {format: cloudevents, unknown: drop}", ROCKETMQ, "parse", "unknown goes with fields"),
        ("encode: {mode: binary}", ROCKETMQ, "encode", "mode goes with format cloudevents"),
        (FIELDS + BINARY, ROCKETMQ, "encode", "an event needs id, source, type"),
        (EVENTS + BINARY, FILE, "encode.mode", "binary needs headers, and file has none for events: use structured"),
        (EVENTS + BINARY, MQTT % ", protocol: '3.1.1'", "sink.mqtt.protocol", "3.1.1 has no user properties"),
        (EVENTS + BINARY, MQTT % ", content_type: a/b", "sink.mqtt.content_type", "would stand in for that of each"),
        (FIELDS + "encode: {format: csv, columns: [name]}", FILE, "encode", "columns: there is no field name"),
        (FIELDS + "encode: {format: csv, columns: [id, id]}", FILE, "encode", "two columns have the name 'id'"),
        (FIELDS + "encode: {format: csv, delimiter: '\"'}", FILE, "encode", "delimiter cannot be a quotation mark"),
        (FIELDS + "encode: {format: json, columns: [id]}", FILE, "encode", "columns goes with format csv"),
    ],
)
def test_what_cannot_be_is_a_fault_with_its_place(faults: Faults, rest: str, sink: str, place: str, words: str) -> None:
    found = faults(document(rest, sink))
    assert len(found) == 1, found
    assert found[0].startswith(f"{place}: ")
    assert words in found[0]


@pytest.mark.parametrize(
    ("sink", "binding"), [(ROCKETMQ, {"binding": "rocketmq"}), (MQTT % "", {"binding": "mqtt"}), (FILE, {})]
)
def test_the_sink_says_in_which_headers_attributes_go(settings: Settings, sink: str, binding: dict[str, str]) -> None:
    rest = FIELDS + SHAPE + "encode: {format: cloudevents}"
    [written] = read_text(document(rest, sink), where="test.yaml")
    made = pipeline_of(load_document(check(written, None, settings).data))
    assert made["encode"] == {"format": "cloudevents", **binding}
