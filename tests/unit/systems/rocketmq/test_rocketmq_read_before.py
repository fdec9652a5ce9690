"""A queue that is read anew: those of its messages that may have been read before are counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from connect_core.rocketmq import Queue, StoredMessage, StoredSlice
from connect_core.rocketmq.testing import ScriptedServer
from connect_core.rocketmq.testing_queues import MemoryQueues
from connect_core.rocketmq.wire.stored_message import encode_message
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import limit, range_of
from connect_core.sdk.values import Bounds, Json, Position
from connect_core.systems.rocketmq.continuity import evidence_of, next_bounds
from connect_core.systems.rocketmq.decoding import record_batch
from connect_core.systems.rocketmq.gathering import Gathering
from connect_core.systems.rocketmq.options import RocketMQSourceOptions
from connect_core.systems.rocketmq.read_before import limits_at, limits_of
from connect_core.systems.rocketmq.source import RocketMQSource
from tests.unit.systems.rocketmq.cluster import MemoryCluster, MemoryQueue
from tests.unit.systems.rocketmq.test_rocketmq_decoding import stored

QUEUE = Queue("orders", "broker-a", 0)
PARTITION = Partition(str(QUEUE))
MESSAGES = [stored(offset, b"body %d" % offset) for offset in range(20)]
LATER = [stored(n, b"new %d" % n)._replace(store_timestamp_ms=1_700_000_009_000 + n) for n in range(20)]


def anew(left: list[StoredMessage], read_to: int, evidence: Json | None = None) -> Bounds:
    """Of a queue that holds `left`, after a run that had read all before `read_to`."""
    known = evidence_of(MESSAGES[read_to - 1]) | (evidence or {})
    cluster, queue = MemoryCluster({QUEUE: MemoryQueue(left)}), MemoryQueue(left)
    return next_bounds(cluster.client, QUEUE, Position(0, read_to, known), queue.bounds())


def doubtful(left: list[StoredMessage], bounds: Bounds) -> tuple[int, ...]:
    gathering = Gathering(range_of(PARTITION, bounds), record_batch)
    slices = memoryview(b"".join(map(encode_message, left[bounds.begin :])))
    gathering.add(StoredSlice(bounds.begin, bounds.end, slices))
    return gathering.take()[1].doubtful


def test_what_survived_in_a_queue_that_has_lost_its_newest_messages() -> None:
    left = MESSAGES[:6]
    assert doubtful(left, anew(left, 10)) == (0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize("grown", [8, 15])
def test_what_came_in_place_of_lost_messages_is_new(grown: int) -> None:
    """Also where the queue has more again than was read of it: then another message is where the last one was."""
    left = [*MESSAGES[:6], *LATER[6:grown]]
    assert doubtful(left, anew(left, 10)) == (0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize("grown", [5, 15])
def test_nothing_of_a_topic_that_was_made_anew_was_read_before(grown: int) -> None:
    assert doubtful(LATER[:grown], anew(LATER[:grown], 10)) == ()


def test_a_queue_that_is_read_anew_twice() -> None:
    """What was read at first, and was not reached again, counts as well."""
    first = anew(MESSAGES[:6], 10)
    second = anew(MESSAGES[:2], 3, limits_at(first.evidence, 3))
    assert second.evidence == limits_of(Position(0, 10, evidence_of(MESSAGES[9])))
    assert doubtful(MESSAGES[:2], second) == (0, 1)


def test_without_a_message_that_was_read_all_before_the_position_may_have_been() -> None:
    """As where a person has set it."""
    bounds = next_bounds(
        MemoryCluster({QUEUE: MemoryQueue(LATER[:5])}).client, QUEUE, Position(0, 10), MemoryQueue(LATER[:5]).bounds()
    )
    assert doubtful(LATER[:5], bounds) == (0, 1, 2, 3, 4)


def test_a_queue_that_is_read_on_repeats_nothing() -> None:
    bounds = anew(MESSAGES, 10)
    assert (bounds.incarnation, doubtful(MESSAGES, bounds)) == (0, ())


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as made:
        made.serve_route(QUEUE.topic, queues=1)
        queues = MemoryQueues()
        queues.attach(made)
        queues.append(QUEUE.topic, 0, *(b"%d" % number for number in range(6)))
        yield made


def test_each_position_says_it_until_what_was_read_is_over(server: ScriptedServer) -> None:
    source = RocketMQSource(
        RocketMQSourceOptions.model_validate({"name_servers": [server.address], "topics": [QUEUE.topic]})
    )
    limits = {"read_before": {"below": 4}}
    wanted = replace(range_of(PARTITION, Bounds(1, 0, 0, 6)), evidence=limits)
    (batch,) = source.read(wanted, limit())
    assert batch.doubtful == (0, 1, 2, 3)
    assert [source.evidence(wanted, end).get("read_before") for end in (0, 3, 4, 6)] == [{"below": 4}] * 2 + [None] * 2
