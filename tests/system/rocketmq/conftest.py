"""Real brokers of both versions that are promised to work, and a topic of the test's own."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator

import pytest

from connect_core.rocketmq import Client, ClientOptions, Queue
from tests.servers import RocketMQ


@pytest.fixture(params=["rocketmq", "rocketmq_533"], ids=["5.5.0", "5.3.3"])
def broker(request: pytest.FixtureRequest) -> RocketMQ:
    made: RocketMQ = request.getfixturevalue(request.param)
    return made


@pytest.fixture
def client(broker: RocketMQ) -> Iterator[Client]:
    with Client(ClientOptions(tuple(broker.name_servers))) as made:
        yield made


@pytest.fixture
def queues(client: Client) -> Iterator[list[Queue]]:
    """Two queues of a new topic."""
    topic = f"test-{uuid.uuid4().hex[:12]}"
    yield client.topics.create(topic, 2)
    client.topics.delete(topic)


@pytest.fixture
def group(client: Client) -> Iterator[str]:
    name = f"group-{uuid.uuid4().hex[:12]}"
    client.groups.create(name)
    yield name
    client.groups.delete(name)


def soon(seconds: float = 10.0) -> float:
    return time.monotonic() + seconds
