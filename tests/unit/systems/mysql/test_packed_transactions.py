"""What is in a packed transaction. Those of a server are in the contract tests."""

from __future__ import annotations

import io
import struct
import tracemalloc
from collections.abc import Iterator

import pytest
import zstandard

from connect_core.systems.mysql.binlog import log_events
from connect_core.systems.mysql.binlog.log_events import DamagedLog, LogEvent
from connect_core.systems.mysql.binlog.packed_transactions import Unpacking, unpacked_events


def event(kind: int, body: bytes) -> bytes:
    return struct.pack("<IBIIIH", 1_700_000_000, kind, 7, log_events.HEADER + len(body), 0, 0) + body


def payload(data: bytes, size: int, by: int = log_events.ZSTD) -> bytes:
    packed_by = bytes((by,)) if by < 251 else b"\xfc" + struct.pack("<H", by)
    fields = [(log_events.PACKED_BY, packed_by), (log_events.UNPACKED_SIZE, b"\xfe" + struct.pack("<Q", size))]
    return b"".join(bytes((kind, len(value))) + value for kind, value in fields) + b"\0" + data


def packed(data: bytes) -> bytes:
    return payload(zstandard.ZstdCompressor().compress(data), len(data))


TWO = event(log_events.QUERY, b"first") + event(log_events.XID, b"\0" * 8)


@pytest.mark.parametrize(
    "body", [packed(TWO), payload(TWO, len(TWO), by=log_events.NOT_PACKED)], ids=["zstd", "as it is"]
)
def test_events_in_it(body: bytes) -> None:
    assert [(one.kind, one.body) for one in unpacked_events(body)] == [
        (log_events.QUERY, b"first"),
        (log_events.XID, b"\0" * 8),
    ]


DAMAGED: list[tuple[bytes, str]] = [
    (packed(TWO)[:-5], "packed transaction"),
    (packed(TWO[:-1]), "is cut off"),
    (packed(TWO[:-25]), "is cut off"),
    (payload(zstandard.ZstdCompressor().compress(TWO[:24]), len(TWO)), "is not whole"),
    (payload(TWO, len(TWO), by=3), "in an unknown way, of number 3"),
    (payload(b"no frame at all", len(TWO)), "cannot be unpacked"),
    (packed(struct.pack("<IBIIIH", 0, 2, 7, 3, 0, 0)), "is cut off"),
]


@pytest.mark.parametrize(("body", "why"), DAMAGED, ids=range(len(DAMAGED)))
def test_what_is_not_whole_is_damaged(body: bytes, why: str) -> None:
    with pytest.raises(DamagedLog, match=why):
        list(unpacked_events(body))


def test_one_that_is_larger_than_memory_is_read_piece_by_piece() -> None:
    one, many = event(log_events.QUERY, b"x" * 8_000), 20_000
    packing, into = zstandard.ZstdCompressor(), io.BytesIO()
    with packing.stream_writer(into, closefd=False) as writing:
        for _ in range(many):
            writing.write(one)
    body = payload(into.getvalue(), many * len(one))
    tracemalloc.start()
    try:
        assert sum(1 for _ in unpacked_events(body)) == many
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def rotates(file: str) -> LogEvent:
    return LogEvent(log_events.ROTATE, 0, 1, 40, 0, log_events.ARTIFICIAL, b"\0" * 8 + file.encode())


def of_log(kind: int, begin: int, size: int, body: bytes = b"") -> LogEvent:
    return LogEvent(kind, 0, 1, size, begin + size, 0, body)


def places(log: Iterator[LogEvent], ahead: int = 0) -> list[int]:
    return [one.place for one in Unpacking("bin.000001", ahead).events(log) if one.is_in_file]


def test_what_needs_more_places_than_the_file_has_moves_what_follows() -> None:
    many = packed(event(log_events.QUERY, b"") * 100)
    log = [of_log(log_events.PACKED_TRANSACTION, 100, 60, many), of_log(log_events.GTID, 160, 40)]
    assert places(iter(log)) == [*range(100, 200), 140, 200]
    assert places(iter(log), ahead=5) == [*range(105, 205), 145, 205]
    small = [of_log(log_events.PACKED_TRANSACTION, 100, 60, packed(TWO)), of_log(log_events.GTID, 160, 40)]
    assert places(iter(small)) == [100, 101, 100, 160]


@pytest.mark.parametrize(("file", "place"), [("bin.000001", 9), ("bin.000002", 4)])
def test_another_file_begins_anew(file: str, place: int) -> None:
    assert places(iter([rotates(file), of_log(log_events.GTID, 4, 40)]), ahead=5) == [place]
