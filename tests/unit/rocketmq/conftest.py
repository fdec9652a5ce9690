"""A scripted server that plays name server and broker, and a client that knows it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from connect_core.rocketmq import Client, ClientOptions
from connect_core.rocketmq.network import Network
from connect_core.rocketmq.testing import ScriptedServer

TOPIC = "orders"


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as made:
        made.serve_route(TOPIC, queues=2)
        yield made


@pytest.fixture
def options(server: ScriptedServer) -> ClientOptions:
    return ClientOptions((server.address,))


@pytest.fixture
def hasty_options(options: ClientOptions) -> ClientOptions:
    """For tests in which a time limit passes."""
    return dataclasses.replace(options, request_timeout_s=0.4, send_timeout_s=0.4)


@pytest.fixture
def client(options: ClientOptions) -> Iterator[Client]:
    with Client(options) as made:
        yield made


@pytest.fixture
def hasty_client(hasty_options: ClientOptions) -> Iterator[Client]:
    with Client(hasty_options) as made:
        yield made


@pytest.fixture
def network(options: ClientOptions) -> Iterator[Network]:
    made = Network(options)
    yield made
    made.close()
