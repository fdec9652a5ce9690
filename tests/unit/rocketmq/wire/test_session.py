from __future__ import annotations

import pytest

from connect_core.errors import WireFormatError
from connect_core.rocketmq.wire.frame import Framer
from connect_core.rocketmq.wire.header import ONE_WAY_FLAG, RESPONSE_FLAG, Command, decode, encode
from connect_core.rocketmq.wire.session import Reply, ServerRequest, WireSession, answer


def _reply(opaque: int, body: bytes = b"") -> bytes:
    return encode(Command(0, opaque, RESPONSE_FLAG, body=body))


def _sent(data: bytes) -> Command:
    (frame,) = Framer().feed(data)
    return decode(frame)


def test_requests_have_different_opaques() -> None:
    session = WireSession()
    sent = [session.request(Command(30, opaque=5, fields={"topic": "t"})) for _ in range(3)]
    assert len({opaque for opaque, _ in sent}) == 3
    for opaque, data in sent:
        assert _sent(data) == Command(30, opaque, fields={"topic": "t"})


def test_replies_out_of_order_and_in_pieces() -> None:
    session = WireSession()
    opaques = [session.request(Command(30))[0] for _ in range(3)]
    stream = b"".join(_reply(opaque, str(opaque).encode()) for opaque in reversed(opaques))
    events = [event for byte in stream for event in session.receive(bytes([byte]))]
    assert [event.opaque for event in events if isinstance(event, Reply)] == opaques[::-1]
    assert [bytes(event.command.body) for event in events] == [str(opaque).encode() for opaque in opaques[::-1]]


def test_server_requests_are_told_apart_from_replies_with_the_same_opaque() -> None:
    session = WireSession()
    opaque, _ = session.request(Command(30))
    push = Command(40, opaque, ONE_WAY_FLAG, fields={"consumerGroup": "g"})
    events = session.receive(encode(push) + _reply(opaque))
    assert events == [ServerRequest(push), Reply(opaque, Command(0, opaque, RESPONSE_FLAG))]


def test_reply_nobody_waits_for_is_dropped() -> None:
    session = WireSession()
    kept, forgotten = (session.request(Command(30))[0] for _ in range(2))
    session.forget(forgotten)
    events = session.receive(_reply(forgotten) + _reply(999) + _reply(kept) + _reply(kept))
    assert [event.opaque for event in events if isinstance(event, Reply)] == [kept]


def test_an_opaque_that_is_waited_for_is_not_given_out_again() -> None:
    session = WireSession()
    first, _ = session.request(Command(30))
    session._last_opaque = 2**31 - 1
    following = [session.request(Command(30))[0] for _ in range(2)]
    assert first not in following
    assert all(0 <= opaque < 2**31 for opaque in following)


def test_large_reply_through_room() -> None:
    session = WireSession()
    opaque, _ = session.request(Command(11))
    data = _reply(opaque, b"x" * 100_000)
    assert session.receive(data[:1000]) == []
    room = session.room()
    assert len(room) == len(data) - 1000
    room[:] = data[1000:]
    (event,) = session.filled(len(room))
    assert bytes(event.command.body) == b"x" * 100_000


def test_answer_to_the_server() -> None:
    reply = _sent(answer(Command(309, 77), 3, "no"))
    assert (reply.code, reply.opaque, reply.is_response, reply.remark) == (3, 77, True, "no")


def test_nonsense() -> None:
    with pytest.raises(WireFormatError):
        WireSession().receive(b"HTTP/1.1 400 Bad Request")
