"""The RocketMQ sink against a real broker: fidelity, find, duplicates, order by key, limits."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from connect_core.errors import TargetChanged, Unreachable
from connect_core.rocketmq import (
    PermissionRefused,
    SendUnknown,
    TopicConfig,
    TopicMissing,
)
from connect_core.sdk.records import Coordinates
from connect_core.sdk.testing.driving import UID, attempt, limit, records
from connect_core.systems import sink
from connect_core.systems.rocketmq.routing import Router, queues_of
from connect_core.work import Side
from tests.servers import RocketMQ
from tests.system.systems.cluster import Cluster, found_in, write

pytestmark = pytest.mark.server


def test_partitions_go_to_queues_one_to_one_and_in_order(cluster: Cluster) -> None:
    target = cluster.sink(queues=3)
    for slot in range(4):
        planned = cluster.planned(target, slot=slot)
        write(target, planned, records([b"%d-%d" % (slot, number) for number in range(3)]))
    files = cluster.source()
    queues = [p.key.rpartition("/")[2] for p in files.partitions([])]
    assert queues == ["0", "1", "2"]
    assert cluster.everything() == [
        *[b"0-0", b"0-1", b"0-2", b"3-0", b"3-1", b"3-2"],
        *[b"1-0", b"1-1", b"1-2"],
        *[b"2-0", b"2-1", b"2-2"],
    ]


def test_messages_carry_coordinates_and_an_id(cluster: Cluster) -> None:
    target = cluster.sink()
    planned = cluster.planned(target, begin=40)
    write(target, planned, records([b"a"], first_offset=41))
    (message,) = cluster.client.pull(cluster.queue(planned), 0).messages
    text = message.properties.partition(b"WAYBILL\x01")[2].partition(b"\x02")[0].decode()
    assert Coordinates.parse(text) == Coordinates(planned.range.lineage(UID), 41, 0)
    assert message.properties.startswith(b"UNIQ_KEY\x01")


def test_what_an_attempt_left_is_found_and_not_sent_again(cluster: Cluster) -> None:
    target = cluster.sink()
    planned = cluster.planned(target)
    planned = replace(planned, range=replace(planned.range, end=2500))
    rows = records([b"%d" % number for number in range(2500)])
    write(target, planned, rows.slice(0, 1700))  # and dies before its receipt
    again = cluster.sink()
    inherited = found_in(again, replace(planned, inherited=True))
    assert inherited.found is not None
    assert inherited.found.complete
    there = inherited.found.present(rows.column("offset").to_numpy())
    assert int(there.sum()) == 1700
    write(again, inherited, rows.filter(pa.array(~there)))
    assert cluster.everything() == [b"%d" % number for number in range(2500)]


def test_find_passes_foreign_messages_in_slices(cluster: Cluster) -> None:
    target = cluster.sink()
    planned = cluster.planned(target)
    queue = cluster.queue(planned)
    for _ in range(20):
        cluster.send(queue, [b"foreign" * 20] * 1000)
    write(target, planned, records([b"ours"]))
    limit_s = 0.004  # in which no machine passes them all
    slices, before = 0, planned.floors[0].position
    while planned.found is None or not planned.found.complete:
        planned = found_in(cluster.sink(), planned, limit_s)
        assert planned.found is not None
        scanned = planned.found.scanned[str(queue)]
        assert scanned >= before
        if scanned == before:
            limit_s *= 1.2  # nor does a slow one get nowhere for ever
        else:
            before = scanned
            slices += 1
    assert slices > 1
    assert [tuple(hit) for hit in planned.found.hits.tolist()] == [(0, 0, 0, 20_000)]


def test_a_copy_of_ours_that_comes_in_between_is_surplus(cluster: Cluster) -> None:
    target = cluster.sink()
    planned = cluster.planned(target, begin=10)
    queue = cluster.queue(planned)
    lineage = planned.range.lineage(UID)
    late = [f"WAYBILL\x01{Coordinates(lineage, offset, 0).text()}\x02".encode() for offset in (9, 10, 11)]
    with target.writer(attempt(), planned) as writer:
        assert writer.write(records([b"a", b"b"], first_offset=10), limit()) == 2
        writer.flush(limit())
        cluster.send(queue, [b"late"] * 3, late)
        cluster.send(queue, [b"foreign"] * 3)
        assert writer.write(records([b"c"], first_offset=12), limit()) == 1
        delivered = writer.flush(limit())
    assert delivered.duplicates == 3
    assert delivered.records == 3
    assert delivered.where == {str(queue): [[0, 2], [8, 9]]}
    assert delivered.behind == {str(queue): 9}


def test_a_late_copy_before_the_first_batch_is_surplus_too(cluster: Cluster) -> None:
    target = cluster.sink()
    planned = found_in(target, cluster.planned(target, inherited=True))
    queue = cluster.queue(planned)
    text = Coordinates(planned.range.lineage(UID), 5, 0).text()
    cluster.send(queue, [b"late"], [f"WAYBILL\x01{text}\x02".encode()])
    with target.writer(attempt(), planned) as writer:
        writer.write(records([b"a"]), limit())
        assert writer.flush(limit()).duplicates == 1


def test_a_copy_that_came_after_the_last_settle_is_told_by_the_next_range(cluster: Cluster) -> None:
    target = cluster.sink()
    planned = cluster.planned(target, begin=10)
    queue = cluster.queue(planned)
    text = Coordinates(planned.range.lineage(UID), 5, 0).text()
    cluster.send(queue, [b"late"], [f"WAYBILL\x01{text}\x02".encode()])
    with cluster.sink().writer(attempt(), planned) as writer:
        writer.write(records([b"a"], first_offset=10), limit())
        assert writer.flush(limit()).duplicates == 1


def test_a_late_copy_is_told_by_its_own_partition_whoever_writes_behind_it(cluster: Cluster) -> None:
    """Two partitions share a queue and a lane. The copy stands before the batches of the other, which goes first."""
    target = cluster.sink(queues=1)
    other, mine = cluster.planned(target), cluster.planned(target, begin=10, slot=1)
    queue = cluster.queue(mine)
    text = Coordinates(mine.range.lineage(UID), 5, 0).text()
    cluster.send(queue, [b"late"], [f"WAYBILL\x01{text}\x02".encode()])
    told = []
    one_lane = cluster.sink(queues=1)
    for planned in (other, mine):
        with one_lane.writer(attempt(), planned) as writer:
            writer.write(records([b"a", b"b"], first_offset=planned.range.begin), limit())
            told.append(writer.flush(limit()).duplicates)
    assert told == [0, 1]


KEYS = [f"key {n % 40}" for n in range(1000)]


def keyed(offsets: Iterable[int]) -> pa.RecordBatch:
    """The records of these offsets, each with its key."""
    numbers = list(offsets)
    rows = records([b"%d" % n for n in numbers], key=[KEYS[n] for n in numbers])
    return rows.set_column(rows.schema.get_field_index("offset"), rows.schema.field("offset"), pa.array(numbers))


def by_queue(cluster: Cluster, queues: int = 4) -> dict[str, list[int]]:
    """What stands in each queue of the topic, in order."""
    there = cluster.client.topics.read_queues(cluster.topic)
    assert len(there) == queues
    cluster.client.barrier(there[0].broker, deadline=time.monotonic() + 5)
    stored = {}
    for queue, seen in cluster.client.offsets.bounds(cluster.topic).items():
        parts = cluster.client.read(queue, 0, seen.end, deadline=time.monotonic() + 5)
        stored[str(queue)] = [int(message.body) for part in parts for message in part.messages]
    return stored


def check_by_key(stored: dict[str, list[int]]) -> None:
    """Each record once; those of a key in one queue, in order."""
    assert sorted(n for numbers in stored.values() for n in numbers) == list(range(1000))
    assert all(numbers and numbers == sorted(numbers) for numbers in stored.values())
    assert sum(len({KEYS[n] for n in numbers}) for numbers in stored.values()) == 40


def test_a_range_by_key_is_spread_and_told_queue_by_queue(cluster: Cluster) -> None:
    target = cluster.sink(queues=4, order="key")
    planned = cluster.planned(target)
    assert len(planned.floors) == 4
    with target.writer(attempt(), planned) as writer:
        assert writer.write(keyed(range(600)), limit()) == 600
        assert writer.write(keyed(range(600, 1000)), limit()) == 400
        delivered = writer.flush(limit())
    stored = by_queue(cluster)
    check_by_key(stored)
    assert delivered.records == 1000
    assert delivered.where == {name: [[0, len(numbers)]] for name, numbers in stored.items()}
    assert delivered.behind == {name: len(numbers) for name, numbers in stored.items()}


def test_one_lost_send_among_stored_ones_is_all_that_is_written_again(cluster: Cluster) -> None:
    """The first attempt's send to one queue is lost, and those behind it to the others are stored."""
    target = cluster.sink(queues=4, order="key")
    planned = cluster.planned(target)
    lost = {n for queue, rows in Router(planned.range).routed(keyed(range(1000))) if queue.queue_id == 2 for n in rows}
    assert 0 < len(lost) < 1000
    write(target, planned, keyed(n for n in range(1000) if n not in lost and n < 800))
    again = found_in(target, replace(planned, inherited=True))
    assert again.found is not None
    there = again.found.present(np.arange(1000))
    assert set(np.flatnonzero(there)) == {n for n in range(800) if n not in lost}
    assert write(target, again, keyed(np.flatnonzero(~there).tolist())) == len(lost | set(range(800, 1000)))
    check_by_key(by_queue(cluster))


