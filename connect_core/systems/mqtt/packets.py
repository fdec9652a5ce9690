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


def plain_publish(command: int, body: bytes, *, five: bool) -> Packet | None:
    """From the first byte of a PUBLISH and what follows its length (MQTT 5 and 3.1.1, section 3.3). None when it has
    properties, is of QoS 2, or is not as it has to be."""
    qos = command >> 1 & 3
    topic_end = 2 + int.from_bytes(body[:2], "big")
    head_end = topic_end + 2 * qos + five
    if qos > 1 or topic_end == 2 or head_end > len(body) or (five and body[head_end - 1]):
        return None
    packet_id = int.from_bytes(body[topic_end : topic_end + 2], "big") if qos else 0
    return Packet(body[2:topic_end], body[head_end:], qos, packet_id, bool(command & 8), bool(command & 1))
