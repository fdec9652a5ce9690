from __future__ import annotations

import ssl
import subprocess
import threading
from pathlib import Path

import pytest

from connect_core.errors import Unreachable
from connect_core.rocketmq import Client, ClientOptions, PullStatus, Queue
from connect_core.rocketmq.testing import ScriptedServer, reply
from connect_core.rocketmq.testing_queues import MemoryQueues
from connect_core.rocketmq.wire.commands import PullResponse, RequestCode
from connect_core.rocketmq.wire.fields import to_fields
from tests.unit.rocketmq.conftest import TOPIC

QUEUE = Queue(TOPIC, "broker-a", 0)
PULL = RequestCode.PULL_MESSAGE


def test_making_a_client_connects_nowhere_and_starts_no_thread() -> None:
    threads = threading.active_count()
    with Client(ClientOptions(("127.0.0.1:1",))) as client:
        assert threading.active_count() == threads
        with pytest.raises(Unreachable):
            client.topics.exists(TOPIC)


@pytest.mark.parametrize(
    ("code", "remark", "status"),
    [
        (19, "OFFSET_OVERFLOW_ONE", PullStatus.CAUGHT_UP),
        (19, "NO_MESSAGE_IN_QUEUE", PullStatus.CAUGHT_UP),
        (19, "OFFSET_FOUND_NULL", PullStatus.INDEX_GONE),
        (20, "NO_MATCHED_MESSAGE", PullStatus.FILTERED),
        (20, "MESSAGE_WAS_REMOVING", PullStatus.REMOVED),
        (21, "OFFSET_TOO_SMALL", PullStatus.TOO_SMALL),
        (21, "OFFSET_OVERFLOW_BADLY", PullStatus.TOO_LARGE),
        (21, "NO_MESSAGE_IN_QUEUE", PullStatus.TOO_LARGE),
        (21, "NO_MATCHED_LOGIC_QUEUE", PullStatus.TOO_LARGE),
    ],
)
def test_statuses_of_a_pull(client: Client, server: ScriptedServer, code: int, remark: str, status: PullStatus) -> None:
    server.on(PULL, reply(code, remark=remark, fields=to_fields(PullResponse(4, 2, 9))))
    result = client.pull(QUEUE, 3)
    assert (result.status, result.next_offset, result.begin, result.end, result.messages) == (status, 4, 2, 9, [])


def test_a_pull_after_an_operators_reset_is_repeated_once(client: Client, server: ScriptedServer) -> None:
    header = to_fields(PullResponse(4, 2, 9))
    server.on(PULL, reply(21, remark="OFFSET_RESET", fields=header), reply(19, fields=header))
    assert client.pull(QUEUE, 3).status is PullStatus.CAUGHT_UP
    server.on(PULL, reply(21, remark="OFFSET_RESET", fields=header))
    assert client.pull(QUEUE, 3).status is PullStatus.RESET


def test_a_pull_of_messages(client: Client, server: ScriptedServer) -> None:
    queues = MemoryQueues()
    queues.attach(server)
    queues.append(TOPIC, 0, b"a", b"b", b"c")
    result = client.pull(QUEUE, 1, max_messages=1)
    assert (result.status, result.next_offset, result.begin, result.end) == (PullStatus.FOUND, 2, 0, 3)
    assert [message.body for message in result.messages] == [b"b"]


def test_tls_does_not_fall_back_to_plain_text(server: ScriptedServer) -> None:
    options = ClientOptions((server.address,), connect_timeout_s=0.3, tls=ssl.create_default_context)
    with Client(options) as client, pytest.raises(Unreachable, match="Cannot connect"):
        client.topics.exists(TOPIC)
    assert server.received == []


def test_tls_to_a_server_with_the_right_certificate(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ["-subj", "/CN=broker", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    subprocess.run([*made, "-keyout", key, "-out", certificate, *subject], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def trusting() -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(certificate))

    with ScriptedServer(tls=context) as server:
        server.serve_route(TOPIC, queues=1)
        queues = MemoryQueues(cap=1000)
        queues.attach(server)
        queues.append(TOPIC, 0, *[b"x" * 1000] * 500)
        with Client(ClientOptions((server.address,), tls=trusting)) as client:
            assert len(client.pull(QUEUE, 0).messages) == 500
        with (
            Client(ClientOptions((server.address,), tls=ssl.create_default_context)) as client,
            pytest.raises(Unreachable, match="certificate verify failed"),
        ):
            client.pull(QUEUE, 0)
