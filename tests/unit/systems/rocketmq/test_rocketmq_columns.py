"""Stored messages field by field: the same as decoded one by one, whatever the layout, and never from broken bytes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.errors import WireFormatError
from connect_core.rocketmq import StoredMessage
from connect_core.rocketmq.compression import decompress
from connect_core.rocketmq.wire.stored_message import MAGIC_V1, MAGIC_V2, decode_messages, encode_message
from connect_core.systems.rocketmq import columns
from connect_core.systems.rocketmq.columns import Columns, columns_of, columns_of_messages

HOSTS = {4: b"\x7f\0\0\1\0\0\x1f\x90", 16: b"\0" * 15 + b"\x01\0\0\x1f\x90"}


@st.composite
def stored_messages(draw: st.DrawFn, usual: bool = False) -> list[StoredMessage]:
    messages = []
    offset = draw(st.integers(0, 1 << 40))
    flag = st.integers(-(1 << 31), (1 << 31) - 1)
    topics = st.text("abc", min_size=1, max_size=5)
    one_topic = st.just(draw(topics))
    for _ in range(draw(st.integers(0, 12))):
        born, at = (4, 4) if usual else (draw(st.sampled_from([4, 16])) for _ in range(2))
        magic = MAGIC_V1 if usual else draw(st.sampled_from([MAGIC_V1, MAGIC_V2]))
        flags = draw(st.sampled_from([0, 0x1, 0x301])) | (0x10 if born == 16 else 0) | (0x20 if at == 16 else 0)
        body, properties = draw(st.binary(max_size=40)), draw(st.binary(max_size=300))
        times = [draw(st.integers(0, 1 << 42)) for _ in range(2)]
        topic = draw(one_topic if usual else topics)
        messages.append(
            StoredMessage(0, magic, 0, 3, draw(flag), offset, 7, flags, times[0], HOSTS[born], times[1], HOSTS[at], 0,
                          0, 0, topic, body, properties)
        )  # fmt: skip
        offset += draw(st.integers(1, 3))
    return messages


def usual(topic: str, body: bytes) -> StoredMessage:
    return StoredMessage(0, MAGIC_V1, 0, 0, 0, 0, 0, 0, 1, HOSTS[4], 2, HOSTS[4], 0, 0, 0, topic, body, b"")


def values(found: Columns) -> list[list[object]]:
    columns = (found.offsets, found.crcs, found.flags, found.sys_flags, found.born_ms, found.stored_ms)
    return [*(column.tolist() for column in columns), found.bodies.to_pylist(), found.properties.to_pylist()]


@pytest.fixture(scope="module", autouse=True, params=[0, columns.FEW], ids=["many", "few"])
def many(request: pytest.FixtureRequest) -> Iterator[None]:
    """As if a handful of messages were many, so that they are read field by field."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "FEW", request.param)
        yield


@given(stored_messages())
def test_the_same_as_message_by_message(messages: list[StoredMessage]) -> None:
    data = b"".join(map(encode_message, messages))
    assert values(columns_of(data)) == values(columns_of_messages(decode_messages(data, decompress)))


@given(stored_messages(usual=True))
def test_the_usual_layout_is_read_without_decoding_messages(messages: list[StoredMessage]) -> None:
    data = b"".join(map(encode_message, messages))
    found = columns._usual(data, columns._starts(data) or [])
    assert found is not None
    assert found.bodies.to_pylist() == [message.body for message in messages]


@given(stored_messages(usual=True), st.data())
def test_broken_bytes_are_an_error_or_what_decoding_one_by_one_gives(
    messages: list[StoredMessage], data: st.DataObject
) -> None:
    whole = bytearray(b"".join(map(encode_message, messages)))
    if not whole:
        return
    if data.draw(st.booleans()):
        del whole[data.draw(st.integers(0, len(whole) - 1)) :]
    else:
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        expected = decode_messages(bytes(whole), decompress)
    except WireFormatError:
        with pytest.raises(WireFormatError):
            columns_of(bytes(whole))
    else:
        assert values(columns_of(bytes(whole))) == values(columns_of_messages(expected))


def test_a_topic_that_is_no_text_is_broken() -> None:
    whole = encode_message(usual("a-topic", b"body"))
    with pytest.raises(WireFormatError):
        columns_of(whole.replace(b"a-topic", b"a-t\xffpic"))


def test_parts_of_columns() -> None:
    message = usual("t", b"body")
    found = columns_of(b"".join(encode_message(message._replace(queue_offset=n)) for n in (3, 4, 6, 9)))
    assert found.before(6).offsets.tolist() == [3, 4]
    assert found.between(1, 3).offsets.tolist() == [4, 6]
    assert len(found.between(-1, 0)) == 0
    assert found.between(0, 4) is found
