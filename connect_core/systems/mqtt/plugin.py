"""What Waybill knows of MQTT: see `sdk.plugin`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from connect_core.sdk.plugin import Plugin, ProbeResult, Role, TypedRecord
from connect_core.sdk.sink import Sink
from connect_core.sdk.source import Source
from connect_core.sdk.values import Json
from connect_core.systems.mqtt.compatibility import CLASSES, SYSTEM, conflict, expiry, feeds, rule_target
from connect_core.systems.mqtt.guarantee import guarantee
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.sink_options import MqttSinkOptions


def _source(options: MqttSourceOptions, resources: ExitStack | None) -> Source:
    from connect_core.systems.mqtt.source import MqttSource

    return MqttSource(options, resources)


def _sink(options: MqttSinkOptions, resources: ExitStack | None) -> Sink:
    from connect_core.systems.mqtt.sink import LedgerMqttSink, MqttSink

    return (MqttSink if options.keeps_its_word else LedgerMqttSink)(options, resources)


def _probe(role: Role, options: Json) -> Iterator[ProbeResult]:
    from connect_core.systems.mqtt.probing import probe

    return probe(role, options)


def _typed(record: TypedRecord) -> TypedRecord:
    return record._replace(
        key=record.key or record.topic, headers=(("MQTT_TOPIC", record.topic or ""), *record.headers)
    )


PLUGIN = Plugin(
    name=SYSTEM,
    title="MQTT",
    source_options=MqttSourceOptions,
    sink_options=MqttSinkOptions,
    open_source=_source,
    open_sink=_sink,
    rule_targets="any",
    remote_state=("source", "sink"),
    abilities=frozenset({"pushes"}),
    guarantee=guarantee,
    conflict=conflict,
    unwatchable="an MQTT broker does not show whether it has new messages",
    expiry=expiry,
    feeds=feeds,
    rule_target=rule_target,
    flat=CLASSES,
    probe=_probe,
    typed=_typed,
    preload=("connect_core.systems.mqtt.sink", "connect_core.systems.mqtt.source"),
)
