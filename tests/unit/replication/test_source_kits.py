"""Sources that are made with kits, under the real driver and worker: attempts that die, logs that change under them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from connect_core.errors import EngineFailed, OffsetGone
from connect_core.replication.driver.leases import LeaseTimes
from connect_core.sdk.kits.arrivals import trace_of
from connect_core.sdk.scan import Hit, ScanResult
from connect_core.sdk.testing.memory_sources import InboxServer, LogServer, MemoryInbox, MemorySourceLog
from connect_core.work import ScanTask
from tests.unit.replication.world import BODIES, MEMORY, DirectEngine, World

OTHERS = [b"other %d" % n for n in range(250)]


class Log(MemorySourceLog):
    def logs(self, known: Sequence[str]) -> Sequence[str]:
        return [MEMORY.key]


class Inbox(MemoryInbox):
    def names(self) -> Sequence[str]:
        return [MEMORY.key]


class TracingEngine(DirectEngine):
    """Its target keeps traces. Messages are sent in the order of BODIES."""

    def scan(self, task: ScanTask) -> dict[int, ScanResult]:
        return {item.id: self._found(item.range.begin) for item in task.scan.ranges}

    def _found(self, begin: int) -> ScanResult:
        rows = [(at, offset, trace_of(f"id {BODIES.index(body)}")) for at, (offset, body) in enumerate(self.sink.rows)]
        hits = [Hit(offset, 0, "memory", at, trace) for at, offset, trace in rows if offset >= begin]
        return ScanResult().merged(hits, {"memory": len(self.sink.rows)}, True)


@pytest.fixture
def log(world: World) -> LogServer:
    server = LogServer()
    server.append(BODIES)
    world.source = world.engine.source = Log(server)  # type: ignore[assignment]
    return server


@pytest.fixture
def inbox(world: World) -> InboxServer:
    server = InboxServer()
    server.append(BODIES)
    source = Inbox(server)
    world.source, world.engine = source, TracingEngine(source, world.sink)  # type: ignore[assignment, arg-type]
    world.times = LeaseTimes(ttl_s=4, margin_s=0.5, quantum_s=2, idle_timeout_s=0.02)
    return server


def bodies(world: World) -> list[bytes]:
    return [body for _, body in world.sink.rows]


def test_a_log_is_moved_once_though_an_attempt_dies(world: World, log: LogServer) -> None:
    world.engine.dies_after = 73
    with pytest.raises(EngineFailed):
        world.run()
    world.run()
    log.append([b"more"])
    world.run()
    assert bodies(world) == [*BODIES, b"more"]


def test_a_log_that_changed_under_a_dead_attempt_is_another_one(world: World, log: LogServer) -> None:
    """What the attempt wrote has the same offsets as the records of the new log."""
    world.times = LeaseTimes(ttl_s=4, margin_s=0.5, quantum_s=2)
    world.engine.dies_after = 73
    with pytest.raises(EngineFailed):
        world.run()
    assert (left := bodies(world))
    log.recreate()
    log.append(OTHERS)
    with pytest.raises(OffsetGone):
        world.run()
    world.accept_gaps = True
    world.run()
    assert bodies(world) == [*left, *OTHERS]
    assert [row.gap.end for row in world.ledger.gaps(world.connector.uid)] == [None]


def test_what_expired_is_a_gap_by_the_policy(world: World, log: LogServer) -> None:
    world.run()
    log.append(OTHERS)
    log.expire(len(BODIES) + 50)
    with pytest.raises(OffsetGone):
        world.run()
    world.on_data_loss = "skip"
    world.run()
    assert bodies(world) == [*BODIES, *OTHERS[50:]]


def test_a_log_is_followed_in_a_window(world: World, log: LogServer) -> None:
    world.window_s = 1.0
    world.run()
    assert bodies(world) == BODIES


def test_messages_are_moved_once_though_an_attempt_dies(world: World, inbox: InboxServer) -> None:
    world.engine.dies_after = 73
    with pytest.raises(EngineFailed):
        world.run()
    inbox.forget(5)  # their acknowledgements were lost with the connection
    world.run()
    assert bodies(world) == BODIES
    assert inbox.waiting == []
    assert sum(receipt.possible_duplicates for receipt in world.receipts()) == 0


def test_messages_are_moved_once_into_a_sink_that_cannot_tell_its_records(world: World, inbox: InboxServer) -> None:
    world.sink.scan_tells_records = False
    world.times = replace(world.times, idle_timeout_s=0.1)
    world.run()
    assert bodies(world) == BODIES