def test_a_copy_in_one_of_several_queues_is_surplus(cluster: Cluster) -> None:
    """Counted in each queue apart: between two batches there, and before the first one."""
    target = cluster.sink(queues=4, order="key")
    planned = found_in(target, cluster.planned(target, inherited=True))
    queues = queues_of(planned.range)
    late = f"WAYBILL\x01{Coordinates(planned.range.lineage(UID), 5, 0).text()}\x02".encode()
    cluster.send(queues[3], [b"5"], [late])
    with target.writer(attempt(), planned) as writer:
        writer.write(keyed(range(500)), limit())
        writer.flush(limit())
        cluster.send(queues[1], [b"5"] * 2, [late] * 2)
        writer.write(keyed(range(500, 1000)), limit())
        assert writer.flush(limit()).duplicates == 3


def test_a_retry_by_key_goes_to_the_queues_it_pinned_whatever_the_topic_has_by_then(cluster: Cluster) -> None:
    target = cluster.sink(queues=4, order="key")
    planned = cluster.planned(target)
    write(target, planned, keyed(range(300)))
    broker = cluster.queue(planned).broker
    cluster.client.topics.put(TopicConfig(cluster.topic, 6, 6), broker)
    grown = cluster.sink(order="key")
    again = found_in(grown, replace(planned, inherited=True))
    assert write(grown, again, keyed(range(300, 1000))) == 700
    assert len(grown.targets(0, (), {}).pins["queues"]) == 6, "what is planned next takes them all"
    stored = by_queue(cluster, 6)
    assert [stored.pop(f"{cluster.topic}/{broker}/{number}") for number in (4, 5)] == [[], []]
    check_by_key(stored)


