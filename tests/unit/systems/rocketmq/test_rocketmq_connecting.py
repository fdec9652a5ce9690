"""Partitions and targets by their keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from connect_core import systems
from connect_core.errors import ConfigError
from connect_core.rocketmq import Queue
from connect_core.sdk.values import Floor
from connect_core.systems.rocketmq.connecting import queue_of
from connect_core.systems.rocketmq.routing import kept_homes, pins_of
from connect_core.work import Side


def test_a_queue_by_its_key() -> None:
    assert queue_of("orders/broker-a/3") == Queue("orders", "broker-a", 3)
    assert queue_of("orders/cluster/broker-a/3") == Queue("orders", "cluster/broker-a", 3)


@pytest.mark.parametrize("key", ["/var/log/app.log", "/var/log/7", "devices/#", "orders", "", "orders/broker-a/x"])
def test_the_partitions_of_another_system_are_told(key: str) -> None:
    """As a ledger has them whose connector was given another source before `apply` refused that."""
    with pytest.raises(ConfigError, match=r"is no queue of RocketMQ.*had another system before"):
        queue_of(key)


def test_the_floors_of_the_sink_before_are_others(resources: ExitStack) -> None:
    """A connector was given this sink instead of a file: the ledger still has the length of that."""
    sink = systems.sink(Side("rocketmq", {"name_servers": ["127.0.0.1:9"], "topic": "lines"}), resources)
    pins = pins_of("lines", [Queue("lines", "broker-a", 0)], "partition")
    assert sink.reaches(pins, "lines/broker-a/0")
    assert not sink.reaches(pins, "/data/lines.txt")
    own = Floor("id", "lines/broker-a/0", 7)
    before = [Floor("", "/data/lines.txt", 100), Floor("id", "mqtt://127.0.0.1:1883", 5)]
    assert kept_homes([*before, own], {"lines": pins}) == {"id": {"lines": Queue("lines", "broker-a", 0)}}


@pytest.fixture
def resources() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened
