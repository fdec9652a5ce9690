"""The flat keys of RocketMQ Connect's MQTT connectors, and the address of a broker as these have it,
`tcp://host:port`. Pure."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from connect_core.sdk.flat import FlatClass, FlatEnd, FlatWriter, ignored, option
from connect_core.systems.mqtt.options import ROCKETMQ_MQTT

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
