"""Compressed bytes -> the bytes of the file, piece by piece, without I/O: gzip, zstd, bzip2 and lz4.

A file may hold several members (frames, streams), one behind the other; gzip files may be padded with zeros. Whatever
goes in, about `STEP_BYTES` come out at a time; of zstd, whose reader takes no limit, up to 32 MiB. The drivers are
imported when the first file of their kind is read.
"""

from __future__ import annotations

import bz2
import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

STEP_BYTES = 1024 * 1024
INPUT_BYTES = 256 * 1024
"""As much is fed at a time, at most."""
_ZSTD_INPUT_BYTES = 1024
"""A block of 4 bytes may stand for 128 KiB: so little goes in at once."""
_WINDOW_BYTES = 128 * 1024 * 1024
"""The most that a zstd frame may ask for, as `zstd -d` allows it."""
_GZIP = 16 + zlib.MAX_WBITS
_SKIPPABLE = b"\x2a\x4d\x18"
"""The last three bytes of the four that begin a frame without content, of zstd and lz4."""
_SKIPPABLE_HEAD = struct.Struct("<II")

MAGIC: Mapping[str, bytes] = {
    "gzip": b"\x1f\x8b\x08",
    "zstd": b"\x28\xb5\x2f\xfd",
    "bzip2": b"BZh",
    "lz4": b"\x04\x22\x4d\x18",
}


class DamagedPacking(Exception):
    """What is there is not of this kind of compression, or was changed."""


class _Member(Protocol):
    """Undoes one member. `rest` is what went in and is not used yet: behind the end once it has `ended`."""

    ended: bool
    rest: bytes

    def step(self, data: bytes) -> bytes:
        """What comes of `rest` and `data`, or of the first part of them."""


class _Gzip:
    def __init__(self) -> None:
        self._reader = zlib.decompressobj(_GZIP)
        self.rest, self.ended = b"", False

    def step(self, data: bytes) -> bytes:
        plain = self._reader.decompress(self.rest + data, STEP_BYTES)
        self.ended = self._reader.eof
        self.rest = self._reader.unused_data if self.ended else self._reader.unconsumed_tail
        return plain


class _Zstd:
    def __init__(self) -> None:
        import zstandard

        self._reader = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES).decompressobj()
        self.rest, self.ended = b"", False

    def step(self, data: bytes) -> bytes:
        waiting = self.rest + data
        parts, size, at = list[bytes](), 0, 0
        while at < len(waiting) and size < STEP_BYTES and not self.ended:
            parts.append(self._reader.decompress(waiting[at : at + _ZSTD_INPUT_BYTES]))
            size, at, self.ended = size + len(parts[-1]), at + _ZSTD_INPUT_BYTES, self._reader.eof
        self.rest = (self._reader.unused_data if self.ended else b"") + waiting[at:]
        return b"".join(parts)


class _Keeping:
    """A reader that keeps what it has not used yet."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self.rest, self.ended = b"", False

    def step(self, data: bytes) -> bytes:
        plain: bytes = self._reader.decompress(data, max_length=STEP_BYTES)
        self.ended = self._reader.eof
        self.rest = (self._reader.unused_data or b"") if self.ended else b""
        return plain


def _bzip2() -> _Member:
    return _Keeping(bz2.BZ2Decompressor())


def _lz4() -> _Member:
    import lz4.frame

    return _Keeping(lz4.frame.LZ4FrameDecompressor())


_MEMBERS: Mapping[str, Callable[[], _Member]] = {"gzip": _Gzip, "zstd": _Zstd, "bzip2": _bzip2, "lz4": _lz4}


class Unpacker:
    """Undoes the compression of one file: `feed` it the file's bytes in order."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._member: _Member | None = None
        self._head = b""
        """What stands behind a member and is too short to say what it is."""
        self._skip = 0
        self.wants = True
        """Whether it has given out all that can be had of what it was fed."""

    @property
    def whole(self) -> bool:
        """Whether what it was fed ends where a member does."""
        return self._member is None and not self._head and not self._skip

    def feed(self, data: bytes) -> bytes:
        """What comes next. Empty `data` asks for more of what is there, as long as it does not want any. Raises
        DamagedPacking."""
        if self._member is None:
            data = self._begun(data)
            if self._member is None:
                self.wants = True
                return b""
        try:
            plain = self._member.step(data)
        except Exception as error:  # each library has its own, and some raise RuntimeError or EOFError
            if isinstance(error, MemoryError):
                raise
            raise DamagedPacking(str(error) or type(error).__name__) from error
        if not self._member.ended:
            self.wants = not (self._member.rest or len(plain) >= STEP_BYTES)
            return plain
        self._head, self._member = self._member.rest, None
        self.wants = not self._head
        return plain

    def _begun(self, data: bytes) -> bytes:
        """Begins the next member, if there is one, and gives what of `data` belongs to it."""
        data, self._head = self._head + data, b""
        while data:
            if self._skip:
                data, self._skip = data[self._skip :], max(self._skip - len(data), 0)
                continue
            if self._kind == "gzip" and data[0] == 0:
                data = data.lstrip(b"\0")
                continue
            if data[1:4] == _SKIPPABLE and data[0] & 0xF0 == 0x50 and self._kind in ("zstd", "lz4"):
                if len(data) < _SKIPPABLE_HEAD.size:
                    break
                self._skip = _SKIPPABLE_HEAD.size + _SKIPPABLE_HEAD.unpack_from(data)[1]
                continue
            if not self._may_begin(data):
                raise DamagedPacking("other bytes stand behind its end")
            if len(data) < 4:
                break
            self._member = _MEMBERS[self._kind]()
            return data
        self._head = data
        return b""

    def _may_begin(self, data: bytes) -> bool:
        begins = [MAGIC[self._kind]]
        if self._kind in ("zstd", "lz4"):
            begins += [bytes([0x50 + number]) + _SKIPPABLE for number in range(16)]
        return any(data[: len(one)] == one[: len(data)] for one in begins)
