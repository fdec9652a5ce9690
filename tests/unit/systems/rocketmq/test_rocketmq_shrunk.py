"""A queue that ends before the end that was planned for: its broker has lost what came last."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connect_core.errors import OffsetGone
from connect_core.rocketmq import Client, ClientOptions, Queue, QueueBounds
from connect_core.rocketmq.testing import ScriptedServer
from connect_core.rocketmq.testing_queues import MemoryQueues
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import limit, range_of
from connect_core.sdk.values import Bounds, Gap, Json, Position
from connect_core.systems.rocketmq.continuity import next_bounds
from connect_core.systems.rocketmq.options import RocketMQSourceOptions
from connect_core.systems.rocketmq.source import RocketMQSource

QUEUE = Queue("orders", "broker-a", 0)
PARTITION = Partition(str(QUEUE))


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as made:
        made.serve_route(QUEUE.topic, queues=1)
        queues = MemoryQueues()
        queues.attach(made)
        queues.append(QUEUE.topic, 0, *(b"%d" % number for number in range(6)))
        yield made


def read(server: ScriptedServer, begin: int, end: int) -> tuple[int, Json]:
    """How many records of a range come, and the evidence of where it is closed."""
    source = RocketMQSource(
        RocketMQSourceOptions.model_validate({"name_servers": [server.address], "topics": [QUEUE.topic]})
    )
    wanted = range_of(PARTITION, Bounds(0, begin, 0, end))
    batches = list(source.read(wanted, limit()))
    return sum(len(batch.records) for batch in batches), source.evidence(wanted, batches[-1].next_offset)


def planned_next(server: ScriptedServer, evidence: Json) -> Bounds:
    with Client(ClientOptions((server.address,))) as client:
        seen = QueueBounds(client.offsets.begin(QUEUE), client.offsets.end(QUEUE), 0)
        return next_bounds(client, QUEUE, Position(0, 6, evidence), seen)


def test_what_a_queue_has_lost_behind_what_was_read_of_a_range_is_a_gap(server: ScriptedServer) -> None:
    """What is stored at these offsets from now on is read, as something else than what was planned."""
    records, evidence = read(server, 2, 10)
    bounds = planned_next(server, evidence)
    assert (records, bounds.gaps) == (4, (Gap(0, 6, None, "rewound"),))
    assert (bounds.incarnation, bounds.begin, bounds.end) == (1, 6, 6)
    again = planned_next(server, bounds.evidence)
    assert (again.gaps, again.evidence) == ((), bounds.evidence), "it is told once"


def test_a_range_that_was_read_to_its_end_has_lost_nothing(server: ScriptedServer) -> None:
    _, evidence = read(server, 2, 6)
    assert not planned_next(server, evidence).gaps


def test_a_range_of_which_a_queue_has_lost_everything_does_not_stand_still(server: ScriptedServer) -> None:
    with pytest.raises(OffsetGone, match="Messages 6 to 10 cannot be read: the queue ends before them"):
        read(server, 6, 10)
