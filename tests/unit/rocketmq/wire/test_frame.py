from __future__ import annotations

import pytest

from connect_core.errors import WireFormatError
from connect_core.rocketmq.wire.frame import Frame, Framer, encode_frame
from tests.unit.rocketmq.vectors import BINARY_REQUEST, EXCHANGES, JSON_REQUEST, JSON_REQUEST_HEADER


def _plain(frames: list[Frame]) -> list[tuple[int, bytes, bytes]]:
    return [(frame.encoding, frame.header, bytes(frame.body)) for frame in frames]


def test_json_vector() -> None:
    assert _plain(Framer().feed(JSON_REQUEST)) == [(0, JSON_REQUEST_HEADER, b"")]
    assert encode_frame(0, JSON_REQUEST_HEADER) == JSON_REQUEST


@pytest.mark.parametrize("whole", [JSON_REQUEST, BINARY_REQUEST, EXCHANGES["pull_mixed-5.5.0"].reply], ids=len)
def test_any_cut_gives_the_same_frame(whole: bytes) -> None:
    expected = _plain(Framer().feed(whole))
    assert len(expected) == 1
    for cut in range(len(whole) + 1):
        framer = Framer()
        first = framer.feed(whole[:cut])
        assert _plain(first + framer.feed(whole[cut:])) == expected
        assert framer.between_frames


@pytest.mark.parametrize("exchange", EXCHANGES.values(), ids=EXCHANGES)
def test_one_byte_at_a_time(exchange: object) -> None:
    stream = exchange.reply + exchange.request + b"\x00\x00"  # type: ignore[attr-defined]
    framer = Framer()
    frames = [frame for byte in stream for frame in framer.feed(bytes([byte]))]
    assert _plain(frames) == _plain(Framer().feed(stream))
    assert len(frames) == 2
    assert not framer.between_frames


def test_many_frames_in_one_chunk() -> None:
    assert len(Framer().feed(JSON_REQUEST * 50 + BINARY_REQUEST[:9])) == 50


def test_large_frame_is_received_into_its_own_room() -> None:
    body = bytes(range(256)) * 4096
    whole = encode_frame(0, b"{}", body)
    framer = Framer()
    assert framer.feed(whole[:70_000]) == []
    frames: list[Frame] = []
    at = 70_000
    while room := framer.room():
        part = whole[at : at + 50_000]
        room[: len(part)] = part
        frames += framer.filled(len(part))
        at += len(part)
    assert _plain(frames) == [(0, b"{}", body)]
    assert framer.between_frames


def test_filled_without_room_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="without room"):
        Framer().filled(1)


@pytest.mark.parametrize("total", [0, 3, 1025, 0xFFFFFFFF, 0x47455420])
def test_length_out_of_limits_is_refused_before_memory_is_reserved(total: int) -> None:
    framer = Framer(max_frame_bytes=1024)
    with pytest.raises(WireFormatError, match="Frame of"):
        framer.feed(total.to_bytes(4, "big") + b"rest")


def test_limit_is_inclusive() -> None:
    whole = encode_frame(0, b"{}", b"x" * 1018)
    assert len(Framer(max_frame_bytes=1024).feed(whole)) == 1


def test_header_longer_than_its_frame() -> None:
    with pytest.raises(WireFormatError, match="Header ends"):
        Framer().feed(bytes.fromhex("0000000600000003") + b"ab")


def test_body_is_read_only() -> None:
    (frame,) = Framer().feed(encode_frame(0, b"{}", b"body"))
    assert frame.body.readonly
