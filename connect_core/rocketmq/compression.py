"""Undoes the compression of message bodies: zlib, LZ4 frames, zstd. The drivers of the last two are imported when the
first such body comes.

Every way is bounded: a body that would grow beyond `MAX_PLAIN_BYTES` raises `WireFormatError`, as does one that is
broken or cut off.
"""

from __future__ import annotations

import zlib
from functools import cache
from typing import Any

from connect_core.errors import WireFormatError
from connect_core.rocketmq.wire.stored_message import LZ4, ZLIB, ZSTD

MAX_PLAIN_BYTES = 64 * 1024 * 1024
_OLD_ZLIB = 3
_LZ4_STEP_BYTES = 1024 * 1024
_ZSTD_STEP_BYTES = 2048
"""Its reader takes no limit on what comes out, which can be 30,000 times what goes in: so little goes in at once."""


def decompress(kind: int, body: bytes) -> bytes:
    """The plain body. `kind` is the number in bits 0x700 of the system flag."""
    if kind in (ZLIB, _OLD_ZLIB):
        return _unzlib(body)
    if kind == LZ4:
        return _unlz4(body)
    if kind == ZSTD:
        return _unzstd(body)
    raise WireFormatError(f"Unknown kind of compression {kind}")


def _unzlib(body: bytes) -> bytes:
    reader = zlib.decompressobj()
    try:
        plain = reader.decompress(body, MAX_PLAIN_BYTES)
    except zlib.error:
        raise _broken("zlib") from None
    return _whole("zlib", plain, ended=reader.eof)


def _unlz4(body: bytes) -> bytes:
    reader = _lz4_frame().LZ4FrameDecompressor()
    plain = bytearray()
    try:
        # It reserves what it may give out, so it is asked for a little at a time.
        plain += reader.decompress(body, max_length=_LZ4_STEP_BYTES)
        while not (reader.eof or reader.needs_input or len(plain) > MAX_PLAIN_BYTES):
            plain += reader.decompress(b"", max_length=_LZ4_STEP_BYTES)
    except (RuntimeError, EOFError, MemoryError):
        raise _broken("LZ4") from None
    return _whole("LZ4", bytes(plain), ended=reader.eof)


def _unzstd(body: bytes) -> bytes:
    import zstandard

    reader = zstandard.ZstdDecompressor(max_window_size=MAX_PLAIN_BYTES).decompressobj()
    parts: list[bytes] = []
    size = 0
    for at in range(0, len(body), _ZSTD_STEP_BYTES):
        if reader.eof or size > MAX_PLAIN_BYTES:
            break
        try:
            parts.append(reader.decompress(body[at : at + _ZSTD_STEP_BYTES]))
        except zstandard.ZstdError:
            raise _broken("zstd") from None
        size += len(parts[-1])
    return _whole("zstd", b"".join(parts), ended=reader.eof and size <= MAX_PLAIN_BYTES)


@cache
def _lz4_frame() -> Any:
    import lz4.frame

    return lz4.frame


def _whole(name: str, plain: bytes, *, ended: bool) -> bytes:
    if not ended:
        raise _broken(name)
    return plain


def _broken(name: str) -> WireFormatError:
    return WireFormatError(f"Body does not decompress as {name} to at most {MAX_PLAIN_BYTES} bytes")
