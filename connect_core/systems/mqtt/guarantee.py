"""What MQTT promises as either end (docs/guarantees.md)."""

from __future__ import annotations

from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.plugin import Role
from connect_core.sdk.values import Json
from connect_core.systems.mqtt.compatibility import shares

_SOURCE = Guarantee(
    "exactly once",
    (
        "The MQTT broker assigns increasing packet ids, as Mosquitto does.",
        "The MQTT broker never loses its id counter.",
        "The MQTT broker keeps what it has acknowledged.",
        "Messages have QoS 1 or 2.",
    ),
)
_SHARED = Guarantee("at least once", ("The MQTT broker keeps what it has acknowledged.", "Messages have QoS 1 or 2."))
_QOS_0 = Guarantee("at most once")
_SINK = Guarantee(
    "at least once",
    ("The MQTT broker keeps what it has acknowledged and retained.", "Messages are published with QoS 1 or 2."),
)
_SINK_QOS_0 = Guarantee("may be lost or repeated")


def guarantee(role: Role, options: Json) -> Guarantee:
    unacknowledged = options.get("qos") == 0
    if role == "sink":
        return _SINK_QOS_0 if unacknowledged else _SINK
    if unacknowledged:
        return _QOS_0
    return _SHARED if shares(options) else _SOURCE
