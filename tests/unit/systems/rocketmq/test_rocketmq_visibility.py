"""What is looked at is all there will be: requests that a broker still keeps, and answers that run ahead of the end."""

from __future__ import annotations

from connect_core import clock
from connect_core.rocketmq import Queue, QueueBounds
from connect_core.sdk.records import Partition
from connect_core.sdk.rereading import Claim, Verdict
from connect_core.sdk.sink import Scan
from connect_core.sdk.testing.driving import UID, range_of
from connect_core.sdk.values import Attempt, Bounds, Floor, OpenRange
from connect_core.systems.rocketmq.finding import scan, visible_ends
from connect_core.systems.rocketmq.rereading import reread
from tests.unit.sleeping import SleepingClock
from tests.unit.systems.rocketmq.cluster import MemoryCluster, MemoryQueue
from tests.unit.systems.rocketmq.test_rocketmq_marking import marked

OUT = Queue("out", "broker-a", 0)
SEND_QUEUE_S = 0.2
"""The broker's `waitTimeMillsInSendQueue`: it drops a send that it has not begun by then."""


class Broker(SleepingClock):
    """Has a send in its queue, stores it at the last moment at which it still may, and lives by our clock."""

    def __init__(self, queue: MemoryQueue, late: list) -> None:  # type: ignore[type-arg]
        super().__init__()
        self.queue, self.late = queue, late

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self.seconds >= SEND_QUEUE_S:
            self.queue.messages += self.late
            self.late = []


class Lagging(MemoryCluster):
    """Tells an end that is behind what it has acknowledged until somebody waits at the barrier."""

    def end(self, queue: Queue) -> int:
        return super().end(queue) if self.barriers else self.queues[queue].begin

    def bounds(self, topic: str) -> dict[Queue, QueueBounds]:
        return {
            queue: QueueBounds(self.begin(queue), self.end(queue), 0) for queue in self.queues if queue.topic == topic
        }


def open_range() -> OpenRange:
    partition = Partition("in/b/0")
    pins = {"topic": OUT.topic, "queues": [[OUT.broker, OUT.queue_id]]}
    wanted = range_of(partition, Bounds(0, 0, 0, 100), pins=pins)
    return OpenRange(1, wanted, (Floor(partition.id, str(OUT), 0),), inherited=True)


def search(cluster: MemoryCluster, item: OpenRange) -> list[int]:
    found = scan(cluster.client, Scan(Attempt(UID, 1), (item,), 5.0))[item.id]
    assert found.complete
    return [int(offset) for offset in found.hits[:, 0]]


def test_a_send_of_a_dead_worker_that_its_broker_has_not_begun_is_found() -> None:
    item = open_range()
    mine = item.range.lineage(UID)
    queue = MemoryQueue([marked(0, mine, 0)])
    with clock.replaced_by(Broker(queue, late=[marked(1, mine, 1), marked(2, mine, 2)])):
        assert search(MemoryCluster({OUT: queue}), item) == [0, 1, 2]


def test_what_was_acknowledged_and_cannot_be_seen_yet_is_found() -> None:
    item = open_range()
    mine = item.range.lineage(UID)
    assert search(Lagging({OUT: MemoryQueue([marked(n, mine, n) for n in range(3)])}), item) == [0, 1, 2]


def test_ends_that_become_floors_are_behind_everything_that_was_acknowledged() -> None:
    mine = open_range().range.lineage(UID)
    cluster = Lagging({OUT: MemoryQueue([marked(n, mine, n) for n in range(3)])})
    assert visible_ends(cluster.client, [OUT]) == {OUT: 3}


def test_what_was_acknowledged_a_moment_ago_is_no_loss_for_verify() -> None:
    item = open_range()
    mine = item.range.lineage(UID)
    cluster = Lagging({OUT: MemoryQueue([marked(n, mine, n) for n in range(3)])})
    claim = Claim(1, mine, 0, 100, 3, "", {str(OUT): [[0, 3]]}, item.range.pins.target)
    assert [one.verdict for one in reread(cluster.client, [claim])] == [Verdict.UNCOMPARED]
