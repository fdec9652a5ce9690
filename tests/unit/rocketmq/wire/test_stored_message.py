from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.errors import WireFormatError
from connect_core.rocketmq.compression import decompress
from connect_core.rocketmq.wire import stored_message
from connect_core.rocketmq.wire.batch_entries import encode_batch
from connect_core.rocketmq.wire.stored_message import (
    MAGIC_V1,
    MAGIC_V2,
    StoredMessage,
    crc_matches,
    decode_messages,
    encode_message,
    host_text,
    plain_body,
)
from tests.unit.rocketmq.vectors import STORED_MESSAGE

INNER = stored_message.NEED_UNWRAP | stored_message.INNER_BATCH
(VECTOR,) = decode_messages(STORED_MESSAGE, decompress)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)


@st.composite
def messages(draw: st.DrawFn) -> StoredMessage:
    """Any message that is no inner batch. Encoded by ourselves: proves symmetry only."""
    sys_flag = draw(st.integers(0, 0x7FF)) & ~stored_message.INNER_BATCH
    born = 20 if sys_flag & stored_message.BORN_HOST_V6 else 8
    store = 20 if sys_flag & stored_message.STORE_HOST_V6 else 8
    magic = draw(st.sampled_from([MAGIC_V1, MAGIC_V2]))
    letters = st.characters(codec="ascii", categories=("L", "N"))
    topic = draw(st.text(letters, max_size=200 if magic == MAGIC_V2 else 127))
    return StoredMessage(
        total_size=0,
        magic=magic,
        body_crc=0,
        queue_id=draw(INT32),
        flag=draw(INT32),
        queue_offset=draw(st.integers(0, 2**62)),
        physical_offset=draw(INT64),
        sys_flag=sys_flag,
        born_timestamp_ms=draw(INT64),
        born_host=draw(st.binary(min_size=born, max_size=born)),
        store_timestamp_ms=draw(INT64),
        store_host=draw(st.binary(min_size=store, max_size=store)),
        reconsume_times=draw(INT32),
        prepared_transaction_offset=draw(INT64),
        body_length=0,
        topic=topic,
        body=draw(st.binary()),
        properties=draw(st.binary()),
    )


def test_vector_both_ways() -> None:
    assert VECTOR.topic == "t1"
    assert VECTOR.body == b"v1body"
    assert (VECTOR.queue_id, VECTOR.flag, VECTOR.queue_offset, VECTOR.physical_offset) == (0, 7, 1, 258)
    assert (VECTOR.born_timestamp_ms, VECTOR.store_timestamp_ms) == (1234, 1795248126230)
    assert host_text(VECTOR.born_host) == "127.0.0.1:58896"
    assert host_text(VECTOR.store_host) == "127.0.0.1:20911"
    assert VECTOR.body_crc == 169085671
    assert crc_matches(VECTOR)
    assert VECTOR.offset_message_id == "7F000001000051AF0000000000000102"
    assert encode_message(VECTOR) == STORED_MESSAGE


@given(st.lists(messages(), max_size=5))
def test_round_trip_of_all_layouts(originals: list[StoredMessage]) -> None:
    data = b"".join(map(encode_message, originals))
    decoded = decode_messages(data, decompress)
    assert b"".join(map(encode_message, decoded)) == data
    for original, message in zip(originals, decoded, strict=True):
        computed = {"total_size": message.total_size, "body_crc": message.body_crc, "body_length": len(message.body)}
        assert original._replace(**computed) == message
        assert crc_matches(message)


def test_v6_hosts_are_printed_with_brackets() -> None:
    assert host_text(bytes(15) + b"\x01" + (10911).to_bytes(4, "big")) == "[::1]:10911"


def test_a_changed_body_does_not_match_its_checksum() -> None:
    assert not crc_matches(VECTOR._replace(body=b"v2body"))


def test_offsets_below_the_wanted_one_are_left_out() -> None:
    data = b"".join(encode_message(VECTOR._replace(queue_offset=offset)) for offset in range(3, 8))
    assert [message.queue_offset for message in decode_messages(data, decompress, 5)] == [5, 6, 7]


@pytest.mark.parametrize("packed", [False, True])
def test_inner_batch_is_expanded_and_cut_at_the_wanted_offset(packed: bool) -> None:
    body = encode_batch([b"a", b"", b"c"], [b"k\x01v\x02", b"", b"x\x01y\x02"], [1, 2, 3]).body
    flag = INNER | (0x301 if packed else 0)
    outer = VECTOR._replace(sys_flag=flag, queue_offset=10, body=zlib.compress(body) if packed else body)
    single = VECTOR._replace(queue_offset=13)
    data = encode_message(outer) + encode_message(single)
    inner = decode_messages(data, decompress, 11)
    assert [message.queue_offset for message in inner] == [11, 12, 13]
    assert [message.body for message in inner] == [b"", b"c", VECTOR.body]
    assert [message.flag for message in inner] == [2, 3, VECTOR.flag]
    assert inner[1].properties == b"x\x01y\x02"
    assert not any(message.compressed for message in inner)
    assert all(map(crc_matches, inner))
    assert inner[0].born_timestamp_ms == VECTOR.born_timestamp_ms


def test_only_both_bits_make_an_inner_batch() -> None:
    data = encode_message(VECTOR._replace(sys_flag=stored_message.NEED_UNWRAP))
    assert decode_messages(data, decompress)[0].body == VECTOR.body


def test_body_is_plain_only_when_asked() -> None:
    packed = zlib.compress(b"plain")
    (message,) = decode_messages(encode_message(VECTOR._replace(sys_flag=0x1, body=packed)), decompress)
    assert message.body == packed
    assert message.compressed
    assert plain_body(message, decompress) == b"plain"
    assert plain_body(VECTOR, decompress) == b"v1body"


def test_every_cut_is_an_error_that_says_where() -> None:
    data = STORED_MESSAGE * 2
    for length in range(1, len(data)):
        if length != len(STORED_MESSAGE):
            with pytest.raises(WireFormatError, match=r"at byte (0|114) of"):
                decode_messages(data[:length], decompress)


@pytest.mark.parametrize(
    ("at", "value"),
    [(0, 113), (0, 0), (0, -1), (4, -875286124), (84, -1), (84, 7), (84, 2**31 - 1), (84, -(2**31))],
)
def test_wrong_lengths_and_magic(at: int, value: int) -> None:
    broken = bytearray(STORED_MESSAGE)
    broken[at : at + 4] = value.to_bytes(4, "big", signed=True)
    with pytest.raises(WireFormatError):
        decode_messages(bytes(broken), decompress)


def test_topic_that_is_not_utf8() -> None:
    with pytest.raises(WireFormatError):
        decode_messages(STORED_MESSAGE.replace(b"\x02t1", b"\x02\xff\xfe"), decompress)
