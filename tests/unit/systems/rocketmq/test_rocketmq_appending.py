"""What others wrote between our batches is read back whole, as soon as it can be seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from connect_core.clock import now_ns
from connect_core.errors import OffsetGone, Retriable, TargetChanged
from connect_core.rocketmq import Acknowledged, Batch, PullResult, Queue, QueueSlice, StoreStatus
from connect_core.sdk.records import Lineage
from connect_core.sdk.sink import Storing
from connect_core.sdk.testing.driving import records
from connect_core.sdk.values import Limit
from connect_core.systems.rocketmq.appending import QueueAppender
from connect_core.systems.rocketmq.writing import QueueWriter
from tests.unit.systems.rocketmq.cluster import MemoryCluster, MemoryQueue
from tests.unit.systems.rocketmq.test_rocketmq_decoding import stored
from tests.unit.systems.rocketmq.test_rocketmq_marking import marked

OUT = Queue("out", "broker-a", 0)
LINEAGE = Lineage("u", "live", "p", 0)


class _Behind:
    """A reader before whose position the queue ends, for all that can be seen."""

    def __init__(self, position: int) -> None:
        self.position = position

    def __iter__(self) -> Iterator[QueueSlice]:
        raise OffsetGone("The queue ends before the offset that is to be read")


@dataclass
class Busy(MemoryCluster):
    """Acknowledges earlier than it shows: so many reads come too early."""

    early: int = 0

    def sender(self, queue: Queue) -> None:
        """Nothing is sent here."""

    def read(self, queue: Queue, begin: int, end: int, *, deadline: float) -> Any:
        if self.early:
            self.early -= 1
            return _Behind(begin)
        return super().read(queue, begin, end, deadline=deadline)


def appender(early: int) -> QueueAppender:
    messages = [marked(position, LINEAGE, position) for position in range(3, 6)]
    made = QueueAppender(Busy({OUT: MemoryQueue(messages)}, early=early).client, OUT, LINEAGE, 6, 3.0)
    made.look_between((3, 6))
    return made


def limit(seconds: float) -> Limit:
    return Limit(now_ns() + int(seconds * 1e9), now_ns() + int(seconds * 1e9))


def test_what_cannot_be_seen_yet_is_waited_for() -> None:
    one = appender(early=2)
    one.look(limit(60))
    assert one.duplicates == 3


def test_what_retention_has_removed_before_it_was_looked_at_may_have_been_ours() -> None:
    messages = [marked(position, LINEAGE, position) for position in range(3, 6)]
    queues = {OUT: MemoryQueue(messages, begin=4)}
    one = QueueAppender(Busy(queues).client, OUT, LINEAGE, 6, 3.0)
    one.look_between((1, 6))
    one._sender = Idle()  # type: ignore[assignment]
    told = QueueWriter(one, LINEAGE, 3.0, 1_000_000).flush(limit(60))
    assert (told.duplicates, told.possible_duplicates) == (2, 3)


def test_what_cannot_be_seen_until_the_deadline_is_the_next_attempt_s() -> None:
    with pytest.raises(Retriable, match="No time was left"):
        appender(early=1_000_000).look(limit(0.05))


def test_what_was_stored_and_not_flushed_is_told_by_its_place() -> None:
    one = appender(early=0)
    for first, status in ((6, StoreStatus.OK), (9, FLUSH), (12, FLUSH), (20, StoreStatus.SLAVE_NOT_AVAILABLE)):
        one._count(Acknowledged(OUT, first, 3, status))
    assert one.unsure() == {"FLUSH_DISK_TIMEOUT": [(9, 15)], "SLAVE_NOT_AVAILABLE": [(20, 23)]}
    assert one.written() == [(6, 15), (20, 23)]
    told = QueueWriter(one, LINEAGE, 3.0, 1_000_000)
    assert {f"{OUT} FLUSH_DISK_TIMEOUT": [[9, 15]], str(OUT): [[6, 15], [20, 23]]}.items() <= flushed(told).items()


FLUSH = StoreStatus.FLUSH_DISK_TIMEOUT


def flushed(writer: QueueWriter) -> dict[str, Any]:
    """Where its messages stand, when nothing is outstanding."""
    writer.appender._sender = Idle()  # type: ignore[assignment]
    writer.appender._foreign = []
    return writer.flush(limit(60)).where


class Idle:
    """A sender with nothing under way."""

    def finish(self, *, deadline: float) -> None:
        """Nothing to wait for."""


@dataclass
class Answering(MemoryCluster):
    """Stores what is sent to it, and counts how often it is asked what it holds."""

    def sender(self, queue: Queue) -> Any:
        return self

    def submit(self, batch: Batch, *, deadline: float, sys_flag: int = 0) -> None:
        self._stored = Acknowledged(OUT, 0, batch.count, StoreStatus.OK)

    def finish(self, *, deadline: float) -> Acknowledged | None:
        stored, self._stored = self._stored, None
        return stored

    def pull(self, queue: Queue, offset: int, *, max_messages: int = 32) -> PullResult:
        self.pulls += 1
        return super().pull(queue, offset, max_messages=max_messages)

    _stored: Acknowledged | None = None
    pulls: int = 0


def test_what_is_durable_is_known_without_a_look_at_the_queue() -> None:
    """A source that pushes waits for it behind each batch."""
    queue = MemoryQueue([])
    cluster = Answering({OUT: queue})
    one = QueueAppender(cluster.client, OUT, LINEAGE, 0, 3.0)
    one.anchors = []
    writer = QueueWriter(one, LINEAGE, 3.0, 1_000_000)
    assert isinstance(writer, Storing)
    assert writer.write(records([b"a", b"b"]), limit(60)) == 2
    writer.store(limit(60))
    assert (one.written(), cluster.pulls) == ([(0, 2)], 0)
    queue.messages = [stored(0, b"other"), stored(1, b"other")]
    with pytest.raises(TargetChanged, match="no longer in the queue"):
        writer.flush(limit(60))
