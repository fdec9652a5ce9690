"""Which files hold what was read already, and may be passed over: copies, and what compression made (delivery rule 15).

Of a file that is gone a fingerprint of its head is kept, one of its last bytes, and how much of it was read. Times say
little: people and programs set them. What cannot be told from these is no copy.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

from connect_core.systems.file.content import compression
from connect_core.systems.file.identity import TAIL_BYTES, Former, OpenFile, fingerprint

_PACKED_BYTES = 64 * 1024
"""So many bytes of a gzip file hold its head, and whatever name and comment stand before that."""
_COMPARED_BYTES = 1024 * 1024
_GZIP = 16 + zlib.MAX_WBITS
_SIZE = struct.Struct("<I")


def kept_times(file: OpenFile) -> bool:
    """Whether its content is older than itself."""
    return file.status().st_mtime_ns < file.born


def was_read(file: OpenFile, read: Sequence[Former]) -> bool:
    """Whether it holds what was read of one of these, and no more."""
    return any(one.head_bytes and _holds(file, one) for one in read)


def is_distinct(file: OpenFile, offset: int) -> bool:
    """Whether the last line before `offset` is not the only one, and stands there once. Of others another log may hold
    the same: a header alone, or one line again and again."""
    before = file.bytes_at(max(offset - TAIL_BYTES, 0), min(TAIL_BYTES, offset)).splitlines()
    return len(before) > 1 and before.count(before[-1]) == 1


def is_packed(whole: OpenFile, file: OpenFile) -> bool:
    """Whether a gzip file, perhaps one that is being written, begins as `whole` does, as far as its first bytes say."""
    unpacked = _unpacked(file, _COMPARED_BYTES) if compression(file) == "gzip" else b""
    return bool(unpacked) and whole.bytes_at(0, len(unpacked)) == unpacked


def _holds(file: OpenFile, one: Former) -> bool:
    if compression(file) == "gzip":
        same_size = _unpacked_size(file) == one.offset % 2**32
        return same_size and fingerprint(_unpacked(file, one.head_bytes)) == one.head
    if not kept_times(file) or file.size() > one.offset or file.head(one.head_bytes) != one.head:
        return False
    return file.size() < one.offset or file.tail(one.offset, one.tail_bytes) == one.tail or not one.tail_bytes


def _unpacked(file: OpenFile, count: int) -> bytes:
    """Of its first `count` bytes as many as are there."""
    try:
        return zlib.decompressobj(_GZIP).decompress(file.stored_at(0, _PACKED_BYTES), count)
    except zlib.error:
        return b""


def _unpacked_size(file: OpenFile) -> int:
    """As its end says it, without what is beyond 4 GiB; -1 where it has no end."""
    end = file.stored_at(max(file.status().st_size - _SIZE.size, 0), _SIZE.size)
    return int(_SIZE.unpack(end)[0]) if len(end) == _SIZE.size else -1
