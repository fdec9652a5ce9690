"""Source and sink against the newest broker, and the oldest that is promised to work."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from connect_core.sdk.records import Partition, encode_headers
from connect_core.sdk.testing.driving import Follower, limit, range_of, records
from connect_core.systems.rocketmq.own_columns import FLAG, MESSAGE_ID
from tests.system.systems.cluster import Cluster, cluster_on, write
from tests.unit.systems.rocketmq.whole import whole

pytestmark = pytest.mark.server


@pytest.mark.parametrize("version", ["rocketmq", "rocketmq_533"])
def test_records_come_back_as_they_were(version: str, request: pytest.FixtureRequest) -> None:
    with cluster_on(request.getfixturevalue(version)) as cluster:
        check_round_trip(cluster)


def check_round_trip(cluster: Cluster) -> None:
    rows = records(
        [b"a", None, b"", b"\x00\xff" * 50_000],
        key=["k1 k2", None, "ü", None],
        tags=[None, "t", None, None],
        headers=[encode_headers([("color", "red"), ("größe", "7")]), None, encode_headers([("x", "y")]), None],
    )
    rows = whole(rows, message_id=[b"7F01", b"7F02", b"7F03", b"7F04"], flag=[1, 0, -1, 7])
    target = cluster.sink()
    assert write(target, cluster.planned(target), rows) == 4
    files = cluster.source(sink_system="rocketmq")
    follower = Follower(files)
    follower.positions = dict.fromkeys(files.partitions([]))
    (partition, bounds), *_ = [(p, b) for p, b in files.available_offsets(follower.positions).items() if b.end]
    (batch,) = files.read(range_of(partition, bounds), limit())
    back = batch.records
    assert back.column("value").to_pylist() == [b"a", b"", b"", b"\x00\xff" * 50_000]
    for name in ("key", "tags", "headers", "offset", MESSAGE_ID, FLAG):
        assert back.column(name).to_pylist() == rows.column(name).to_pylist()
    assert set(back.column("topic").to_pylist()) == {cluster.topic}
    age = time.time() - back.column("timestamp")[0].as_py().timestamp()
    assert 0 <= age < 60
    assert batch.next_offset == 4


@pytest.mark.parametrize("version", ["rocketmq", "rocketmq_533"])
def test_moments_are_offsets_by_the_clock_of_the_broker(version: str, request: pytest.FixtureRequest) -> None:
    with cluster_on(request.getfixturevalue(version)) as cluster:
        check_moments(cluster)


def check_moments(cluster: Cluster) -> None:
    """Three messages a batch share a store time; the second queue has one message, the third has none."""
    first, second, third = cluster.client.topics.create(cluster.topic, 3)
    for _ in range(3):
        cluster.send(first, [b"a", b"b", b"c"])
        time.sleep(0.005)
    cluster.send(second, [b"only"])
    stored = [message.store_timestamp_ms for message in cluster.client.pull(first, 0).messages]
    only = cluster.client.pull(second, 0).messages[0].store_timestamp_ms
    assert stored == sorted(stored)
    for moment_ms in {*stored, *(time_ms + 1 for time_ms in stored), 0, only, only + 1, only + 86_400_000}:
        moment = datetime.fromtimestamp(moment_ms / 1000, UTC)
        partitions = [Partition(str(queue)) for queue in (first, second, third)]
        expected = [sum(time_ms < moment_ms for time_ms in stored), int(only < moment_ms), 0]
        assert list(cluster.source().offsets_for_time(partitions, moment).values()) == expected
