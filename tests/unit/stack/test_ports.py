"""Ports: the well-known one where it is free, else another."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from connect_core.stack import ports
from connect_core.stack.rocketmq import Broker


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server


def test_a_free_port_is_taken_as_wished() -> None:
    wished = ports.free()
    assert ports.choose(wished) == wished


def test_a_port_in_use_is_not(listener: socket.socket) -> None:
    used = listener.getsockname()[1]
    assert not ports.is_free(used)
    assert ports.accepts(used)
    assert ports.choose(used) != used


def test_a_port_promised_to_another_part_is_not() -> None:
    wished = ports.free()
    assert ports.choose(wished, {wished}) != wished


def test_the_broker_needs_the_port_two_below_as_well(listener: socket.socket) -> None:
    used = listener.getsockname()[1]
    chosen = Broker().choose_ports({"remoting": used + 2}, ())
    assert chosen["remoting"] != used + 2
    assert len({chosen["remoting"], chosen["remoting"] - 2, chosen["replication"]}) == 3
