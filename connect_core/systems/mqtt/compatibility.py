"""What the two ends of a connector may be when one of them, or each, is MQTT; two connectors; and rules. Pure."""

from __future__ import annotations

import re

from connect_core.sdk.plugin import ConfiguredEnd, Conflict, Expiry, RuleTarget
from connect_core.sdk.values import Json
from connect_core.systems.addresses import plain_host
from connect_core.systems.mqtt.filters import is_shared
from connect_core.systems.mqtt.options import MqttSourceOptions, default_port, split_address
from connect_core.systems.mqtt.sink_options import MqttSinkOptions
from connect_core.systems.mqtt.templates import Named, TopicTemplate, Unfit
from connect_core.systems.topic_filters import overlap

SYSTEM = "mqtt"
"""What documents call this one."""
_SHARED = re.compile(r"^\$share/[^/]+/")
"""What stands before the filter of a shared subscription."""
_NOTHING_NAMED = Named(None, None, None, {})
_OWN_TOPIC = "is a topic that the source reads, at the same broker"


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
        target = TopicTemplate.parse(options.topic).fill(Named(name, "x", name, {"MQTT_TOPIC": name}))
        if any(isinstance(target, str) and overlap(another, target) for another in filters):
            return Conflict(("sink", SYSTEM, "topic"), _OWN_TOPIC)
        if overlap(one, f"{options.progress_topic}/x/x"):
            words = "begins a topic that the source reads, at the same broker"
            return Conflict(("sink", SYSTEM, "progress_topic"), words)
    return None


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


def rule_target(target: RuleTarget, source: ConfiguredEnd, sink: ConfiguredEnd) -> str:
    """By a topic for each filter of a source at the same broker."""
    feeds_itself = source.name == sink.name and _same_broker(source.options, sink.options)
    filters = _filters_of(source.options) if feeds_itself else []
    for one in filters or ["x"]:
        made = target.for_topic(_sample(one))
        topic = TopicTemplate("", (made,)).fill(_NOTHING_NAMED)
        if isinstance(topic, Unfit):
            return topic.message.replace("The topic made of the record", "makes a topic that")
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
    return [_SHARED.sub("", one) for one in _given_filters(source)]


def _given_filters(source: Json) -> list[str]:
    given = source.get("filters") or ()
    return [str(one) for one in ([given] if isinstance(given, str) else given)]
