"""A topic of its own for each test of a system."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers import RocketMQ
from tests.system.systems.cluster import Cluster, cluster_on


@pytest.fixture
def cluster(rocketmq: RocketMQ) -> Iterator[Cluster]:
    with cluster_on(rocketmq) as cluster:
        yield cluster


@pytest.fixture
def filled(cluster: Cluster) -> Cluster:
    """One queue with 100 messages."""
    (queue,) = cluster.client.topics.create(cluster.topic, 1)
    cluster.send(queue, [b"%d" % number for number in range(100)])
    return cluster
