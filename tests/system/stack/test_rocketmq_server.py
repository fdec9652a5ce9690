"""The broker of the local stack: on loopback, restarted with its store, in both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect_core import stack
from connect_core.stack import archives, jars, probe, processes
from connect_core.stack.parts import Site
from connect_core.stack.rocketmq import Broker
from tests.servers import RocketMQ

pytestmark = pytest.mark.server


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def test_the_name_server_knows_the_broker(rocketmq: RocketMQ) -> None:
    known = probe.ask(port_of(rocketmq.name_servers[0]), probe.BROKER_CLUSTER_INFO)
    assert known is not None
    assert rocketmq.broker_name.encode() in known


def test_a_broker_tells_a_name_server_that_does_not_know_it(rocketmq: RocketMQ) -> None:
    """Left alone it tells it each half minute; a start would wait for that one time in two."""
    stack.kill(rocketmq.home, stack.NAME_SERVER)
    rocketmq.start()
    running = stack.load(rocketmq.home)
    assert running is not None
    name_server, broker = (running.part(name).ports for name in (stack.NAME_SERVER, stack.BROKER))
    site = Site(rocketmq.home, broker, {stack.NAME_SERVER: name_server}, running.options)
    assert processes.wait_until(lambda: Broker().is_ready(site, "boot success"), 5)


def test_both_servers_take_their_classes_from_the_archive(rocketmq: RocketMQ) -> None:
    jars_folder = jars.folder_of(rocketmq.version, jars.cache_folder())
    if not archives.arguments(jars_folder):
        pytest.skip("no archive of classes could be made here")
    running = stack.load(rocketmq.home)
    assert running is not None
    for part in running.parts.values():
        assert str(archives.of(jars_folder)) in Path(f"/proc/{part.process.pid}/maps").read_text()


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
