from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from connect_core.errors import Unreachable
from connect_core.rocketmq.connection import BrokerConnection, Pending, Purpose
from connect_core.rocketmq.errors import ConnectionLost, NoAnswer
from connect_core.rocketmq.options import ClientOptions
from connect_core.rocketmq.testing import Link, ScriptedServer, cut, late, reply, silence
from connect_core.rocketmq.wire.header import BINARY, Command

ASK = 30


@pytest.fixture
def connection(server: ScriptedServer, options: ClientOptions) -> Iterator[BrokerConnection]:
    made = BrokerConnection(server.address, options, Purpose.ASK)
    yield made
    made.close()


def _soon(seconds: float = 5.0) -> float:
    return time.monotonic() + seconds


def _ask(connection: BrokerConnection, code: int = ASK, seconds: float = 5.0, body: bytes = b"") -> Pending:
    return connection.submit(Command(code, body=body), _soon(seconds))


def test_replies_come_in_any_order(server: ScriptedServer, connection: BrokerConnection) -> None:
    server.on(1, late(0.1, reply(body=b"slow")))
    server.on(2, reply(body=b"fast"))
    slow, fast = _ask(connection, 1), _ask(connection, 2)
    assert bytes(fast.result().body) == b"fast"
    assert slow.outcome is None
    assert bytes(slow.result().body) == b"slow"


def test_binary_replies_are_understood(server: ScriptedServer, connection: BrokerConnection) -> None:
    server.on(ASK, reply(fields={"offset": "8"}, encoding=BINARY))
    assert _ask(connection).result().fields == {"offset": "8"}


def test_large_replies_and_requests(server: ScriptedServer, connection: BrokerConnection) -> None:
    body = bytes(range(256)) * 20_000
    server.on(ASK, lambda request, link: reply(body=bytes(request.body))(request, link))
    assert bytes(_ask(connection, body=body).result().body) == body


def test_a_server_may_push_before_it_answers(server: ScriptedServer, connection: BrokerConnection) -> None:
    def push_then_reply(request: Command, link: Link) -> None:
        link.push(40, opaque=request.opaque)
        link.push(309, one_way=False, opaque=77)
        reply(body=b"mine")(request, link)

    server.on(ASK, push_then_reply)
    assert bytes(_ask(connection).result().body) == b"mine"
    assert _ask(connection).result().code == 0
    refusals = [received.command for received in server.received if received.command.is_response]
    assert [(refusal.code, refusal.opaque) for refusal in refusals] == [(3, 77)] * len(refusals)
    assert refusals


def test_no_answer_in_time_leaves_the_connection_in_step(server: ScriptedServer, connection: BrokerConnection) -> None:
    server.on(1, late(0.5, reply(body=b"too late")))
    server.on(2, reply(body=b"in time"))
    started = time.monotonic()
    with pytest.raises(NoAnswer, match=r"No answer in time.*127\.0\.0\.1"):
        _ask(connection, 1, seconds=0.05).result()
    assert time.monotonic() - started < 0.4
    time.sleep(0.5)
    assert bytes(_ask(connection, 2).result().body) == b"in time"


def test_waiting_does_not_give_up(server: ScriptedServer, connection: BrokerConnection) -> None:
    server.on(ASK, late(0.1, reply()))
    pending = _ask(connection)
    assert not pending.wait(_soon(0.01))
    assert pending.wait(_soon(5.0))
    assert pending.result().code == 0


def test_wait_is_over_when_the_request_is_past_its_deadline(
    server: ScriptedServer, connection: BrokerConnection
) -> None:
    server.on(ASK, silence)
    pending = _ask(connection, seconds=0.02)
    assert pending.wait(_soon(5.0))
    with pytest.raises(NoAnswer):
        pending.result()


def test_a_cut_connection_fails_everything_that_is_under_way(
    server: ScriptedServer, connection: BrokerConnection
) -> None:
    server.on(1, silence)
    server.on(2, cut)
    waiting, cutting = _ask(connection, 1), _ask(connection, 2)
    for pending in (waiting, cutting):
        with pytest.raises(ConnectionLost, match="closed") as lost:
            pending.result()
        assert lost.value.request_left
    assert not connection.usable
    with pytest.raises(ConnectionLost) as refused:
        _ask(connection)
    assert not refused.value.request_left


def test_a_connection_closed_while_idle_is_noticed_before_use(
    server: ScriptedServer, connection: BrokerConnection
) -> None:
    server.on(ASK, reply())
    _ask(connection).result()
    assert connection.usable
    server.cut_all()
    deadline = _soon(2.0)
    while connection.usable and time.monotonic() < deadline:
        time.sleep(0.005)
    assert not connection.usable


def test_nonsense_from_the_peer_ends_the_connection(server: ScriptedServer, connection: BrokerConnection) -> None:
    server.on(ASK, lambda request, link: link.send(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    with pytest.raises(ConnectionLost, match="does not keep to the protocol"):
        _ask(connection).result()
    assert not connection.usable


def test_closing_wakes_a_thread_that_waits(server: ScriptedServer, connection: BrokerConnection) -> None:
    server.on(ASK, silence)
    pending = _ask(connection, seconds=30)
    outcomes: list[str] = []

    def wait() -> None:
        try:
            pending.result()
        except ConnectionLost as error:
            outcomes.append(error.what)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.05)
    connection.close()
    thread.join(2)
    assert outcomes == ["Connection was closed here"]


def test_many_threads_share_one_connection(server: ScriptedServer, connection: BrokerConnection) -> None:
    server.on(ASK, lambda request, link: reply(body=bytes(request.body))(request, link))
    wrong: list[bytes] = []

    def ask(number: int) -> None:
        for turn in range(50):
            body = f"{number}-{turn}".encode() * 100
            answer = bytes(_ask(connection, body=body).result().body)
            if answer != body:
                wrong.append(answer)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []
    assert len(server.requests(ASK)) == 400


def test_a_request_that_cannot_be_written_has_not_left(options: ClientOptions) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        connection = BrokerConnection(f"127.0.0.1:{deaf.getsockname()[1]}", options, Purpose.ASK)
        with pytest.raises(ConnectionLost) as lost:
            _ask(connection, seconds=0.05, body=b"x" * 50_000_000)
        assert not lost.value.request_left
        assert not connection.usable


def test_nobody_listens(options: ClientOptions) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(Unreachable, match="Cannot connect") as error:
        BrokerConnection(address, options, Purpose.ASK)
    assert error.value.where == address


@pytest.mark.parametrize(("purpose", "drops"), [(Purpose.SEND, True), (Purpose.ASK, False)])
def test_only_senders_drop_unsent_bytes(
    server: ScriptedServer, options: ClientOptions, purpose: Purpose, drops: bool
) -> None:
    connection = BrokerConnection(server.address, options, purpose)
    link = connection._socket
    linger = link.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)
    timeout_ms = link.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    assert link.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert (linger[:4] == b"\1\0\0\0", timeout_ms) == (drops, 3000 if drops else 0)
    connection.close()
