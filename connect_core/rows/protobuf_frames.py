"""What stands before a message of Protobuf in a topic that a Schema Registry describes. Pure.

As Confluent's serializers write it: a zero byte, the number of the schema, and where the message is in its file: how
many indexes, and each of them, in zigzag. One zero byte stands for the first message.
"""

from __future__ import annotations

from typing import NamedTuple

from connect_core.rows.avro_frames import frame as number_frame
from connect_core.rows.avro_frames import split_frame as split_number
from connect_core.rows.protobuf_parts import Framing

Place = tuple[int, ...]
Key = tuple[int, Place] | None
"""Which message was written: the number of its schema in a registry, and its place there; or nothing."""

FIRST: Place = (0,)
_DEEPEST = 20
_LONGEST = 5


class FramedMessage(NamedTuple):
    key: Key
    payload: bytes


def split_frame(framing: Framing, value: bytes | None) -> FramedMessage | str:
    """Or why it has no such beginning."""
    found = split_number(framing, value)
    if isinstance(found, str):
        return found
    if not isinstance(found.key, int):
        return FramedMessage(None, found.payload)
    body = found.payload
    count, at = _index(body, 0)
    place: list[int] = []
    while at and len(place) < count <= _DEEPEST:
        index, at = _index(body, at)
        place.append(index)
    if not at or not 0 <= count <= _DEEPEST or any(index < 0 for index in place):
        return "the number of its schema is not followed by the place of a message"
    return FramedMessage((found.key, tuple(place) or FIRST), body[at:])


def frame(framing: Framing, key: Key) -> bytes:
    """What stands before each value."""
    if framing == "plain":
        return b""
    number, place = key or (0, FIRST)  # 0: a look at what a document would write
    indexes = b"\0" if place == FIRST else b"".join(map(_zigzag, (len(place), *place)))
    return number_frame("registry", number) + indexes


def _index(body: bytes, at: int) -> tuple[int, int]:
    """And where it ends; 0 where it does not."""
    number = 0
    for place, byte in enumerate(body[at : at + _LONGEST]):
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at + place + 1
    return 0, 0


def _zigzag(number: int) -> bytes:
    left, made = number << 1, bytearray()
    while left > 0x7F:
        made.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*made, left])
