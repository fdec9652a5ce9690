"""The body of a batch send, which is also the body of an inner batch: entries one after the other, there and back.

Encoding is the sink's hottest loop: lists of bodies and of already encoded property strings go in, one bytes object
comes out, with one struct pack a message and one join. Topic, queue, system flag and born time are not in an entry:
they come from the request's header and hold for all entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct
from struct import error as struct_error
from typing import NamedTuple

from connect_core.errors import WireFormatError

MAX_ENTRIES = 1_000
"""Above 32,767 the broker damages the queue; more than about 1,000 gains nothing."""
MAX_BATCH_BYTES = 3 * 1024 * 1024
"""The broker's own default limit is 4 MiB."""
MAX_PROPERTIES_BYTES = 32_000
"""The stored length is a signed 16-bit number, and brokers up to 5.3.3 add about 60 bytes of their own without looking:
beyond 32,767 such a broker acknowledges the message, never shows it, and the offsets of the queue are wrong from then
on (seen on 5.3.3).
"""

# total, magic 0, checksum 0 (the broker computes it), flag, body length
_HEAD = Struct(">iiiii")
_LENGTH = Struct(">h")
_LENGTHS = [_LENGTH.pack(length) for length in range(2048)]
ENTRY_OVERHEAD = _HEAD.size + _LENGTH.size


class BatchEntry(NamedTuple):
    """One message of a batch: user flag, body, raw property string."""

    flag: int
    body: bytes
    properties: bytes


@dataclass(frozen=True, slots=True)
class Batch:
    """An encoded batch: `count` messages in `body`."""

    count: int
    body: bytes


def encode_batch(bodies: Sequence[bytes], properties: Sequence[bytes], flags: Sequence[int] | None = None) -> Batch:
    """All of them as one batch; raises ValueError when there are too many. `encode_batches` splits instead.

    Property strings of more than `MAX_PROPERTIES_BYTES` raise ValueError: reject such a row before.
    """
    if len(bodies) > MAX_ENTRIES:
        raise ValueError(f"{len(bodies)} messages in one batch, allowed are {MAX_ENTRIES}")
    if flags is None:
        flags = [0] * len(bodies)
    pack_head, short, overhead = _HEAD.pack, _LENGTHS, ENTRY_OVERHEAD
    parts: list[bytes] = []
    append = parts.append
    for body, text, flag in zip(bodies, properties, flags, strict=True):
        size, length = len(body), len(text)
        append(pack_head(overhead + size + length, 0, 0, flag, size))
        append(body)
        append(short[length] if length < 2048 else _long_length(length))
        append(text)
    return Batch(len(bodies), b"".join(parts))


def _long_length(length: int) -> bytes:
    if length > MAX_PROPERTIES_BYTES:
        raise ValueError(f"Properties of {length} bytes, allowed are {MAX_PROPERTIES_BYTES}")
    return _LENGTH.pack(length)


def encode_batches(
    bodies: Sequence[bytes], properties: Sequence[bytes], flags: Sequence[int] | None = None
) -> Iterator[Batch]:
    """The same messages, in order, in as many batches as the limits ask for; encoded one at a time, lazily.

    A single message above the byte limit goes alone: whether it is too large is for the broker to say.
    """
    begin = 0
    while begin < len(bodies):
        end = _batch_end(bodies, properties, begin)
        yield encode_batch(bodies[begin:end], properties[begin:end], flags and flags[begin:end])
        begin = end


def _batch_end(bodies: Sequence[bytes], properties: Sequence[bytes], begin: int) -> int:
    """Where the batch that begins there ends (excluded)."""
    limit = min(begin + MAX_ENTRIES, len(bodies))
    sizes = sum(map(len, bodies[begin:limit])) + sum(map(len, properties[begin:limit]))
    if sizes + ENTRY_OVERHEAD * (limit - begin) <= MAX_BATCH_BYTES:
        return limit
    total = 0
    for index in range(begin, limit):
        total += ENTRY_OVERHEAD + len(bodies[index]) + len(properties[index])
        if total > MAX_BATCH_BYTES and index > begin:
            return index
    return limit


def decode_entries(data: bytes) -> list[BatchEntry]:
    """The entries of a batch body. Raises `WireFormatError` with the position when it is not one."""
    entries = []
    at = 0
    while at < len(data):
        try:
            total, _, _, flag, body_length = _HEAD.unpack_from(data, at)
            body_begin = at + _HEAD.size
            body_end = body_begin + body_length
            (length,) = _LENGTH.unpack_from(data, max(body_end, body_begin))
        except struct_error:
            raise _broken(data, at) from None
        end = body_end + _LENGTH.size + length
        if body_length < 0 or length < 0 or end != at + total or end > len(data):
            raise _broken(data, at)
        entries.append(BatchEntry(flag, data[body_begin:body_end], data[end - length : end]))
        at = end
    return entries


def _broken(data: bytes, at: int) -> WireFormatError:
    return WireFormatError(f"Batch body of {len(data)} bytes is broken at byte {at}")
