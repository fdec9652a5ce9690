"""Pull answers become batches within the limits of a range, and every offset is accounted for."""

from __future__ import annotations

import pytest

from connect_core.errors import WireFormatError
from connect_core.rocketmq import MissingRange, PullStatus, StoredSlice
from connect_core.rocketmq.reading import HOLE
from connect_core.rocketmq.wire.stored_message import encode_message
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Pins, Range
from connect_core.systems.rocketmq.decoding import record_batch
from connect_core.systems.rocketmq.gathering import Gathering
from tests.unit.systems.rocketmq.test_rocketmq_decoding import stored


def gathering(begin: int, end: int, *, records: int = 1_000_000, size: int = 1 << 30) -> Gathering:
    pins = Pins(1, "pipeline", {}, "code")
    return Gathering(
        Range("live", Partition("orders/broker-a/0"), 0, 0, begin, end, records, size, {}, pins), record_batch
    )


def part(begin: int, end: int, *offsets: int) -> StoredSlice:
    """Bodies of ten bytes at these offsets (all when none is given)."""
    held = offsets or range(begin, end)
    return StoredSlice(begin, end, memoryview(b"".join(encode_message(stored(n, b"x" * 10)) for n in held)), HOLE)


def without(begin: int, end: int, status: PullStatus) -> StoredSlice:
    return StoredSlice(begin, end, memoryview(b""), status.value)


def test_answers_are_put_together() -> None:
    gathered = gathering(5, 12)
    gathered.add(part(5, 8))
    gathered.add(part(8, 12))
    messages, batch = gathered.take()
    assert batch.records.column("offset").to_pylist() == messages.offsets.tolist() == list(range(5, 12))
    assert (batch.next_offset, batch.holes, gathered.hole, gathered.pending()) == (12, (), None, False)


def test_what_the_broker_says_it_filtered_out_though_it_was_not_asked_to_is_missing() -> None:
    gathered = gathering(0, 20)
    gathered.add(part(0, 2))
    gathered.add(without(2, 10, PullStatus.FILTERED))
    _, batch = gathered.take()
    assert (batch.next_offset, batch.holes) == (2, ())
    assert gathered.hole == MissingRange(2, 10, PullStatus.FILTERED.value)


def test_nothing_is_taken_behind_an_offset_without_a_message() -> None:
    gathered = gathering(0, 20)
    gathered.add(part(0, 3))
    gathered.add(part(3, 9, 3, 4, 7, 8))
    _, batch = gathered.take()
    assert (len(batch.records), batch.next_offset, batch.holes) == (5, 5, ())
    assert gathered.hole == MissingRange(5, 7, HOLE)


def test_nothing_is_taken_behind_what_is_deleted() -> None:
    gathered = gathering(0, 20)
    gathered.add(part(0, 3))
    gathered.add(without(3, 9, PullStatus.TOO_SMALL))
    _, batch = gathered.take()
    assert (batch.next_offset, gathered.hole) == (3, MissingRange(3, 9, PullStatus.TOO_SMALL.value))
    assert not gathered.pending()


def test_a_hole_behind_the_end_of_the_range_is_none_of_its_business() -> None:
    gathered = gathering(0, 20, records=2)
    gathered.add(part(0, 6, 0, 1, 2))
    _, batch = gathered.take()
    assert (batch.next_offset, gathered.exhausted()) == (2, True)


@pytest.mark.parametrize(("size", "taken"), [(1, 1), (10, 1), (19, 1), (20, 2), (1000, 5)])
def test_a_range_holds_its_bytes_and_always_one_message(size: int, taken: int) -> None:
    gathered = gathering(0, 20, size=size)
    gathered.add(part(0, 5))
    _, batch = gathered.take()
    assert (len(batch.records), batch.next_offset) == (taken, taken)
    assert gathered.exhausted() == (taken < 5)


def test_messages_outside_of_the_slice_are_left_out() -> None:
    gathered = gathering(2, 4)
    gathered.add(part(2, 4, 0, 1, 2, 3, 4, 5))
    _, batch = gathered.take()
    assert batch.records.column("offset").to_pylist() == [2, 3]


@pytest.mark.parametrize(
    ("begin", "end", "stored", "at", "there"),
    [(0, 4, (0, 2, 1, 3), 1, 2), (5, 6, (4,), 5, 4), (5, 7, (3, 4), 5, 4)],
)
def test_messages_that_stand_elsewhere_than_they_say_are_an_error_that_says_where(
    begin: int, end: int, stored: tuple[int, ...], at: int, there: int
) -> None:
    gathered = gathering(begin, 20)
    gathered.add(part(begin, end, *stored))
    where = rf"says it is at {there} \[orders/broker-a/0, offset {at}\].*continue at {at + 1}: waybill offsets set"
    with pytest.raises(WireFormatError, match=where):
        gathered.take()
