"""The RocketMQ source against a real broker: ranges, evidence, topics that change, moments, what groups are told."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from connect_core.errors import Retriable
from connect_core.rocketmq import (
    Queue,
    TopicConfig,
)
from connect_core.sdk.records import Partition
from connect_core.sdk.source import Source
from connect_core.sdk.testing.driving import Follower, limit, range_of
from connect_core.sdk.values import Bounds, Gap, Position, Range
from connect_core.systems.rocketmq.clusters import ClusterOptions
from connect_core.systems.rocketmq.peeking import peek
from tests.system.systems.cluster import Cluster

pytestmark = pytest.mark.server


def whole(files: Source, **limits: int) -> tuple[Partition, Range]:
    (partition,) = files.partitions([])
    return partition, range_of(partition, files.available_offsets({partition: None})[partition], **limits)


def test_ranges_hold_what_they_may(filled: Cluster) -> None:
    files = filled.source()
    _, wanted = whole(files, max_records=30)
    assert [batch.next_offset for batch in files.read(wanted, limit())] == [30]
    small = replace(wanted, max_records=1000, max_bytes=15)  # 10 bodies of one digit, then of two
    assert [batch.next_offset for batch in files.read(small, limit())] == [12]
    tiny = replace(wanted, begin=50, max_bytes=1)
    assert [batch.next_offset for batch in files.read(tiny, limit())] == [51]
    assert list(files.read(wanted, limit(quantum_s=-1))) == []
    middle = replace(wanted, begin=20, end=25)
    assert [batch.records.column("value").to_pylist() for batch in files.read(middle, limit())] == [
        [b"20", b"21", b"22", b"23", b"24"]
    ]


def test_evidence_is_the_message_before_the_end(filled: Cluster) -> None:
    files = filled.source()
    _, wanted = whole(files)
    list(files.read(wanted, limit()))
    read = files.evidence(wanted, 40)
    assert read["offset"] == 39
    assert filled.source().evidence(wanted, 40) == read  # asked from the broker
    assert wanted.evidence["offset"] == 0  # nothing stands before it: the first message itself
    assert files.evidence(wanted, 0) == wanted.evidence


def test_a_topic_that_was_recreated_and_has_grown_is_a_gap(filled: Cluster) -> None:
    follower = Follower(filled.source())
    assert len(follower.run()) == 100
    made_anew(filled, 150)
    again = Follower(filled.source(), follower.positions)
    assert again.run() == [b"new %d" % number for number in range(150)]
    assert again.gaps == [Gap(0, 100, None, "recreated")]


def test_a_topic_that_was_recreated_and_is_shorter_is_a_gap(filled: Cluster) -> None:
    follower = Follower(filled.source())
    follower.run()
    filled.client.topics.delete(filled.topic)
    (queue,) = filled.client.topics.create(filled.topic, 1)
    filled.send(queue, [b"new"])
    again = Follower(filled.source(), follower.positions)
    assert again.run() == [b"new"]
    assert again.gaps == [Gap(0, 100, None, "rewound")]


def made_anew(filled: Cluster, messages: int) -> None:
    filled.client.topics.delete(filled.topic)
    (queue,) = filled.client.topics.create(filled.topic, 1)
    filled.send(queue, [b"new %d" % number for number in range(messages)])


def test_what_follows_a_queue_does_not_go_on_in_another_one_of_its_name(filled: Cluster) -> None:
    """Within one quantum: between two plans, so that no plan can notice."""
    files = filled.source()
    _, wanted = whole(files)
    followed = files.follow([replace(wanted, end=None)], limit(), idle_timeout_s=30)
    _, batch = next(followed)
    assert batch.next_offset == 100
    made_anew(filled, 150)
    assert list(followed) == []


def test_a_topic_that_was_recreated_after_the_plan_is_not_read(filled: Cluster) -> None:
    files = filled.source()
    _, wanted = whole(files)
    made_anew(filled, 150)
    with pytest.raises(Retriable, match="created again after this range was planned"):
        list(files.read(wanted, limit()))


def test_a_queue_that_the_topic_has_no_more_is_done_with_or_a_gap(cluster: Cluster) -> None:
    queues = cluster.client.topics.create(cluster.topic, 4)
    for queue in queues[2:]:
        cluster.send(queue, [b"0", b"1", b"2"])
    asked = cluster.source()
    done, half = (Partition(str(queue)) for queue in queues[2:])
    known = asked.partitions([])
    assert {done, half} < set(known)
    all_read, one_read = Position(0, 3, {}), Position(0, 1, {})
    assert asked.available_offsets({half: one_read})[half].gaps == ()
    cluster.client.topics.put(TopicConfig(cluster.topic, 2, 2), queues[0].broker)
    seen = asked.available_offsets({**dict.fromkeys(known), done: all_read, half: one_read})
    assert replace(seen[done], evidence={}) == Bounds(0, 3, 3, 3, gaps=(Gap(0, 3, 3, "closed"),), grows=False)
    assert replace(seen[half], evidence={}) == Bounds(0, 3, 3, 3, gaps=(Gap(0, 1, 3, "closed"),), grows=False)
    assert asked.available_offsets({half: None})[half].gaps == (Gap(0, 0, 3, "closed"),)
    newest = cluster.source(start="latest", uid=uuid.uuid4().hex[:8])
    assert newest.available_offsets({half: None})[half].gaps == (), "where nothing was to be read nothing is missing"
    cluster.client.topics.put(TopicConfig(cluster.topic, 4, 4), queues[0].broker)
    back = Follower(cluster.source(), {half: one_read, done: all_read})
    assert back.run() == [b"1", b"2"]
    assert back.gaps == []


def test_a_start_at_the_newest_reads_what_comes(filled: Cluster) -> None:
    uid = uuid.uuid4().hex[:8]
    assert Follower(filled.source(start="latest", uid=uid)).run() == []
    (queue,) = filled.client.topics.read_queues(filled.topic)
    filled.send(queue, [b"new"])
    follower = Follower(filled.source(start="latest", uid=uid))
    assert follower.run() == [b"new"]
    filled.send(queue, [b"newer"])
    assert follower.run() == [b"newer"]


def test_the_group_is_told_what_is_settled_and_never_less(filled: Cluster) -> None:
    group = f"WAYBILL-{uuid.uuid4().hex[:8]}"
    files = filled.source(group=group)
    (partition,) = files.partitions([])
    queue = Queue(filled.topic, *partition.key.split("/")[1:2], 0)
    for offset, told in ((60, 60), (40, 60), (70, 70)):
        files.commit_offsets({partition: Position(0, offset)})
        assert filled.client.groups.progress(group, filled.topic)[queue].committed == told
    filled.source(group=group).commit_offsets({partition: Position(0, 50)})
    assert filled.client.groups.progress(group, filled.topic)[queue].lag == 30


def test_peek_shows_the_newest_of_each_queue(filled: Cluster) -> None:
    cluster = ClusterOptions(name_servers=tuple(filled.name_servers))
    ((partition, newest),) = peek(cluster, filled.topic, 3, filled.resources).items()
    assert partition.key.startswith(f"{filled.topic}/")
    assert newest.column("value").to_pylist() == [b"97", b"98", b"99"]
