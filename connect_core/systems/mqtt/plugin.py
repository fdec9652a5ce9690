"""What Waybill knows of MQTT (`sdk.plugin`), and what MQTT promises as either end (docs/guarantees.md)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack

from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.plugin import Leaving, Plugin, ProbeResult, Role, RunOfTask, TypedRecord
from connect_core.sdk.sink import Sink
from connect_core.sdk.source import Source
from connect_core.sdk.values import Json
from connect_core.systems.mqtt.compatibility import (
    CLASSES,
    SYSTEM,
    binary_events_conflict,
    conflict,
    expiry,
    feeds,
    rule_target,
    shares,
)
from connect_core.systems.mqtt.options import ROCKETMQ_MQTT, MqttSourceOptions
from connect_core.systems.mqtt.sink_options import MqttSinkOptions

_KEPT = (
    "The MQTT broker keeps what it has acknowledged.",
    "Messages have QoS 1 or 2.",
    "The MQTT broker keeps a session for longer than any pause of the connector (`session_expiry_s`).",
    "The MQTT broker has room for all messages that wait in the queue of a session.",
)
"""Otherwise messages are lost before they are received."""
_RECOGNISED = (
    "The MQTT broker assigns increasing packet ids, as Mosquitto does.",
    "The MQTT broker never loses its id counter.",
    "The MQTT broker does not forget acknowledgements.",
)
"""Otherwise a message that is sent again, and a new one, cannot be told apart."""
_ONE_CLUSTER = (
    "The addresses in `failover` are those of one MQTT cluster, whose nodes share sessions and retained messages.",
)
"""Otherwise each change from one to another is a session or a progress that is lost, and is reported so."""
_ORDER = "each session"
_SOURCE = Guarantee("exactly once", (*_RECOGNISED, *_KEPT), _ORDER)
_NOT_RECOGNISED = Guarantee("at least once", _KEPT, _ORDER)
_QOS_0 = Guarantee("at most once", order=_ORDER)
_SINK = Guarantee(
    "at least once",
    ("The MQTT broker keeps what it has acknowledged and retained.", "Messages are published with QoS 1 or 2."),
    "",
)
_SINK_QOS_0 = Guarantee("may be lost or repeated", order="")


_ROCKETMQ_MQTT_KEEPS = "RocketMQ keeps what it has acknowledged."
_ROCKETMQ_MQTT_SOURCE = Guarantee(
    "at least once",
    (
        _ROCKETMQ_MQTT_KEEPS,
        "Messages have QoS 1 or 2.",
        "RocketMQ keeps messages for longer than any pause of the connector.",
        "RocketMQ-MQTT is not killed: up to 32 messages in flight on each connection are lost then.",
        "Messages are acknowledged within a minute: RocketMQ-MQTT drops what it has sent 15 times.",
        "RocketMQ-MQTT does not lose its place in a queue: that would not be noticed.",
    ),
    "",
)
_ROCKETMQ_MQTT_SINK = Guarantee(
    "at least once",
    (
        _ROCKETMQ_MQTT_KEEPS,
        "Messages are published with QoS 1 or 2.",
        "One publish is in flight (`in_flight: 1`), for order.",
    ),
    "",
)


def guarantee(role: Role, options: Json) -> Guarantee:
    promised = _promised(role, options)
    if not options.get("failover") or not promised.conditions:
        return promised
    return promised._replace(conditions=promised.conditions + _ONE_CLUSTER)


def _promised(role: Role, options: Json) -> Guarantee:
    """By one broker at one address."""
    unacknowledged = options.get("qos") == 0
    if options.get("broker") == ROCKETMQ_MQTT and not unacknowledged:
        return _ROCKETMQ_MQTT_SINK if role == "sink" else _ROCKETMQ_MQTT_SOURCE
    if role == "sink":
        return _SINK_QOS_0 if unacknowledged else _SINK
    if unacknowledged:
        return _QOS_0
    return _NOT_RECOGNISED if shares(options) or options.get("packet_ids") == "used_again" else _SOURCE


def _source(options: MqttSourceOptions, resources: ExitStack | None) -> Source:
    from connect_core.systems.mqtt.source import MqttSource

    return MqttSource(options, resources)


def _sink(options: MqttSinkOptions, resources: ExitStack | None) -> Sink:
    from connect_core.systems.mqtt.sink import LedgerMqttSink, MqttSink

    return (MqttSink if options.keeps_its_word else LedgerMqttSink)(options, resources)


def _probe(role: Role, options: Json) -> Iterator[ProbeResult]:
    from connect_core.systems.mqtt.probing import probe

    return probe(role, options)


def _presence(options: MqttSourceOptions | MqttSinkOptions, of: RunOfTask) -> AbstractContextManager[Leaving] | None:
    if not options.status_topic:
        return None
    from connect_core.systems.mqtt.status import present

    return present(options, options.uid, of)


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
    presence=_presence,
    abilities=frozenset({"pushes"}),
    guarantee=guarantee,
    conflict=conflict,
    unwatchable="an MQTT broker does not show whether it has new messages",
    expiry=expiry,
    feeds=feeds,
    event_headers="mqtt",
    binary_events_conflict=binary_events_conflict,
    rule_target=rule_target,
    flat=CLASSES,
    probe=_probe,
    typed=_typed,
    preload=("connect_core.systems.mqtt.sink", "connect_core.systems.mqtt.source"),
)
