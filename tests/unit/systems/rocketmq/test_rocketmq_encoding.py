"""A batch encoded by column is the same, byte for byte, as one encoded message by message."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.rocketmq import Batch, encode_batch
from connect_core.rocketmq.wire.batch_entries import MAX_ENTRIES, MAX_PROPERTIES_BYTES
from connect_core.systems.rocketmq.encoding import batch_of, encode_entries


def columns(*values: list[bytes]) -> list[pa.Array]:
    return [pa.array(column, type=pa.binary()) for column in values]


def encoded(bodies: pa.Array, properties: pa.Array) -> Batch:
    return batch_of(encode_entries(bodies, properties))


@given(st.lists(st.tuples(st.binary(max_size=50), st.binary(max_size=300)), max_size=40), st.integers(0, 3))
def test_the_same_as_message_by_message(messages: list[tuple[bytes, bytes]], first: int) -> None:
    bodies, properties = [body for body, _ in messages], [text for _, text in messages]
    sliced = [column.slice(first) for column in columns(bodies, properties)]
    assert encoded(*sliced) == encode_batch(bodies[first:], properties[first:])


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=40), st.data())
def test_a_batch_of_some_entries(bodies: list[bytes], data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(bodies)))
    end = data.draw(st.integers(begin, len(bodies)))
    entries = encode_entries(*columns(bodies, bodies))
    assert batch_of(entries.slice(begin, end - begin)) == encode_batch(bodies[begin:end], bodies[begin:end])


def test_no_messages() -> None:
    assert encoded(*columns([], [])) == Batch(0, b"")


def test_what_would_damage_a_queue_is_refused() -> None:
    with pytest.raises(ValueError, match="1001 messages"):
        encoded(*columns([b""] * (MAX_ENTRIES + 1), [b""] * (MAX_ENTRIES + 1)))
    with pytest.raises(ValueError, match="32001 bytes"):
        encoded(*columns([b""], [b"x" * (MAX_PROPERTIES_BYTES + 1)]))
    with pytest.raises(ValueError, match="32001 bytes"):
        encoded(*columns([b""] * 99, [*[b""] * 98, b"x" * (MAX_PROPERTIES_BYTES + 1)]))
