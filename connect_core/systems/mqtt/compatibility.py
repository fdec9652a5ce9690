"""What the two ends of a connector may be when one of them, or each, is MQTT; two connectors; and rules. And the flat
keys of RocketMQ Connect's MQTT connectors, with the address of a broker as these have it, `tcp://host:port`. Pure."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from connect_core.sdk.flat import FlatClass, FlatEnd, FlatWriter, ignored, option
from connect_core.sdk.plugin import ConfiguredEnd, Conflict, Expiry, RuleTarget
from connect_core.sdk.templates import NothingNamed, Reference, template
from connect_core.sdk.values import Json
from connect_core.systems.addresses import plain_host
from connect_core.systems.mqtt.options import ROCKETMQ_MQTT, MqttSourceOptions, default_port, split_address
from connect_core.systems.mqtt.sink_options import MqttSinkOptions
from connect_core.systems.topic_filters import fault_in_topic, is_shared, overlap, plain_of

SYSTEM = "mqtt"
"""What documents call this one."""
_OWN_TOPIC = "is a topic that the source reads, at the same broker"
_PACKAGE = "org.apache.rocketmq.connect.mqtt.connector."
_SCHEMES: dict[str, dict[str, Any]] = {
    "tcp": {},
    "mqtt": {},
    "ssl": {"tls": True},
    "mqtts": {"tls": True},
    "ws": {"websockets": "/mqtt"},
    "wss": {"websockets": "/mqtt", "tls": True},
}
"""Of Eclipse Paho for Java, which RocketMQ Connect uses, and what they mean here."""
_PORTS = {"ws": 80, "wss": 443}


def conflict(source: ConfiguredEnd, sink: ConfiguredEnd) -> Conflict | None:
    if source.name != SYSTEM:
        return None
    if wrong := _needs_acknowledging(source, sink):
        return wrong
    return _own_messages(source.options, sink.options) if sink.name == SYSTEM else None


def _needs_acknowledging(source: ConfiguredEnd, sink: ConfiguredEnd) -> Conflict | None:
    """What a member has not acknowledged goes to another one, again and again where that waits for a settle."""
    if "scan_tells_records" in sink.plugin.abilities or not shares(source.options):
        return None
    return Conflict(
        ("source", SYSTEM, "filters"),
        f"shared subscriptions need a sink that tells which records it holds, as rocketmq does, and {sink.name} does"
        " not: give plain filters, and sessions: N to work side by side",
    )


def _own_messages(source: Json, sink: Json) -> Conflict | None:
    """By a topic for each filter; what the sink keeps for itself is one too."""
    if not _same_broker(source, sink):
        return None
    given = {name: str(sink[name]) for name in ("topic", "progress_topic") if name in sink}
    options, filters = MqttSinkOptions.model_construct(None, **given), _filters_of(source)
    for one in filters:
        name = _sample(one)
        target = _topic_of_record(options.topic, name)
        if target and any(overlap(another, target) for another in filters):
            return Conflict(("sink", SYSTEM, "topic"), _OWN_TOPIC)
        if overlap(one, f"{options.progress_topic}/x/x"):
            words = "begins a topic that the source reads, at the same broker"
            return Conflict(("sink", SYSTEM, "progress_topic"), words)
    return None


def _topic_of_record(text: str, topic: str) -> str:
    """What a template makes of a record with this topic, wherever it has it from; empty when that is no topic."""

    def value(wanted: Reference) -> str | None:
        if wanted.kind == "header":
            return topic if wanted.name == "MQTT_TOPIC" else None
        return "x" if wanted.kind == "tags" else topic

    try:
        made = template(text).fill(value)
    except NothingNamed:
        return ""
    return "" if fault_in_topic(made) else made


def expiry(source: Json) -> Expiry | None:
    """A session; None as long as nobody knows for how long."""
    seconds = source.get("session_expiry_s") or MqttSourceOptions.model_fields["session_expiry_s"].default
    return Expiry("session_expiry_s", seconds, "the broker drops a session") if isinstance(seconds, int) else None


def feeds(sink: Json, source: Json) -> bool:
    """Not where the source leaves out what has passed it, and the mark that shows this travels with each publish."""
    if source.get("max_hops") and str(sink.get("protocol", "5")) == "5":
        return False
    topic = str(sink.get("topic"))
    if "{" in topic or not _same_broker(source, sink):
        return False
    return any(overlap(one, topic) for one in _filters_of(source))


def binary_events_conflict(sink: Json) -> Conflict | None:
    """Attributes are user properties, and the type of the data is the content type."""
    if str(sink.get("protocol", "5")) != "5":
        return Conflict(("sink", SYSTEM, "protocol"), "3.1.1 has no user properties for the attributes of events")
    if sink.get("content_type"):
        return Conflict(("sink", SYSTEM, "content_type"), "would stand in for that of each event's data: leave it out")
    return None


def rule_target(target: RuleTarget, source: ConfiguredEnd, sink: ConfiguredEnd) -> str:
    """By a topic for each filter of a source at the same broker."""
    feeds_itself = source.name == sink.name and _same_broker(source.options, sink.options)
    filters = _filters_of(source.options) if feeds_itself else []
    for one in filters or ["x"]:
        made = target.for_topic(_sample(one))
        if wrong := fault_in_topic(made):
            return f"makes a topic that {wrong}"
        if any(overlap(another, made) for another in filters):
            return _OWN_TOPIC
    return ""


def _sample(topic_filter: str) -> str:
    """A topic that matches."""
    return topic_filter.replace("+", "x").replace("#", "x")


def _same_broker(source: Json, sink: Json) -> bool:
    """By an address that both name."""
    return bool(_addresses(source) & _addresses(sink))


def _addresses(options: Json) -> set[tuple[str, int | str]]:
    """As different documents may write them; a reference stands for itself."""
    tls, given = bool(options.get("tls")), options.get("failover") or ()
    port = options.get("port") or default_port(tls=tls)
    others = (split_address(str(one), tls=tls) for one in ([given] if isinstance(given, str) else given))
    return {(plain_host(host), at) for host, at in [(str(options.get("host", "")), port), *others]}


def shares(source: Json) -> bool:
    """Whether one of its subscriptions is shared with others."""
    return any(is_shared(one) for one in _given_filters(source))


def _filters_of(source: Json) -> list[str]:
    return [plain_of(one) for one in _given_filters(source)]


def _given_filters(source: Json) -> list[str]:
    given = source.get("filters") or ()
    return [str(one) for one in ([given] if isinstance(given, str) else given)]


def of_url(url: str) -> dict[str, Any]:
    """Raises ValueError for what is no such address. A port that is left out is the usual one."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        raise ValueError("is no address: write tcp://host:1883") from None
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise ValueError(f"is no address of a broker: write tcp://host:1883; there are {', '.join(_SCHEMES)}")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("may have a host, a port and a path; user and password have keys of their own")
    found = {"host": parts.hostname, **_SCHEMES[parts.scheme]}
    if parts.path.strip("/") and "websockets" in found:
        found["websockets"] = parts.path
    port = port or _PORTS.get(parts.scheme)
    return found | ({"port": port} if port else {})


