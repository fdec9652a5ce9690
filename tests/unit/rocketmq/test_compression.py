from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import Callable

import lz4.frame
import pytest
import zstandard

from connect_core.errors import WireFormatError
from connect_core.rocketmq import compression
from connect_core.rocketmq.compression import decompress

KINDS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "zlib": (0, zlib.compress),
    "old zlib": (3, zlib.compress),
    "LZ4": (1, lz4.frame.compress),
    "zstd": (2, zstandard.ZstdCompressor().compress),
    "zstd without size": (2, zstandard.ZstdCompressor(write_content_size=False).compress),
}
every_kind = pytest.mark.parametrize("name", KINDS)


@every_kind
@pytest.mark.parametrize("plain", [b"", b"x", bytes(range(256)) * 20_000], ids=len)
def test_round_trip(name: str, plain: bytes) -> None:
    kind, compress = KINDS[name]
    assert decompress(kind, compress(plain)) == plain


@every_kind
def test_cut_off_and_broken_bodies(name: str) -> None:
    kind, compress = KINDS[name]
    packed = compress(b"some text " * 100)
    for body in (b"", packed[:-3], packed[: len(packed) // 2], b"plain", b"\0" * 20):
        with pytest.raises(WireFormatError, match="does not decompress"):
            decompress(kind, body)


@every_kind
def test_a_bomb_is_refused_in_bounded_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "MAX_PLAIN_BYTES", 1 << 20)
    kind, compress = KINDS[name]
    packed = compress(bytes(8 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(WireFormatError):
            decompress(kind, packed)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 24 << 20


def test_unknown_kind() -> None:
    with pytest.raises(WireFormatError, match="Unknown kind of compression 5"):
        decompress(5, b"x")
