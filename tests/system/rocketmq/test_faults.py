from __future__ import annotations

import time
import uuid
from collections.abc import Iterator

import pytest

from connect_core.errors import Unreachable
from connect_core.rocketmq import Client, ClientOptions, Queue, encode_batch
from connect_core.rocketmq.errors import SendUnknown
from tests.servers import RocketMQ
from tests.system.rocketmq.conftest import soon

pytestmark = pytest.mark.server
ONE = encode_batch([b"one"], [b""])


@pytest.fixture
def client(rocketmq: RocketMQ) -> Iterator[Client]:
    options = ClientOptions(tuple(rocketmq.name_servers), request_timeout_s=1.0, send_timeout_s=0.5)
    with Client(options) as made:
        yield made


@pytest.fixture
def queue(client: Client) -> Queue:
    return client.topics.create(f"test-{uuid.uuid4().hex[:12]}", 1)[0]


def _count(queue: Queue, rocketmq: RocketMQ) -> int:
    """With a client that waits: on a busy machine a broker that has just come back takes its time."""
    with Client(ClientOptions(tuple(rocketmq.name_servers), send_timeout_s=20.0)) as patient:
        patient.barrier(queue.broker, deadline=soon(30))
        return sum(len(part.messages) for part in patient.read(queue, 0, 1 << 40, deadline=soon(30)))


def test_a_paused_broker_makes_a_send_unknown_and_stores_it_once(
    client: Client, rocketmq: RocketMQ, queue: Queue
) -> None:
    sender = client.sender(queue)
    sender.submit(ONE, deadline=soon())
    sender.finish(deadline=soon())
    with rocketmq.paused():
        sender.submit(ONE, deadline=soon())
        with pytest.raises(SendUnknown, match="No answer in time"):
            sender.finish(deadline=soon())
    assert _count(queue, rocketmq) in (1, 2)
    time.sleep(0.3)
    assert _count(queue, rocketmq) <= 2


def test_reading_survives_a_restart_of_the_broker(client: Client, rocketmq: RocketMQ, queue: Queue) -> None:
    sender = client.sender(queue)
    sender.submit(encode_batch([b"x"] * 500, [b""] * 500), deadline=soon())
    sender.finish(deadline=soon())
    client.barrier(queue.broker, deadline=soon())
    slices = iter(client.read(queue, 0, 500, deadline=soon(60)))
    count = len(next(slices).messages)
    rocketmq.restart()
    for part in slices:
        assert not part.missing
        count += len(part.messages)
    assert count == 500
    assert _count(queue, rocketmq) == 500


def test_a_killed_broker_is_unreachable(client: Client, rocketmq: RocketMQ, queue: Queue) -> None:
    sender = client.sender(queue)
    sender.submit(ONE, deadline=soon())
    sender.finish(deadline=soon())
    rocketmq.kill()
    try:
        with pytest.raises(Unreachable):
            client.offsets.end(queue)
        with pytest.raises(Unreachable):
            sender.submit(ONE, deadline=soon())
    finally:
        rocketmq.start()
    assert _count(queue, rocketmq) == 1