def _url(into: FlatWriter, key: str, value: Any) -> None:
    if "${" in str(value):
        into.refuse(key, "a reference in it is not read: write host and port as they are")
        return
    try:
        options = of_url(str(value))
    except ValueError as wrong:
        into.refuse(key, str(wrong))
        return
    for name, given in options.items():
        into.put(key, name, given)


def _secret(into: FlatWriter, key: str, value: Any) -> None:
    """A secret key that signs the client id: that is RocketMQ-MQTT."""
    into.put(key, "broker", ROCKETMQ_MQTT)
    into.put(key, "password", value)
    into.put(key, "signature", True)


def _filter(into: FlatWriter, key: str, value: Any) -> None:
    into.put(key, "filters", [str(value)])


_KEYS = {"mqttBrokerUrl": _url, "mqttAccessKey": option("user"), "mqttSecretKey": _secret}
"""Which broker it is, and who we are to it."""
_MUST = {"mqttBrokerUrl": "the broker, as tcp://host:1883"}
CLASSES = (
    FlatClass(
        "MqttSourceConnector",
        _PACKAGE,
        "source",
        FlatEnd(
            {
                **_KEYS,
                "sourceTopic": _filter,
                "ordering.msg.enable": ignored("messages keep the order in which they arrive"),
            },
            {**_MUST, "sourceTopic": "the topic filter to subscribe to"},
        ),
        records="messages",
    ),
    FlatClass(
        "MqttSinkConnector",
        _PACKAGE,
        "sink",
        FlatEnd({**_KEYS, "sinkTopic": option("topic")}, {**_MUST, "sinkTopic": "the topic to publish to"}),
        records="messages",
    ),
)
