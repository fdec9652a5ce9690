"""Packets of a server's stream, however its bytes come."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Iterator

import pytest
from pymysql.err import InternalError, OperationalError

from connect_core.systems.mysql.binlog.packets import StreamedPackets

LARGEST = 0xFFFFFF
Ends = tuple[socket.socket, socket.socket]
ENDED = b"\xfe\x00\x00\x02\x00"


@pytest.fixture
def ends() -> Iterator[Ends]:
    """Of the server, and of who reads."""
    server, reader = socket.socketpair()
    with server, reader:
        yield server, reader


def framed(payloads: list[bytes], first: int = 1) -> bytes:
    """As the server sends them, numbered."""
    said, number = b"", first
    for payload in payloads:
        rest = payload
        while True:
            part, rest = rest[:LARGEST], rest[LARGEST:]
            said += struct.pack("<I", len(part) | (number & 0xFF) << 24) + part
            number += 1
            if len(part) < LARGEST:
                break
    return said


def reading(ends: Ends) -> StreamedPackets:
    return StreamedPackets(ends[1], 5)


def sent(ends: Ends, said: bytes) -> threading.Thread:
    thread = threading.Thread(target=ends[0].sendall, args=(said,))
    thread.start()
    return thread


@pytest.mark.parametrize("seed", range(5))
def test_packets_come_whole_however_their_bytes_come(ends: Ends, seed: int) -> None:
    chosen = random.Random(seed)
    wanted = [chosen.randbytes(chosen.choice([0, 1, 5, 300, 70_000])) for _ in range(600)]
    said = framed([b"\0" + one for one in wanted])

    def send() -> None:
        at = 0
        while at < len(said):
            size = chosen.choice([1, 3, 4, 5, 1_000, 100_000])
            ends[0].sendall(said[at : at + size])
            at += size

    thread = threading.Thread(target=send)
    thread.start()
    packets = reading(ends)
    for one in wanted:
        assert packets.packet() == one
        packets.has_more()
    thread.join()
    assert not packets.has_more()


@pytest.mark.parametrize("size", [LARGEST - 2, LARGEST - 1, LARGEST, 2 * LARGEST - 1, 2 * LARGEST + 7])
def test_a_packet_of_the_largest_size_goes_on_in_the_next_one(ends: Ends, size: int) -> None:
    large = random.Random(size).randbytes(1_000) * (size // 1_000 + 1)
    thread = sent(ends, framed([b"\0" + large[:size], b"\0next"]))
    packets = reading(ends)
    assert packets.packet() == large[:size]
    assert packets.packet() == b"next"
    thread.join()


def test_the_end_of_the_stream_is_no_packet(ends: Ends) -> None:
    ends[0].sendall(framed([b"\0one", ENDED]))
    packets = reading(ends)
    assert packets.packet() == b"one"
    assert packets.packet() is None


def test_a_packet_that_begins_as_an_end_does_and_is_longer_is_one(
    ends: Ends,
) -> None:
    ends[0].sendall(framed([b"\xfe12345678"]))
    assert reading(ends).packet() == b"12345678"


def test_an_error_of_the_server_is_raised_with_its_number(ends: Ends) -> None:
    ends[0].sendall(framed([b"\xff" + struct.pack("<H", 1236) + b"#HY000" + b"could not find first log file"]))
    with pytest.raises(OperationalError, match=r"1236.*could not find"):
        reading(ends).packet()


@pytest.mark.parametrize("cut_off", [b"", framed([b"\0cut off"], first=2)[:-1], framed([b"\0"], first=2)[:3]])
def test_a_connection_that_is_closed_is_lost(ends: Ends, cut_off: bytes) -> None:
    """Also where the look for more has seen it first: what was there before is given."""
    ends[0].sendall(framed([b"\0one"]) + cut_off)
    ends[0].close()
    packets = reading(ends)
    assert packets.packet() == b"one"
    packets.has_more()
    with pytest.raises(OperationalError, match="Lost connection"):
        packets.packet()


def test_silence_for_longer_than_the_server_may_need_is_a_lost_connection(
    ends: Ends,
) -> None:
    packets = StreamedPackets(ends[1], 0.05)
    assert not packets.has_more()
    with pytest.raises(OperationalError, match=r"Lost connection.*timed out"):
        packets.packet()


def test_a_packet_that_is_missing_is_noticed(ends: Ends) -> None:
    ends[0].sendall(framed([b"\0one"]) + framed([b"\0three"], first=3))
    packets = reading(ends)
    packets.packet()
    with pytest.raises(InternalError, match="Packet 2 of the server was expected, and 3 has come"):
        packets.packet()


def test_a_server_that_is_stopped_begins_to_count_anew(ends: Ends) -> None:
    ends[0].sendall(framed([b"\0one"]) + framed([b"\0stopping"], first=0))
    packets = reading(ends)
    packets.packet()
    with pytest.raises(OperationalError, match="Lost connection"):
        packets.packet()
