"""Several partitions in memory, each a `MemorySource`, and a target that tells them apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

import pyarrow as pa

from connect_core import clock
from connect_core.errors import Failure, TargetChanged, WaybillError
from connect_core.ledger import task_lease_id
from connect_core.replication.driver.summary import TaskSummary
from connect_core.replication.driver.task import TaskRun
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.source import Followed
from connect_core.sdk.values import OPEN_END, Bounds, Delivered, Json, Limit, OpenRange, Position, Range, SourceBatch
from connect_core.work import Lane, ScanTask
from tests.unit.replication.memory import MemorySink, MemorySource, lane_of, open_range
from tests.unit.replication.world import DirectEngine, World


@dataclass
class SeveralSources:
    """`parts` are the partitions that there are; `named` are those that the document names."""

    parts: dict[Partition, MemorySource]
    named: set[Partition]
    asked: list[list[Partition]] = field(default_factory=list)

    def partitions(self, known: Sequence[Partition]) -> list[Partition]:
        return sorted(self.named & {*self.parts})

    def topic(self, partition: Partition) -> str:
        return ""

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        self.asked.append([*known])
        return {one: self.parts[one].available_offsets({one: at})[one] for one, at in known.items()}

    def offsets_for_time(self, partitions: Sequence[Partition], moment: datetime) -> dict[Partition, int]:
        raise NotImplementedError

    def align_offset(self, partition: Partition, seen: Bounds, offset: int) -> int:
        return offset

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        yield from self.parts[wanted.partition].read(wanted, limit)

    def wait(self, seen: Mapping[Partition, Bounds], limit_s: float) -> None:
        self._next_happening()

    def _next_happening(self) -> None:
        for one in self.parts.values():
            if one.happenings:
                one.happenings.pop(0)()
                return
        clock.sleep(0.005)

    def follow(self, wanted: Sequence[Range], limit: Limit, idle_timeout_s: float) -> Iterator[Followed]:
        places = {one.partition: one.begin for one in wanted}
        failed: set[Partition] = set()
        came = clock.monotonic()
        while limit.quantum_left_s() > 0 and clock.monotonic() - came < idle_timeout_s:
            for one in (each for each in wanted if each.partition not in failed):
                part = self.parts[one.partition]
                try:
                    for batch in part._between(one, places[one.partition], len(part.bodies)):
                        yield one, batch
                        places[one.partition], came = batch.next_offset, clock.monotonic()
                except WaybillError as error:
                    failed.add(one.partition)
                    yield one, Failure.of(error)
            self._next_happening()

    def evidence(self, wanted: Range, end: int) -> Json:
        return {"before": end - 1}

    def commit_offsets(self, positions: Mapping[Partition, Position]) -> None:
        pass


@dataclass
class SeveralSink(MemorySink):
    """`stored` is the target: (partition, offset), in order; so many of them were flushed: `durable`."""

    stored: list[tuple[Partition, int]] = field(default_factory=list)

    @contextmanager
    def writer(self, lane: Lane, wanted: OpenRange) -> Iterator[_Writer]:  # type: ignore[override]
        yield _Writer(self, wanted.range.partition)

    def of(self, partition: Partition) -> list[int]:
        return [offset for one, offset in self.stored if one == partition]


@dataclass
class _Writer:
    sink: SeveralSink
    partition: Partition
    taken: int = 0

    def write(self, batch: pa.RecordBatch, limit: Limit) -> int:
        self.sink.stored += [(self.partition, offset) for offset in batch.column("offset").to_pylist()]
        self.taken += len(batch)
        return len(batch)

    def flush(self, limit: Limit) -> Delivered:
        if self.sink.broken:
            return self.sink.flush(limit)
        self.sink.durable = len(self.sink.stored)
        return Delivered(self.taken, 0, {"memory": len(self.sink.stored)}, {})


@dataclass
class SeveralEngine(DirectEngine):
    """`unknown`: the partitions of which nobody can say what is there."""

    unknown: frozenset[Partition] = frozenset()

    def scan(self, task: ScanTask) -> dict[int, ScanResult]:
        self.sought.append(task)
        return {item.id: self._found(item) for item in task.scan.ranges}

    def _found(self, item: OpenRange) -> ScanResult:
        if item.range.partition in self.unknown:
            return ScanResult(failure=Failure.of(TargetChanged("Messages were deleted", next_step="Give the range up")))
        stored = self.sink.stored  # type: ignore[attr-defined]
        begin = min(floor.position for floor in item.floors)
        rows = [
            (offset, 0, "memory", position)
            for position, (partition, offset) in enumerate(stored)
            if position >= begin and partition == item.range.partition and offset >= item.range.begin
        ]
        return ScanResult().merged(rows, {"memory": len(stored)}, True)


@dataclass
class SeveralWorld(World):
    """`run` is one attempt of the one task that has all partitions."""

    @property
    def parts(self) -> dict[Partition, MemorySource]:
        return self.several.parts

    @property
    def several(self) -> SeveralSources:
        return self.source  # type: ignore[return-value]

    @property
    def target(self) -> SeveralSink:
        return self.sink  # type: ignore[return-value]

    def run(self) -> TaskSummary:
        self.said.append("new attempt")
        named = self.source.partitions([])
        assignment = self.ledger.assign(self.connector.uid, named, 1)
        return TaskRun(self.context(), assignment, 0, self.source, self.sink, frozenset(named)).run()

    def give_up(self, item: OpenRange) -> None:
        """As a person does; what was written of it stays."""
        version = self.ledger.assignment(self.connector.uid).version
        name = task_lease_id(self.connector.uid, "live", version, 0)
        seen = self.ledger.lease(name)
        lease = self.ledger.take(name, seen, "person", uid=self.connector.uid, stream="live", version=version)
        self.ledger.abandon([lease], item.id, who="ann", why="")
        self.ledger.release(lease)

    def lane(self, *partitions: Partition, end: int = OPEN_END) -> Lane:
        """A lane with a range of each, from the beginning on."""
        planned = [
            replace(open_range(0, end, number=number), range=replace(open_range(0, end).range, partition=one))
            for number, one in enumerate(partitions)
        ]
        return lane_of(*planned)

    def moved(self) -> dict[str, int]:
        """By partition how many of its records are in the target, each once and in order."""
        found = {one.key: self.target.of(one) for one in self.parts}
        assert all(offsets == sorted(set(offsets)) for offsets in found.values())
        return {key: len(offsets) for key, offsets in found.items()}

    def states(self) -> dict[str, str]:
        known = self.ledger.partition_states(self.connector.uid)
        return {partition.key: state.state for partition, state in known.items()}

    def open_keys(self) -> list[str]:
        return [item.range.partition.key for item in self.ledger.open_ranges(self.connector.uid, "live")]
