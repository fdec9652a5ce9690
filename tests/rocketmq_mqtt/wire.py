"""MQTT 3.1.1 as bytes: as little as a broker needs that knows its clients."""

from __future__ import annotations

import struct
from asyncio import StreamReader
from typing import NamedTuple

CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = 1, 2, 3, 4, 5, 6, 7
SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK, PINGREQ, PINGRESP, DISCONNECT = 8, 9, 10, 11, 12, 13, 14


class Raw(NamedTuple):
    """`flags` are the low four bits of the first byte."""

    kind: int
    flags: int
    body: bytes


async def read(reader: StreamReader) -> Raw:
    """Raises IncompleteReadError at the end."""
    first, length, shift = (await reader.readexactly(1))[0], 0, 0
    while True:
        digit = (await reader.readexactly(1))[0]
        length |= (digit & 127) << shift
        shift += 7
        if digit < 128:
            return Raw(first >> 4, first & 15, await reader.readexactly(length))


def packet(kind: int, body: bytes = b"", flags: int = 0) -> bytes:
    length, head = len(body), bytes([kind << 4 | flags])
    while True:
        length, digit = divmod(length, 128)
        head += bytes([digit | (128 if length else 0)])
        if not length:
            return head + body


def numbered(kind: int, packet_id: int, more: bytes = b"", flags: int = 0) -> bytes:
    return packet(kind, struct.pack(">H", packet_id) + more, flags)


def text(value: str) -> bytes:
    return struct.pack(">H", len(value.encode())) + value.encode()


class Reader:
    """The fields of a body, one after the other."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def more(self) -> bool:
        return self._at < len(self._body)

    def byte(self) -> int:
        self._at += 1
        return self._body[self._at - 1]

    def number(self) -> int:
        self._at += 2
        return int.from_bytes(self._body[self._at - 2 : self._at], "big")

    def data(self) -> bytes:
        length = self.number()
        self._at += length
        return self._body[self._at - length : self._at]

    def text(self) -> str:
        return self.data().decode()

    def rest(self) -> bytes:
        return self._body[self._at :]
