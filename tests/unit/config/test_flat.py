"""Flat documents of RocketMQ Connect become native ones, once; nothing in them is passed over in silence."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connect_core.config import Settings, check, read_text
from connect_core.config.checking import Checked
from connect_core.errors import ConfigError
from connect_core.systems.mqtt import compatibility as mqtt_keys

SOURCE = {
    "connector.class": "org.apache.rocketmq.connect.file.FileSourceConnector",
    "filename": "in.log",
    "connect.topicname": "lines",
}
SINK = {"connector.class": "FileSinkConnector", "filename": "out.txt", "connect.topicnames": "a;b,c"}

Read = Callable[[dict[str, Any]], Checked]


@pytest.fixture
def read(home: Path, settings: Settings) -> Read:
    def checked(flat: dict[str, Any]) -> Checked:
        (written,) = read_text(json.dumps(flat), where="x.json", suffix=".json")
        found = check(written, home, settings, "given")
        return replace(found, notices=tuple(one for one in found.notices if not one.startswith("schedule.window")))

    return checked


@pytest.mark.parametrize(
    ("flat", "way"),
    [(SOURCE, "on_change"), (SINK, "on_change"), ("MqttSink", "on_change"), ("MqttSource", "continuous")],
)
def test_a_connector_is_always_at_work_as_in_rocketmq_connect(flat: Any, way: str, read: Read) -> None:
    """A run begins when there is something, and follows its source; an MQTT broker does not show that."""
    given = {"MqttSink": MQTT_SINK, "MqttSource": MQTT_SOURCE}.get(flat, flat) if isinstance(flat, str) else flat
    assert read(given).data["schedule"] == {way: True, "window": "60s"}


def test_a_file_source(read: Read, home: Path) -> None:
    checked = read(SOURCE)
    assert checked.data == {
        "version": 1,
        "name": "given",
        "source": {"file": {"path": str(home.parent / "in.log")}},
        "sink": {"rocketmq": {"connection": "main", "topic": "lines"}},
        "schedule": {"on_change": True, "window": "60s"},
    }
    assert checked.notices == ()


@pytest.mark.parametrize(
    ("given", "start"),
    [
        ({}, "group:connect-given or as-new-group"),
        ({"name": "own"}, "group:connect-own or as-new-group"),
        ({"consume.from.where": "CONSUME_FROM_LAST_OFFSET"}, "group:connect-given or as-new-group"),
        ({"consume.from.where": "CONSUME_FROM_FIRST_OFFSET"}, "group:connect-given or earliest"),
        ({"task.group.id": "g"}, "group:g or as-new-group"),
        ({"task.group.id": "g", "consume.from.where": "CONSUME_FROM_FIRST_OFFSET"}, "group:g or earliest"),
        ({"consume.from.where": "CONSUME_FROM_FIRST_OFFSET", "task.group.id": ""}, "group:connect-given or earliest"),
    ],
)
def test_a_sink_goes_on_where_rocketmq_connect_would(read: Read, home: Path, given: dict[str, Any], start: str) -> None:
    """Its group has the offsets; `consume.from.where` is asked where that has none. What was sent while a connector
    moves here is not left out."""
    checked = read({**SINK, **given})
    assert checked.data["source"] == {"rocketmq": {"connection": "main", "topics": ["a", "b", "c"], "start": start}}
    assert checked.data["sink"] == {"file": {"path": str(home.parent / "out.txt")}}
    group, otherwise = start.removeprefix("group:").split(" or ")
    (notice,) = checked.notices
    assert f"the offset of the consumer group {group}, " in notice
    words = {"as-new-group": "where RocketMQ lets a new group begin", "earliest": "at the oldest message"}
    assert f"and where it has none {words[otherwise]}. " in notice


@pytest.mark.parametrize(
    "name",
    [
        "FileSourceConnector",
        "FileSource",
        "org.apache.rocketmq.connect.file.FileSource",
        "org.apache.rocketmq.connect.file.FileSourceConnector",
    ],
)
def test_java_names_and_aliases(name: str, read: Read) -> None:
    assert "file" in read({**SOURCE, "connector.class": name}).data["source"]


def test_the_name_is_the_documents_own_or_its_files(read: Read, home: Path, settings: Settings) -> None:
    assert read({**SOURCE, "name": "own"}).document.name == "own"
    file = home.parent / "my lines.properties"
    (written,) = read_text("\n".join(f"{k}={v}" for k, v in SOURCE.items()), where="x", suffix=".properties", file=file)
    assert check(written, home, settings).document.name == "my-lines"


def test_topic_wins_over_connect_topicname(read: Read) -> None:
    checked = read({**SOURCE, "topic": "chosen"})
    assert checked.data["sink"]["rocketmq"]["topic"] == "chosen"
    assert checked.notices == ("topic and connect.topicname differ: topic is used",)
    assert read({"topic": "first", **SOURCE}).data["sink"]["rocketmq"]["topic"] == "first"


def test_errors_and_bytes_through(read: Read) -> None:
    converter = "org.apache.rocketmq.connect.runtime.converter.record.ByteArrayConverter"
    checked = read({**SOURCE, "errors.tolerance": "ALL", "value.converter": converter, "max.tasks": "1"})
    assert checked.data["errors"] == {"tolerance": "all"}
    assert checked.notices == ("value.converter: accepted without effect: records pass as the bytes they are",)


JSON_CONVERTERS = (
    "org.apache.rocketmq.connect.runtime.converter.record.json.JsonConverter",
    "org.apache.kafka.connect.json.JsonConverter",
)


@pytest.mark.parametrize("converter", JSON_CONVERTERS)
@pytest.mark.parametrize(
    ("enabled", "words"),
    [
        ({}, "envelopes with their schema; a native document (waybill init SOURCE SINK) reads their fields by parse: "),
        ({"value.converter.schemas.enable": "true"}, "parse: {format: json-schema, fields: {id: int64}}"),
        ({"value.converter.schemas.enable": "false"}, "bytes they are, JSON; a native document"),
    ],
)
def test_json_in_a_topic_passes_as_it_is_and_is_told(
    converter: str, enabled: dict[str, str], words: str, read: Read
) -> None:
    checked = read({**SINK, "value.converter": converter, **enabled})
    assert not checked.document.reshapes
    [notice] = [one for one in checked.notices if one.startswith("value.converter")]
    assert words in notice


@pytest.mark.parametrize("converter", JSON_CONVERTERS)
def test_lines_are_not_made_json_by_a_flat_document(converter: str, faults: Callable[..., list[str]]) -> None:
    told = faults(json.dumps({**SOURCE, "value.converter": converter}), suffix=".json")
    assert any("value.converter: line 1: lines do not become JSON" in one for one in told), told
    assert any("encode: {format: json-schema}" in one for one in told), told


@pytest.mark.parametrize(
    ("converter", "words"),
    [
        (
            "io.confluent.connect.avro.AvroConverter",
            "parse: {format: avro, framing: registry, registry: {url: …}, fields",
        ),
        ("org.apache.rocketmq.schema.avro.AvroConverter", "nothing here reads what RocketMQ's registry begins with"),
        (
            "io.confluent.connect.protobuf.ProtobufConverter",
            "parse: {format: protobuf, framing: registry, registry: {url: …}, fields",
        ),
    ],
)
def test_values_with_a_schema_pass_as_they_are_and_are_told(
    converter: str, words: str, read: Read, faults: Callable[..., list[str]]
) -> None:
    more = {
        "value.converter.schema.registry.url": "http://localhost:8081",
        "value.converter.auto.register.schemas": "1",
    }
    checked = read({**SINK, "value.converter": converter, **more})
    assert not checked.document.reshapes
    [notice] = [one for one in checked.notices if one.startswith("value.converter")]
    assert words in notice
    told = faults(json.dumps({**SOURCE, "value.converter": converter}), suffix=".json")
    word = "Protobuf" if "protobuf" in converter else "Avro"
    assert any(f"value.converter: line 1: lines do not become {word} here" in one for one in told), told


def test_avro_is_not_changed_as_if_it_were_text(faults: Callable[..., list[str]]) -> None:
    steps = {"transforms": "hoist", "transforms.hoist.type": "org.apache.kafka.connect.transforms.HoistField$Value"}
    converter = {"value.converter": "io.confluent.connect.avro.AvroConverter", "transforms.hoist.field": "line"}
    told = faults(json.dumps({**SINK, **steps, **converter}), suffix=".json")
    assert any("value.converter: line 1: transforms of Avro need its schema" in one for one in told), told


@pytest.mark.parametrize(
    "key",
    [
        "value.converter.schema.registry.url",
        "batch.size",
        "ordering.msg.enable",
        "errors.retry.timeout",
        "errors.retry.delay.max.ms",
        "errors.log.enable",
        "errors.log.include.messages",
        "errors.deadletterqueue.topic.replication.factor",
        "errors.deadletterqueue.context.headers.enable",
        "errors.deadletterqueue.read.queue.nums",
        "key.converter.schemas.enable",
    ],
)
def test_keys_without_effect_are_told(key: str, read: Read) -> None:
    (notice,) = read({**SOURCE, key: "true" if key.endswith("enable") else "1"}).notices
    assert notice.startswith(f"{key}: accepted without effect: ")


DLQ = "errors.deadletterqueue."


@pytest.mark.parametrize("flat", [SOURCE, SINK])
@pytest.mark.parametrize(
    ("given", "sink", "headers"),
    [
        ({}, {}, None),
        ({f"{DLQ}write.queue.nums": "4", f"{DLQ}read.queue.nums": "4"}, {"queues": 4}, None),
        ({f"{DLQ}read.queue.nums": "2"}, {"queues": 2}, None),
        ({f"{DLQ}context.properties.enable": "true"}, {}, "connect"),
        ({f"{DLQ}context.headers.enable": True}, {}, "connect"),
        ({f"{DLQ}context.headers.enable": "false"}, {}, None),
    ],
)
def test_a_queue_of_dead_letters_is_a_second_target(
    flat: dict[str, Any], given: dict[str, Any], sink: dict[str, Any], headers: str | None, read: Read
) -> None:
    checked = read({**flat, "errors.tolerance": "all", f"{DLQ}topic.name": "rejects", **given})
    wanted: dict[str, Any] = {"sink": {"rocketmq": {"connection": "main", "topic": "rejects", **sink}}}
    assert checked.data["errors"] == {"tolerance": "all", **wanted, **({"headers": headers} if headers else {})}
    assert not [one for one in checked.notices if "deadletter" in one]


def test_what_a_queue_of_dead_letters_cannot_have_is_told(read: Read, faults: Callable[..., list[str]]) -> None:
    both = {f"{DLQ}write.queue.nums": "4", f"{DLQ}read.queue.nums": "8", f"{DLQ}topic.replication.factor": "3"}
    checked = read({**SOURCE, f"{DLQ}topic.name": "rejects", "errors.tolerance": "all", **both})
    assert checked.data["errors"]["sink"]["rocketmq"]["queues"] == 4
    assert [one.split(":")[0] for one in checked.notices] == [
        f"{DLQ}read.queue.nums",
        f"{DLQ}topic.replication.factor",
    ]
    for key, value in ((f"{DLQ}write.queue.nums", "many"), (f"{DLQ}context.headers.enable", "yes")):
        told = faults(json.dumps({**SOURCE, f"{DLQ}topic.name": "rejects", key: value}), suffix=".json")
        assert any(one.startswith(f"{key}: line 1: ") for one in told), told
    told = faults(json.dumps({**SINK, f"{DLQ}topic.name": "a"}), suffix=".json")
    assert any(one.startswith("errors.sink.rocketmq.topic") for one in told), "it reads that topic"


def test_more_tasks_and_the_other_file_are_told(read: Read) -> None:
    notices = read({**SINK, "max.tasks": 4, "file": "other.txt", "filename": "out.txt"}).notices
    assert any(
        notice.startswith("max.tasks: accepted without effect: a connector of this class has one task")
        for notice in notices
    )
    assert "file: taken as filename, which is RocketMQ Connect's name for it" in notices


@pytest.mark.parametrize(
    ("flat", "fault"),
    [
        ({"connect.topicname": "x", "filename": "a"}, "connector.class: line 1: is missing: the class says"),
        (
            {**SOURCE, "connector.class": "ElasticsearchSinkConnector"},
            "there is no 'ElasticsearchSinkConnector' here: planned: a sink of your own can be written",
        ),
        ({**SOURCE, "connector.class": "NoSuchConnector"}, "there is no 'NoSuchConnector' here; there are Debezium"),
        ({**SOURCE, "filenam": "a"}, 'filenam: line 1: unknown key "filenam"; did you mean filename?'),
        ({k: v for k, v in SOURCE.items() if k != "filename"}, "filename: line 1: is missing"),
        ({k: v for k, v in SOURCE.items() if k != "connect.topicname"}, "connect.topicname: line 1: is missing"),
        ({k: v for k, v in SINK.items() if k != "connect.topicnames"}, "connect.topicnames: line 1: is missing"),
        ({**SINK, "consume.from.where": "CONSUME_FROM_TIMESTAMP"}, "is not one of CONSUME_FROM_LAST_OFFSET, "),
        ({**SINK, "consume.from.where": ["x"]}, "['x'] is not one of CONSUME_FROM_LAST_OFFSET, "),
        ({**SINK, "name": "a.b"}, "task.group.id: line 1: the consumer group connect-a.b must be 1 to 120"),
        ({**SOURCE, "max.tasks": "zero"}, "max.tasks: line 1: 'zero' is not a number of tasks"),
        ({**SOURCE, "errors.tolerance": "some"}, "errors.tolerance: line 1: 'some' is neither none nor all"),
        ({**SOURCE, "value.converter": "a.b.JsonConverter"}, "records pass as bytes: StringConverter or ByteArray"),
        ({**SOURCE, "value.converter.serializer.encoding": "GBK"}, "'GBK' is not available"),
        (
            {**SOURCE, "transforms": "drop"},
            "transforms.drop.type: line 1: is missing: 'drop' in transforms needs a class",
        ),
        ({**SOURCE, "transforms.drop.class": "a.B"}, "transforms.drop.class: line 1: has no effect without transforms"),
        ({**SOURCE, "connector.direct.enable": "true"}, "direct mode is written as a native document"),
        ({**SOURCE, "connect.topicname": "a.b"}, "sink.rocketmq.topic: line 1: must be 1 to 127"),
        ({**SOURCE, "filename": "/etc/passwd"}, "source.file.path: line 1: /etc/passwd is outside"),
    ],
)
def test_what_cannot_be_kept_is_a_fault(flat: dict[str, Any], fault: str, faults: Callable[..., list[str]]) -> None:
    told = faults(json.dumps(flat), suffix=".json")
    assert any(fault in one for one in told), told


def test_a_fault_behind_the_translation_has_the_line_of_its_flat_key(faults: Callable[..., list[str]]) -> None:
    text = "connector.class=FileSource\nfilename=a.log\n\nconnect.topicname=a.b\n"
    assert faults(text, suffix=".properties")[0].startswith("sink.rocketmq.topic: line 4: ")


MQTT_SOURCE = {
    "connector.class": "org.apache.rocketmq.connect.mqtt.connector.MqttSourceConnector",
    "mqttBrokerUrl": "tcp://mqtt.internal:1884",
    "mqttAccessKey": "me",
    "mqttSecretKey": "${env:MQTT_SECRET}",
    "sourceTopic": "devices/#",
    "connect.topicname": "devices",
    "max.tasks": "1",
}
START = "group:connect-given or as-new-group"
MQTT_SINK = {
    "connector.class": "MqttSinkConnector",
    "mqttBrokerUrl": "ssl://mqtt.internal",
    "sinkTopic": "plant/commands",
    "connect.topicnames": "commands",
}


def test_an_mqtt_source(read: Read) -> None:
    checked = read(MQTT_SOURCE)
    assert checked.data["source"]["mqtt"] == {
        "broker": "rocketmq-mqtt",
        "host": "mqtt.internal",
        "port": 1884,
        "user": "me",
        "password": "${env:MQTT_SECRET}",
        "signature": True,
        "filters": ["devices/#"],
    }
    assert checked.data["sink"] == {"rocketmq": {"connection": "main", "topic": "devices"}}


def test_an_mqtt_sink(read: Read) -> None:
    checked = read(MQTT_SINK)
    assert checked.data["source"] == {"rocketmq": {"connection": "main", "topics": ["commands"], "start": START}}
    assert checked.data["sink"] == {"mqtt": {"host": "mqtt.internal", "tls": True, "topic": "plant/commands"}}


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("tcp://a:1883", {"host": "a", "port": 1883}),
        ("ws://a/sub", {"host": "a", "port": 80, "websockets": "/sub"}),
        ("wss://a:8084", {"host": "a", "port": 8084, "websockets": "/mqtt", "tls": True}),
    ],
)
def test_addresses_of_brokers(url: str, options: dict[str, Any]) -> None:
    assert mqtt_keys.of_url(url) == options


@pytest.mark.parametrize(
    "url",
    ["", "a:1883", "http://a", "tcp://", "tcp://a:x", "tcp://u:p@a:1883", "tcp://a:1?b=c", "tcp://${env:HOST}:1883"],
)
def test_what_is_no_address_of_a_broker_is_a_fault_without_its_words(url: str, home: Path, settings: Settings) -> None:
    (written,) = read_text(json.dumps({**MQTT_SINK, "mqttBrokerUrl": url}), where="x.json", suffix=".json")
    with pytest.raises(ConfigError) as told:
        check(written, home, settings, "given")
    assert [fault.path for fault in told.value.faults] == ["mqttBrokerUrl"]
    assert "u:p" not in str(told.value)


@pytest.mark.parametrize("key", ["mqttBrokerUrl", "sourceTopic", "connect.topicname"])
def test_a_key_that_an_mqtt_source_misses(key: str, home: Path, settings: Settings) -> None:
    flat = {name: value for name, value in MQTT_SOURCE.items() if name != key}
    (written,) = read_text(json.dumps(flat), where="x.json", suffix=".json")
    with pytest.raises(ConfigError) as told:
        check(written, home, settings, "given")
    assert key in {fault.path for fault in told.value.faults}
