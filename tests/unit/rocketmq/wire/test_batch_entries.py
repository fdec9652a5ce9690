from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.errors import WireFormatError
from connect_core.rocketmq.wire.batch_entries import (
    MAX_BATCH_BYTES,
    MAX_ENTRIES,
    MAX_PROPERTIES_BYTES,
    Batch,
    BatchEntry,
    decode_entries,
    encode_batch,
    encode_batches,
)
from tests.unit.rocketmq.vectors import BATCH_ENTRY

ENTRIES = st.lists(st.builds(BatchEntry, st.integers(-(2**31), 2**31 - 1), st.binary(), st.binary()), max_size=20)


def test_vector_both_ways() -> None:
    assert encode_batch([b"hi"], [b"TAGS\x01a\x02"], [5]) == Batch(1, BATCH_ENTRY)
    assert decode_entries(BATCH_ENTRY) == [BatchEntry(5, b"hi", b"TAGS\x01a\x02")]


@given(ENTRIES)
def test_round_trip(entries: list[BatchEntry]) -> None:
    batch = encode_batch(
        [entry.body for entry in entries],
        [entry.properties for entry in entries],
        [entry.flag for entry in entries],
    )
    assert batch.count == len(entries)
    assert decode_entries(batch.body) == entries


@pytest.mark.parametrize("length", [2047, 2048, MAX_PROPERTIES_BYTES])
def test_long_properties(length: int) -> None:
    assert decode_entries(encode_batch([b"x"], [b"p" * length]).body) == [BatchEntry(0, b"x", b"p" * length)]


def test_properties_that_would_damage_the_queue() -> None:
    with pytest.raises(ValueError, match="Properties of 32001 bytes"):
        encode_batch([b"x"], [b"p" * (MAX_PROPERTIES_BYTES + 1)])


def test_too_many_messages_for_one_batch() -> None:
    assert encode_batch([b""] * MAX_ENTRIES, [b""] * MAX_ENTRIES).count == MAX_ENTRIES
    with pytest.raises(ValueError, match="1001 messages"):
        encode_batch([b""] * (MAX_ENTRIES + 1), [b""] * (MAX_ENTRIES + 1))


@pytest.mark.parametrize(("properties", "flags"), [([b""], None), ([b"", b""], [0])])
def test_lists_of_different_length(properties: list[bytes], flags: list[int] | None) -> None:
    with pytest.raises(ValueError, match="zip"):
        encode_batch([b"a", b"b"], properties, flags)


def test_batches_keep_order_and_limits() -> None:
    bodies = [str(number).encode() * 10 for number in range(2500)]
    batches = list(encode_batches(bodies, [b"p"] * len(bodies), list(range(len(bodies)))))
    assert [batch.count for batch in batches] == [1000, 1000, 500]
    entries = [entry for batch in batches for entry in decode_entries(batch.body)]
    assert [entry.body for entry in entries] == bodies
    assert [entry.flag for entry in entries] == list(range(2500))


def test_batches_are_cut_by_size() -> None:
    bodies = [b"x" * 700_000] * 9
    batches = list(encode_batches(bodies, [b""] * 9))
    assert [batch.count for batch in batches] == [4, 4, 1]
    assert max(len(batch.body) for batch in batches) <= MAX_BATCH_BYTES


def test_a_message_above_the_limit_goes_alone() -> None:
    bodies = [b"a", b"x" * (MAX_BATCH_BYTES + 1), b"b"]
    assert [batch.count for batch in encode_batches(bodies, [b""] * 3)] == [1, 1, 1]


def test_nothing_gives_no_batch() -> None:
    assert list(encode_batches([], [])) == []


def test_every_cut_is_an_error() -> None:
    whole = BATCH_ENTRY * 2
    for length in range(len(whole)):
        if length % len(BATCH_ENTRY):
            with pytest.raises(WireFormatError, match="broken at byte"):
                decode_entries(whole[:length])


@pytest.mark.parametrize(("at", "value"), [(0, 30), (0, -1), (16, -1), (16, 2**31 - 1), (22, -1)])
def test_wrong_lengths(at: int, value: int) -> None:
    broken = bytearray(BATCH_ENTRY)
    width = 2 if at == 22 else 4
    broken[at : at + width] = value.to_bytes(width, "big", signed=True)
    with pytest.raises(WireFormatError):
        decode_entries(bytes(broken))
