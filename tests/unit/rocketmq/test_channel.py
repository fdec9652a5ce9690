from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator

import pytest

from connect_core.errors import Unreachable
from connect_core.rocketmq.channel import Channel
from connect_core.rocketmq.connection import Purpose
from connect_core.rocketmq.errors import ConnectionLost, NoAnswer
from connect_core.rocketmq.options import ClientOptions
from connect_core.rocketmq.testing import ScriptedServer, cut, late, reply, silence
from connect_core.rocketmq.wire.commands import ResponseCode
from connect_core.rocketmq.wire.header import Command
from connect_core.rocketmq.wire.signing import Credentials, signature

ASK = 30


@pytest.fixture
def channel(server: ScriptedServer, options: ClientOptions) -> Iterator[Channel]:
    made = Channel(server.address, options, Purpose.ASK, signs=True)
    yield made
    made.close()


def _ask(channel: Channel, seconds: float = 5.0) -> Command:
    return channel.ask(Command(ASK), time.monotonic() + seconds).result()


def test_connects_when_needed_and_stays_connected(server: ScriptedServer, channel: Channel) -> None:
    server.on(ASK, reply())
    assert server.connections == 0
    _ask(channel)
    _ask(channel)
    assert server.connections == 1


def test_a_lost_connection_is_made_good_once(server: ScriptedServer, channel: Channel) -> None:
    server.on(ASK, cut, reply(body=b"second"))
    assert bytes(_ask(channel).body) == b"second"
    assert server.connections == 2
    assert len(server.requests(ASK)) == 2


def test_a_connection_lost_twice_is_an_error(server: ScriptedServer, channel: Channel) -> None:
    server.on(ASK, cut)
    with pytest.raises(ConnectionLost):
        _ask(channel)
    assert len(server.requests(ASK)) == 2


def test_a_server_that_is_going_away_is_asked_again_over_a_new_connection(
    server: ScriptedServer, channel: Channel
) -> None:
    server.on(ASK, reply(ResponseCode.GO_AWAY), reply(body=b"second"))
    assert bytes(_ask(channel).body) == b"second"
    assert server.connections == 2


def test_a_server_that_stays_going_away_is_an_answer(server: ScriptedServer, channel: Channel) -> None:
    server.on(ASK, reply(ResponseCode.GO_AWAY))
    assert _ask(channel).code == ResponseCode.GO_AWAY
    assert len(server.requests(ASK)) == 2


def test_a_timeout_is_not_repeated(server: ScriptedServer, channel: Channel) -> None:
    server.on(ASK, silence)
    with pytest.raises(NoAnswer):
        _ask(channel, 0.05)
    assert len(server.requests(ASK)) == 1


def test_other_codes_are_answers(server: ScriptedServer, channel: Channel) -> None:
    server.on(ASK, reply(17, remark="no"))
    assert _ask(channel).code == 17


def test_waiting_repeats_too_and_keeps_its_moment(server: ScriptedServer, channel: Channel) -> None:
    server.on(ASK, cut, late(0.5, reply()))
    asked = channel.ask(Command(ASK), time.monotonic() + 5)
    started = time.monotonic()
    assert not asked.wait(started + 0.1)
    assert 0.05 < time.monotonic() - started < 0.4
    assert asked.result().code == 0


def test_a_server_that_is_gone(server: ScriptedServer, channel: Channel) -> None:
    server.on(ASK, reply())
    _ask(channel)
    server.close()
    with pytest.raises(Unreachable, match="Cannot connect"):
        _ask(channel)


def test_a_send_is_never_repeated(server: ScriptedServer, channel: Channel) -> None:
    server.on(320, cut, reply())
    pending = channel.send_once(Command(320), time.monotonic() + 5)
    with pytest.raises(ConnectionLost) as lost:
        pending.result()
    assert lost.value.request_left
    assert len(server.requests(320)) == 1


def test_requests_are_signed_last(server: ScriptedServer, options: ClientOptions) -> None:
    server.on(320, reply())
    options = dataclasses.replace(options, credentials=Credentials("ak", "sk"))
    channel = Channel(server.address, options, Purpose.SEND, signs=True)
    channel.send_once(Command(320, fields={"b": "t"}, body=b"BODY"), time.monotonic() + 5).result()
    (received,) = server.requests(320)
    assert received.fields["Signature"] == signature({"b": "t", "AccessKey": "ak"}, b"BODY", "sk")
    channel.close()


def test_name_servers_get_no_credentials(server: ScriptedServer, options: ClientOptions) -> None:
    server.on(ASK, reply())
    options = dataclasses.replace(options, credentials=Credentials("ak", "sk"))
    channel = Channel(server.address, options, Purpose.ASK, signs=False)
    _ask(channel)
    assert server.requests(ASK)[0].fields == {}
    channel.close()