def test_a_pinned_queue_that_is_gone_is_told_before_anything_is_written(cluster: Cluster) -> None:
    target = cluster.sink(queues=4, order="key")
    planned = cluster.planned(target)
    cluster.client.topics.put(TopicConfig(cluster.topic, 4, 3), cluster.queue(planned).broker)
    with ExitStack() as resources:
        fresh = sink(Side("rocketmq", {"name_servers": cluster.name_servers, "topic": cluster.topic}), resources)
        with pytest.raises(TargetChanged, match="the topic has fewer queues"), fresh.writer(attempt(), planned):
            pass
    assert all(not numbers for numbers in by_queue(cluster).values())


def test_no_more_is_taken_than_there_is_time_for(cluster: Cluster) -> None:
    target = cluster.sink()
    planned = cluster.planned(target)
    rows = records([b"x"] * 3000)
    for time_left in (limit(quantum_s=-1), limit(quantum_s=5, deadline_s=2)):
        with target.writer(attempt(), planned) as writer:
            assert writer.write(rows, time_left) == 0
            delivered = writer.flush(limit())
        assert (delivered.records, delivered.behind, delivered.where) == (0, {}, {})
    with target.writer(attempt(), planned) as writer:
        taken = writer.write(records([b"x"] * 900_000), limit(quantum_s=1.0))
        assert 0 < taken < 900_000
        assert writer.flush(limit()).records == taken


