"""Ports: the well-known one where it is free, else another."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

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
    assert ports.choose(used) != used


def test_a_port_promised_to_another_part_is_not() -> None:
    wished = ports.free()
    assert ports.choose(wished, {wished}) != wished


def test_the_broker_needs_the_port_two_below_as_well(listener: socket.socket) -> None:
    used = listener.getsockname()[1]
    chosen = Broker().choose_ports({"remoting": used + 2}, set())
    assert chosen["remoting"] != used + 2
    assert len({chosen["remoting"], chosen["remoting"] - 2, chosen["replication"]}) == 3


def test_no_two_are_given_the_same_free_port_while_their_servers_have_not_begun_to_listen() -> None:
    here = {ports.free() for _ in range(300)}
    several = "from connect_core.stack import ports; print([ports.free() for _ in range(3000)])"
    there = set(json.loads(subprocess.run([sys.executable, "-c", several], check=True, capture_output=True).stdout))
    assert len(here) == 300
    assert len(there) == 3000
    assert not here & there


def test_a_server_listens_on_the_port_it_was_given() -> None:
    given = ports.free()
    with socket.create_server(("127.0.0.1", given)):
        assert not ports.is_free(given)
    assert ports.is_free(given)


def test_no_connection_that_goes_out_takes_the_port_of_a_server_that_is_started_again() -> None:
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(ports.free() < lowest for _ in range(100))


def test_the_brokers_replication_takes_no_port_promised_to_another_part() -> None:
    promised = ports.free()
    assert Broker().choose_ports({"replication": promised}, {promised})["replication"] != promised
