"""Converters of keys in flat documents, as Kafka Connect and RocketMQ Connect name them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.config.test_peer_transforms import (
    JSON,
    JSON_SINK,
    SINK,
    SOURCE,
    Read,
    chain,
    kafka,
    made,
    read,
)

__all__ = ["read"]

KAFKA_JSON = "org.apache.kafka.connect.json.JsonConverter"
ROCKETMQ_JSON = "org.apache.rocketmq.connect.runtime.converter.record.json.JsonConverter"
AVRO = "io.confluent.connect.avro.AvroConverter"
KEYS = {"key.converter": KAFKA_JSON}
PLAIN_KEYS = {**KEYS, "key.converter.schemas.enable": "false"}
HOIST, INSERT = (
    kafka("HoistField$Value", field="line"),
    kafka("InsertField$Value", static_field="site", static_value="n"),
)
BOTH = kafka("ValueToKey", fields="site,line")
MQTT = {
    "connector.class": "MqttSourceConnector",
    "connect.topicname": "x",
    "mqttBrokerUrl": "tcp://localhost:1883",
    "sourceTopic": "a",
}


def test_a_key_of_several_fields_is_written_as_json(read: Read) -> None:
    checked = read({**SOURCE, **JSON, **PLAIN_KEYS, **chain(HOIST, INSERT, BOTH)})
    assert checked.data["encode"] == {"format": "json", "key_format": "json", "key_fields": ["site", "line"]}
    [record] = made(checked, b"foo")
    assert (record["key"], record["value"]) == ('{"site":"n","line":"foo"}', b'{"line":"foo","site":"n"}')


@pytest.mark.parametrize(("converter", "flavor"), [(KAFKA_JSON, "kafka"), (ROCKETMQ_JSON, "rocketmq")])
def test_or_in_an_envelope_for_the_product_of_the_converter(converter: str, flavor: str, read: Read) -> None:
    both = {"key.converter": converter, "value.converter": converter}
    checked = read({**SOURCE, **both, **chain(HOIST, kafka("ValueToKey", fields="line"))})
    assert checked.data["encode"] == {
        "format": "json-schema",
        "flavor": flavor,
        "key_format": "json-schema",
        "key_fields": ["line"],
    }
    [record] = made(checked, b"foo")
    assert json.loads(record["key"])["payload"] == json.loads(record["value"])["payload"] == {"line": "foo"}
    plain = {**both, "value.converter.schemas.enable": "false"}
    [record] = made(read({**SOURCE, **plain, **chain(HOIST, kafka("ValueToKey", fields="line"))}), b"foo")
    assert (json.loads(record["key"])["payload"], record["value"]) == ({"line": "foo"}, b'{"line":"foo"}')


def test_a_line_that_is_hoisted_is_an_object_whatever_its_field_is_called(read: Read) -> None:
    checked = read({**SOURCE, **JSON, **chain(kafka("HoistField$Value", field="text"))})
    assert [one["value"] for one in made(checked, b"foo")] == [b'{"text":"foo"}']


@pytest.mark.parametrize("keys", [KEYS, PLAIN_KEYS])
@pytest.mark.parametrize("more", [{}, {**JSON, **chain(HOIST)}])
def test_a_source_whose_records_have_no_key_takes_any_form_of_them(
    keys: dict[str, str], more: dict[str, Any], read: Read
) -> None:
    checked = read({**keys, **SOURCE, **more})
    words = "key.converter: accepted without effect: records have no key there, and no transform makes one"
    assert words in checked.notices
    assert "key_format" not in checked.data.get("encode", {})


def test_a_sink_reads_keys_as_the_text_that_they_are(read: Read) -> None:
    for keys, form in ((KEYS, "json-schema"), (PLAIN_KEYS, "json")):
        [notice] = [one for one in read({**SINK, **keys}).notices if one.startswith("key.converter:")]
        assert "keys pass as the text that they are; a native document" in notice
        assert f"parse: {{key_format: {form}, key_fields: {{id: int64}}}}" in notice
    assert "key.converter: keys pass as the text that they are" in read({**SINK, "key.converter": AVRO}).notices
    assert read({**JSON_SINK, **KEYS, **chain(kafka("ValueToKey", fields="id"), kafka("ExtractField$Key", field="id"))})


@pytest.mark.parametrize(
    ("flat", "fault"),
    [
        ({**SOURCE, **JSON, **chain(HOIST, BOTH)}, "transforms.b.fields: line 1: there is no field 'site'"),
        (
            {**SOURCE, **JSON, **chain(HOIST, INSERT, BOTH)},
            "key.converter: line 1: would write Struct{…}, a form of Java's: key.converter: org.apache.kafka.connect",
        ),
        (
            {**SOURCE, **JSON, **KEYS, **chain(HOIST, INSERT, BOTH, kafka("Flatten$Value"))},
            "transforms: line 1: a key is made of fields as they are at the end: put ValueToKey last",
        ),
        (
            {**SOURCE, **JSON, **KEYS, **chain(HOIST, INSERT, BOTH, kafka("ReplaceField$Value", exclude="line"))},
            "put ValueToKey last",
        ),
        (
            {**SOURCE, "value.converter": KAFKA_JSON, "key.converter": ROCKETMQ_JSON, **chain(HOIST, INSERT, BOTH)},
            "key.converter: line 1: writes for another product than value.converter",
        ),
        (
            {**SOURCE, **JSON, **KEYS, **chain(HOIST, INSERT, BOTH, kafka("ExtractField$Key", field="line"))},
            "key.converter: line 1: the key is one value here, which it would write as JSON: StringConverter",
        ),
        (
            {**SOURCE, "key.converter": AVRO},
            "key.converter: line 1: a key is one text here, and Avro is none: use Json",
        ),
        ({**MQTT, **PLAIN_KEYS}, "key.converter: line 1: keys do not become JSON here"),
    ],
)
def test_what_cannot_be_kept_is_a_fault(flat: dict[str, Any], fault: str, faults: Callable[..., list[str]]) -> None:
    told = faults(json.dumps(flat), suffix=".json")
    assert any(fault in one for one in told), told