def test_a_batch_without_an_answer_is_an_error_and_is_found_later(cluster: Cluster, rocketmq: RocketMQ) -> None:
    target = cluster.sink()
    planned = cluster.planned(target)
    with target.writer(attempt(), planned) as writer:
        writer.write(records([b"a"] * 10), limit())
        writer.flush(limit())
        with rocketmq.paused():
            writer.write(records([b"b"] * 10, first_offset=10), limit())
            with pytest.raises(SendUnknown):
                writer.flush(limit())
    again = found_in(cluster.sink(), replace(planned, inherited=True))
    assert again.found is not None
    assert len(again.found.hits) == 20


def test_the_topic_is_created_with_its_queues_or_refused(cluster: Cluster) -> None:
    with pytest.raises(TopicMissing, match="create: true"):
        cluster.sink(create=False).targets(0, (), {})
    pins = cluster.sink(queues=3).targets(0, (), {}).pins
    assert [number for _, number in pins["queues"]] == [0, 1, 2]
    assert cluster.sink(queues=2).targets(0, (), {}).pins == pins


def test_a_topic_that_may_not_be_written_is_refused(cluster: Cluster, rocketmq: RocketMQ) -> None:
    cluster.client.topics.create(cluster.topic, 2)
    cluster.client.topics.put(TopicConfig(cluster.topic, 2, 2, perm=4), rocketmq.broker_name)
    with pytest.raises(PermissionRefused, match="no queue that may be written"):
        cluster.sink().targets(0, (), {})


def test_a_target_that_was_recreated_is_noticed(cluster: Cluster) -> None:
    target = cluster.sink()
    planned = cluster.planned(target)
    write(target, planned, records([b"a"] * 10))
    settled = planned.floors[0]._replace(position=10)
    assert cluster.sink().targets(0, [settled], {})
    cluster.client.topics.delete(cluster.topic)
    with pytest.raises(TargetChanged, match="ends at 0, before 10"):
        cluster.sink().targets(0, [settled], {})


def test_floors_stand_behind_what_was_acknowledged(cluster: Cluster) -> None:
    for _ in range(5):
        target = cluster.sink()
        planned = cluster.planned(target)
        before = planned.floors[0].position
        assert target.floors(planned.range, planned.floors) == planned.floors
        write(target, planned, records([b"a"] * 7))
        assert cluster.planned(cluster.sink()).floors[0].position == before + 7


# ------------------------------------------------------------------------------------------------------------ source


def test_ranges_of_one_lane_do_not_look_at_each_other(cluster: Cluster) -> None:
    """The end of a queue lags what was acknowledged a moment ago: that is no reason to read it back."""
    target = cluster.sink()
    planned = cluster.planned(target)
    for number in range(20):
        with target.writer(attempt(), planned) as writer:
            assert writer.appender.expected == number * 5  # type: ignore[attr-defined]
            writer.write(records([b"a"] * 5, first_offset=number * 5), limit())
            writer.flush(limit())


def test_a_missing_topic_is_told(cluster: Cluster) -> None:
    with pytest.raises(Unreachable, match=f"not there yet.*{cluster.topic}"):
        cluster.source().partitions([])
