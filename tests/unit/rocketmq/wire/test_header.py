from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.errors import WireFormatError
from connect_core.rocketmq.wire.frame import Framer, encode_frame
from connect_core.rocketmq.wire.header import BINARY, JSON, Command, decode, encode
from tests.unit.rocketmq.vectors import BINARY_REQUEST, JSON_REQUEST

REQUEST = Command(30, 1, 0, "", {"topic": "t", "queueId": "0"})
INT32 = st.integers(-(2**31), 2**31 - 1)


def _decoded(whole: bytes) -> Command:
    (frame,) = Framer().feed(whole)
    return decode(frame)


@pytest.mark.parametrize(("encoding", "whole"), [(JSON, JSON_REQUEST), (BINARY, BINARY_REQUEST)])
def test_vectors_both_ways(encoding: int, whole: bytes) -> None:
    assert encode(REQUEST, encoding) == whole
    assert _decoded(whole) == REQUEST


@given(
    st.integers(0, 32767),
    INT32,
    INT32,
    st.text(),
    st.dictionaries(st.text(max_size=20), st.text(min_size=1)),
    st.binary(),
)
def test_round_trip(code: int, opaque: int, flag: int, remark: str, fields: dict[str, str], body: bytes) -> None:
    command = Command(code, opaque, flag, remark, fields, body)
    for encoding in (JSON, BINARY):
        assert _decoded(encode(command, encoding)) == command


def test_binary_leaves_out_empty_fields_because_servers_read_them_as_null() -> None:
    assert _decoded(encode(Command(1, fields={"i": "", "b": "x"}), BINARY)).fields == {"b": "x"}


def test_json_values_become_the_text_a_server_would_send() -> None:
    header = b'{"code":0,"opaque":5,"extFields":{"a":1,"b":true,"c":null,"d":false,"e":"x","f":1.5}}'
    command = _decoded(encode_frame(JSON, header))
    assert command.fields == {"a": "1", "b": "true", "d": "false", "e": "x", "f": "1.5"}


def test_kinds_of_commands() -> None:
    assert Command(0, flag=1).is_response
    assert not Command(0, flag=2).is_response
    assert Command(40, flag=2).is_one_way


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[]",
        b"{",
        b'{"opaque":1}',
        b'{"code":1}',
        b'{"code":"1","opaque":1}',
        b'{"code":true,"opaque":1}',
        b'{"code":1,"opaque":2147483648}',
        b'{"code":1,"opaque":1,"extFields":[]}',
        b'{"code":1,"opaque":1,"extFields":{"a":{}}}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_broken_json_headers(header: bytes) -> None:
    with pytest.raises(WireFormatError):
        _decoded(encode_frame(JSON, header))


def test_every_cut_of_a_binary_header_is_an_error() -> None:
    header = BINARY_REQUEST[8:]
    for length in range(len(header)):
        with pytest.raises(WireFormatError, match="broken at byte"):
            _decoded(encode_frame(BINARY, header[:length]))


def test_binary_text_that_is_not_utf8() -> None:
    with pytest.raises(WireFormatError):
        _decoded(encode_frame(BINARY, BINARY_REQUEST[8:].replace(b"topic", b"\xff\xfe\xfd\xfc\xfb")))


def test_unknown_encoding() -> None:
    with pytest.raises(WireFormatError, match="Unknown header encoding 9"):
        _decoded(encode_frame(9, b"{}"))
