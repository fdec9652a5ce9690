"""What is wanted of a queue becomes pieces: nothing twice, nothing left out, and what is lost is told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from connect_core.rocketmq import Queue, QueueBounds
from connect_core.spark.ranges import ReadPiece, ReadRange, pieces

QUEUE = Queue("orders", "broker-a", 0)
OFFSETS = st.integers(0, 60)


def cut(begin: int | None, end: int | None, seen: tuple[int, int], most: int = 1_000) -> list[tuple[int, int, str]]:
    found = pieces(ReadRange(QUEUE, begin, end), QueueBounds(*seen, 0), most)
    return [(piece.begin, piece.end, piece.lost) for piece in found]


def test_what_is_not_said_is_what_is_there() -> None:
    assert cut(None, None, (5, 20)) == [(5, 20, "")]
    assert cut(7, None, (5, 20)) == [(7, 20, "")]
    assert cut(None, 9, (5, 20)) == [(5, 9, "")]
    assert cut(None, 3, (5, 20)) == []
    assert cut(None, None, (5, 5)) == []


def test_what_is_long_is_cut_evenly() -> None:
    assert cut(0, 10, (0, 10), most=4) == [(0, 3, ""), (3, 6, ""), (6, 10, "")]
    assert cut(0, 8, (0, 10), most=4) == [(0, 4, ""), (4, 8, "")]


def test_what_is_not_there_is_told() -> None:
    below, behind = "the oldest message there is has offset 5", "the queue ends at 20"
    assert cut(2, 8, (5, 20)) == [(2, 5, below), (5, 8, "")]
    assert cut(1, 3, (5, 20)) == [(1, 3, below)]
    assert cut(18, 30, (5, 20)) == [(18, 20, ""), (20, 30, behind)]
    assert cut(25, 30, (5, 20)) == [(25, 30, behind)]
    assert cut(25, None, (5, 20)) == [(25, 25, behind)]
    assert cut(0, 30, (5, 20)) == [(0, 5, below), (5, 20, ""), (20, 30, behind)]
    assert cut(20, 20, (5, 20)) == []


def test_an_end_that_is_far_away_makes_no_more_pieces() -> None:
    assert cut(0, 1 << 60, (0, 2), most=1) == [(0, 1, ""), (1, 2, ""), (2, 1 << 60, "the queue ends at 2")]


@given(OFFSETS, OFFSETS, OFFSETS, OFFSETS, st.integers(1, 9))
def test_every_wanted_offset_is_in_one_piece(first: int, second: int, third: int, fourth: int, most: int) -> None:
    (begin, end), (oldest, newest) = sorted((first, second)), sorted((third, fourth))
    found = list(pieces(ReadRange(QUEUE, begin, end), QueueBounds(oldest, newest, 0), most))
    assert [offset for piece in found for offset in range(piece.begin, piece.end)] == list(range(begin, end))
    for piece in found:
        there = oldest <= piece.begin and piece.end <= newest
        assert piece == ReadPiece(QUEUE, piece.begin, piece.end, piece.lost)
        assert piece.lost or (there and piece.end - piece.begin <= most)
        assert not (piece.lost and begin < end and there)
