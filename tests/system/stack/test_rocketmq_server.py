"""The broker of the local stack: on loopback, restarted with its store, in both versions."""

from __future__ import annotations

import pytest

from connect_core.stack import probe
from tests.servers import RocketMQ

pytestmark = pytest.mark.server


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def test_the_name_server_knows_the_broker(rocketmq: RocketMQ) -> None:
    known = probe.ask(port_of(rocketmq.name_servers[0]), probe.BROKER_CLUSTER_INFO)
    assert known is not None
    assert rocketmq.broker_name.encode() in known


def test_a_killed_broker_comes_back_on_its_port(rocketmq: RocketMQ) -> None:
    before = rocketmq.broker
    rocketmq.kill()
    assert not before.is_alive
    rocketmq.start()
    assert rocketmq.broker != before


def test_a_paused_broker_answers_again_when_it_goes_on(rocketmq: RocketMQ) -> None:
    with rocketmq.paused():
        assert rocketmq.broker.is_alive
    name_server = port_of(rocketmq.name_servers[0])
    assert probe.ask(name_server, probe.BROKER_CLUSTER_INFO) is not None
