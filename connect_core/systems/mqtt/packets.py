"""A message as a session got it, read from the bytes of a PUBLISH. Pure.

A library that refuses a packet takes its connection with it, and a session whose oldest packet is refused is stuck for
ever. So a packet of which only the properties cannot be read is one all the same, with a `fault`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

MAX_PACKET_BYTES = 268_435_455 + 5
"""What four bytes of length allow, and the fixed header (MQTT 5, section 2.1.4)."""


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
    """A PUBLISH. `packet_id` is 0 with QoS 0. `topic` is UTF-8, as it came. `fault` says what of its properties cannot
    be read; it has none then. `subscriptions` are the identifiers of those for which it was sent."""

    topic: bytes
    payload: bytes
    qos: int
    packet_id: int = 0
    dup: bool = False
    retain: bool = False
    properties: Properties = NO_PROPERTIES
    fault: str = ""
    subscriptions: tuple[int, ...] = ()


def read_publish(command: int, body: bytes, *, five: bool) -> Packet:
    """From the first byte of a PUBLISH and what follows its length (MQTT 5 and 3.1.1, section 3.3). Raises ValueError
    when nobody knows where its payload begins, and when it is of QoS 2, which nothing asks for."""
    qos = command >> 1 & 3
    topic_end = 2 + int.from_bytes(body[:2], "big")
    head_end = topic_end + 2 * qos
    if qos > 1:
        raise ValueError(f"It has QoS {qos}, which was not asked for")
    if topic_end == 2:
        raise ValueError("It has no topic")
    if head_end + five > len(body):
        raise ValueError("It ends too early")
    packet_id = int.from_bytes(body[topic_end:head_end], "big")
    properties, subscriptions, fault = NO_PROPERTIES, tuple[int, ...](), ""
    if five and body[head_end] == 0:
        head_end += 1
    elif five:
        length, begin = _number(body, head_end)
        head_end = begin + length
        _require(body, head_end)
        try:
            properties, subscriptions = _properties(body[begin:head_end])
        except ValueError as error:
            fault = str(error)
    payload = body[head_end:]
    dup, retain = bool(command & 8), bool(command & 1)
    return Packet(body[2:topic_end], payload, qos, packet_id, dup, retain, properties, fault, subscriptions)


_PAYLOAD_FORMAT, _EXPIRY, _CONTENT_TYPE, _RESPONSE_TOPIC, _CORRELATION_DATA = 0x01, 0x02, 0x03, 0x08, 0x09
_SUBSCRIPTION, _TOPIC_ALIAS, _USER = 0x0B, 0x23, 0x26
"""The properties of a PUBLISH (MQTT 5, section 2.2.2.2)."""


def _properties(data: bytes) -> tuple[Properties, tuple[int, ...]]:
    """And the identifiers of subscriptions. Raises ValueError for what is none."""
    found: dict[int, Any] = {}
    several: dict[int, list[Any]] = {_USER: [], _SUBSCRIPTION: []}
    for kind, value in _each(data):
        if kind in several:
            several[kind].append(value)
        else:
            found[kind] = value
    properties = Properties(
        found.get(_CONTENT_TYPE),
        found.get(_RESPONSE_TOPIC),
        found.get(_CORRELATION_DATA),
        found.get(_PAYLOAD_FORMAT),
        found.get(_EXPIRY),
        tuple(several[_USER]),
    )
    return properties, tuple(several[_SUBSCRIPTION])


def _each(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        kind = data[at]
        if kind not in _READERS:
            raise ValueError(f"A PUBLISH has no property {kind:#04x}")
        value, at = _READERS[kind](data, at + 1)
        yield kind, value


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A variable byte integer (MQTT 5, section 1.5.5), and where it ends."""
    number = 0
    for place in range(4):
        _require(data, at + place + 1)
        number |= (data[at + place] & 0x7F) << 7 * place
        if data[at + place] < 0x80:
            return number, at + place + 1
    raise ValueError("A number is longer than four bytes")


def _sized(data: bytes, at: int) -> tuple[bytes, int]:
    _require(data, at + 2)
    end = at + 2 + int.from_bytes(data[at : at + 2], "big")
    _require(data, end)
    return data[at + 2 : end], end


def _text(data: bytes, at: int) -> tuple[str, int]:
    raw, end = _sized(data, at)
    try:
        return raw.decode(), end
    except UnicodeDecodeError:
        raise ValueError("A property is not UTF-8") from None


def _pair(data: bytes, at: int) -> tuple[tuple[str, str], int]:
    name, at = _text(data, at)
    value, at = _text(data, at)
    return (name, value), at


def _fixed(size: int) -> Callable[[bytes, int], tuple[int, int]]:
    def read(data: bytes, at: int) -> tuple[int, int]:
        _require(data, at + size)
        return int.from_bytes(data[at : at + size], "big"), at + size

    return read


def _require(data: bytes, end: int) -> None:
    if end > len(data):
        raise ValueError("Its properties end too early")


_READERS: dict[int, Callable[[bytes, int], tuple[Any, int]]] = {
    _PAYLOAD_FORMAT: _fixed(1),
    _EXPIRY: _fixed(4),
    _CONTENT_TYPE: _text,
    _RESPONSE_TOPIC: _text,
    _CORRELATION_DATA: _sized,
    _SUBSCRIPTION: _number,
    _TOPIC_ALIAS: _fixed(2),
    _USER: _pair,
}
"""How the value of a property is read at a place, which gives the place behind it too."""
