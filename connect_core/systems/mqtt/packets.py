"""A message as a session got it. Values only."""

from __future__ import annotations

from typing import NamedTuple


class Properties(NamedTuple):
    """What MQTT 5 says beside a message (MQTT 5, section 3.3.2.3); nothing of it in 3.1.1."""

    content_type: str | None = None
    response_topic: str | None = None
    correlation_data: bytes | None = None
    payload_format: int | None = None
    expiry_s: int | None = None
    user: tuple[tuple[str, str], ...] = ()


NO_PROPERTIES = Properties()


class Packet(NamedTuple):
    """A PUBLISH. `packet_id` is 0 with QoS 0. `topic` is UTF-8, as it came."""

    topic: bytes
    payload: bytes
    qos: int
    packet_id: int = 0
    dup: bool = False
    retain: bool = False
    properties: Properties = NO_PROPERTIES
