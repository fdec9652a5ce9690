"""Stored messages, as a pull answer's body holds them back to back, as values.

Called once per pull answer, for hundreds of thousands of messages a second: the usual layout (both hosts IPv4, topic
length of one byte) is unpacked by one precompiled struct. Bodies stay as stored (perhaps compressed) and properties stay
raw bytes until somebody asks: `plain_body`, `properties.decode`. Checks sizes, never the checksum unless asked
(`crc_matches`). Malformed bytes raise `WireFormatError` with the position.
"""

from __future__ import annotations

import ipaddress
import zlib
from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

from connect_core.errors import WireFormatError
from connect_core.rocketmq.wire.batch_entries import decode_entries

Decompress = Callable[[int, bytes], bytes]
"""(compression bits of the system flag, stored body) -> plain body. Raises `WireFormatError` when it does not decode."""

MAGIC_V1 = -626843481
MAGIC_V2 = -626843477

COMPRESSED = 0x1
TRANSACTION_BITS = 0xC
BORN_HOST_V6 = 0x10
STORE_HOST_V6 = 0x20
NEED_UNWRAP = 0x40
INNER_BATCH = 0x80
COMPRESSION_KIND = 0x700
SENDABLE_BITS = COMPRESSED | COMPRESSION_KIND

_BATCH = NEED_UNWRAP | INNER_BATCH
_V6_HOSTS = BORN_HOST_V6 | STORE_HOST_V6


class StoredMessage(NamedTuple):
    """One message in the order of its fields on the wire, then topic, body and properties.

    `sys_flag` bits 0x701 say whether and how `body` is compressed. Times are milliseconds of UTC. Hosts are 4 or 16
    address bytes and 4 port bytes; `host_text` prints them.
    """

    total_size: int
    magic: int
    body_crc: int
    queue_id: int
    flag: int
    queue_offset: int
    physical_offset: int
    sys_flag: int
    born_timestamp_ms: int
    born_host: bytes
    store_timestamp_ms: int
    store_host: bytes
    reconsume_times: int
    prepared_transaction_offset: int
    body_length: int
    topic: str
    body: bytes
    properties: bytes

    @property
    def compressed(self) -> bool:
        return bool(self.sys_flag & COMPRESSED)

    @property
    def offset_message_id(self) -> str:
        """The id that send replies carry: store host and physical offset. Valid only in the cluster it came from."""
        return (self.store_host + self.physical_offset.to_bytes(8, "big")).hex().upper()


def decode_messages(data: bytes, decompress: Decompress, from_offset: int = 0) -> list[StoredMessage]:
    """All messages of a pull body in order, inner batches expanded, those below `from_offset` left out.

    `decompress` is used for compressed inner batches only; other bodies stay as stored.
    """
    raise NotImplementedError


def crc_matches(message: StoredMessage) -> bool:
    """Whether the stored body is the one the broker computed its checksum over."""
    raise NotImplementedError


def plain_body(message: StoredMessage, decompress: Decompress) -> bytes:
    """The body as the producer's user gave it."""
    raise NotImplementedError
