"""Stored messages, as a pull answer's body holds them back to back, as values.

Called once per pull answer, for hundreds of thousands of messages a second: the usual layout (both hosts IPv4) is
unpacked by one precompiled struct. Bodies stay as stored (perhaps compressed) and properties stay raw bytes until
somebody asks: `plain_body`, `properties.decode`. Checks sizes, never the checksum unless asked (`crc_matches`).
Malformed bytes raise `WireFormatError` with the position.
"""

from __future__ import annotations

import ipaddress
import zlib
from collections.abc import Callable, Iterator
from struct import Struct
from struct import error as struct_error
from typing import NamedTuple

from connect_core.errors import WireFormatError
from connect_core.rocketmq.wire.batch_entries import decode_entries

Decompress = Callable[[int, bytes], bytes]
"""(kind of compression, stored body) -> plain body. Raises `WireFormatError` when it does not decode."""

MAGIC_V1 = -626843481
MAGIC_V2 = -626843477
"""Topic length of two bytes instead of one: topics longer than 127 characters."""

COMPRESSED = 0x1
TRANSACTION_BITS = 0xC
BORN_HOST_V6 = 0x10
STORE_HOST_V6 = 0x20
NEED_UNWRAP = 0x40
INNER_BATCH = 0x80
COMPRESSION_KIND = 0x700
ZLIB, LZ4, ZSTD = 0, 1, 2
SENDABLE_BITS = COMPRESSED | COMPRESSION_KIND
"""The only bits that a copy may carry: with the others it would vanish or be misread."""

_EXPANDED = NEED_UNWRAP | INNER_BATCH
_V6_HOSTS = BORN_HOST_V6 | STORE_HOST_V6


def _layout(born_host_bytes: int, store_host_bytes: int) -> Struct:
    """From the total size up to and including the body length."""
    return Struct(f">iiiiiqqiq{born_host_bytes}sq{store_host_bytes}siqi")


_LAYOUTS = {
    0: _layout(8, 8),
    BORN_HOST_V6: _layout(20, 8),
    STORE_HOST_V6: _layout(8, 20),
    _V6_HOSTS: _layout(20, 20),
}
_SYS_FLAG_AT = 36
_INT = Struct(">i")


class StoredMessage(NamedTuple):
    """One message: its fields in the order of the wire, then topic, body and properties.

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
    """All messages of a pull body in order, inner batches expanded, those below `from_offset` left out (a pull inside
    an inner batch returns the whole batch).

    `decompress` is used for compressed inner batches only; other bodies stay as stored.
    """
    messages, flags_seen = _decode_stored(data)
    if flags_seen & _EXPANDED == _EXPANDED:
        messages = [part for message in messages for part in _expand(message, decompress)]
    if messages and messages[0].queue_offset < from_offset:
        messages = [message for message in messages if message.queue_offset >= from_offset]
    return messages


def _decode_stored(data: bytes) -> tuple[list[StoredMessage], int]:
    """The messages as they stand there, and every bit that is set in one of their system flags.

    The hot loop: everything that it calls often is a local name.
    """
    messages: list[StoredMessage] = []
    append, make = messages.append, tuple.__new__
    unpack = _LAYOUTS[0].unpack_from
    short_head = _LAYOUTS[0].size
    size, at, flags_seen = len(data), 0, 0
    raw_topic, topic = b"", ""
    while at < size:
        try:
            head = unpack(data, at)
            body_begin = at + short_head
            if head[7] & _V6_HOSTS:
                head, body_begin = _long_head(data, at)
            topic_at = body_begin + head[14]
            topic_begin = topic_at + 1
            topic_end = topic_begin + data[topic_at]
            if head[1] != MAGIC_V1:
                topic_begin, topic_end = _long_topic(data, at, head[1], topic_at)
            if data[topic_begin:topic_end] != raw_topic:
                raw_topic = data[topic_begin:topic_end]
                topic = raw_topic.decode()
            text_begin = topic_end + 2
            text_end = text_begin + (data[topic_end] << 8 | data[topic_end + 1])
        except (struct_error, IndexError, UnicodeDecodeError):
            raise _broken(data, at) from None
        if head[14] < 0 or text_end > size or text_end != at + head[0]:
            raise _broken(data, at)
        append(make(StoredMessage, (*head, topic, data[body_begin:topic_at], data[text_begin:text_end])))
        flags_seen |= head[7]
        at = text_end
    return messages, flags_seen


def _long_head(data: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """The head with at least one IPv6 host, and where the body begins."""
    (sys_flag,) = _INT.unpack_from(data, at + _SYS_FLAG_AT)
    layout = _LAYOUTS[sys_flag & _V6_HOSTS]
    return layout.unpack_from(data, at), at + layout.size


def _long_topic(data: bytes, at: int, magic: int, topic_at: int) -> tuple[int, int]:
    """Where the topic begins and ends when its length takes two bytes."""
    if magic != MAGIC_V2:
        raise _broken(data, at)
    begin = topic_at + 2
    return begin, begin + (data[topic_at] << 8 | data[topic_at + 1])


def _broken(data: bytes, at: int) -> WireFormatError:
    return WireFormatError(f"Stored message at byte {at} of {len(data)} is broken or cut off")


def _expand(message: StoredMessage, decompress: Decompress) -> Iterator[StoredMessage]:
    """The messages inside an inner batch, or the message itself. What an entry does not have comes from the outer
    message, except its compression, which was undone."""
    if message.sys_flag & _EXPANDED != _EXPANDED:
        yield message
        return
    inner_flag = message.sys_flag & ~(_EXPANDED | SENDABLE_BITS)
    for index, entry in enumerate(decode_entries(plain_body(message, decompress))):
        yield message._replace(
            flag=entry.flag,
            queue_offset=message.queue_offset + index,
            sys_flag=inner_flag,
            body_crc=zlib.crc32(entry.body) & 0x7FFFFFFF,
            body_length=len(entry.body),
            body=entry.body,
            properties=entry.properties,
        )


def crc_matches(message: StoredMessage) -> bool:
    """Whether the stored body is the one the broker computed its checksum over."""
    return zlib.crc32(message.body) & 0x7FFFFFFF == message.body_crc


def plain_body(message: StoredMessage, decompress: Decompress) -> bytes:
    """The body as the producer's user gave it."""
    return unpacked(message.body, message.sys_flag, decompress)


def unpacked(body: bytes, sys_flag: int, decompress: Decompress) -> bytes:
    """A stored body as the producer's user gave it; bits 0x701 of the system flag say whether it is compressed."""
    return decompress((sys_flag & COMPRESSION_KIND) >> 8, body) if sys_flag & COMPRESSED else body


def host_text(host: bytes) -> str:
    """ "127.0.0.1:10911" or "[::1]:10911" of 8 or 20 host bytes."""
    address = ipaddress.ip_address(host[:-4])
    port = int.from_bytes(host[-4:], "big")
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


def encode_message(message: StoredMessage) -> bytes:
    """The message as a broker would store it. For doubles and round trips; sizes and checksum are computed anew."""
    layout = _LAYOUTS[message.sys_flag & _V6_HOSTS]
    topic = message.topic.encode()
    length_bytes = 1 if message.magic == MAGIC_V1 else 2
    tail = b"".join(
        (
            message.body,
            len(topic).to_bytes(length_bytes, "big"),
            topic,
            len(message.properties).to_bytes(2, "big"),
            message.properties,
        )
    )
    crc = zlib.crc32(message.body) & 0x7FFFFFFF
    fixed = (layout.size + len(tail), message.magic, crc, *message[3:14], len(message.body))
    return layout.pack(*fixed) + tail
