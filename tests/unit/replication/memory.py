"""A source and a sink in memory for tests of lanes: lists of bodies, and a target that can be made to stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from connect_core import clock
from connect_core.errors import OffsetGone, Retriable
from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.sink import Scan, Targets
from connect_core.sdk.values import (
    Attempt,
    Bounds,
    Delivered,
    Floor,
    Gap,
    Json,
    Limit,
    OpenRange,
    Pins,
    Position,
    Range,
    Reject,
    SourceBatch,
)
from connect_core.work import Lane, Side


def records(bodies: Mapping[int, bytes]) -> pa.RecordBatch:
    """Rows of RECORD_SCHEMA with the given offsets and bodies."""
    rows = [{"offset": offset, "value": body, "operation": 0} for offset, body in bodies.items()]
    return pa.RecordBatch.from_pylist(rows, schema=RECORD_SCHEMA)


@dataclass
class MemorySource:
    """Offsets count records; `gone` raises OffsetGone when it is reached, `holes` hold nothing, what is before `oldest`
    has expired, what stands at `unreadable` cannot become a row, `copies` are left out. Who follows it or waits for it
    lets the next of `happenings` happen whenever there is nothing; when none is left, time passes."""

    bodies: list[bytes]
    batch: int = 10
    gone: int | None = None
    holes: frozenset[int] = frozenset()
    unreadable: frozenset[int] = frozenset()
    copies: frozenset[int] = frozenset()
    oldest: int = 0
    happenings: list[Callable[[], None]] = field(default_factory=list)
    grows: bool = True

    def partitions(self, known: Sequence[Partition]) -> list[Partition]:
        return [Partition("memory")]

    def topic(self, partition: Partition) -> str:
        return ""

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        return {partition: self._bounds(at.offset if at else self.oldest) for partition, at in known.items()}

    def _bounds(self, position: int) -> Bounds:
        begin = max(position, self.oldest)
        gaps = (Gap(0, position, begin, "expired"),) if begin > position else ()
        return Bounds(0, begin, self.oldest, len(self.bodies), gaps=gaps, grows=self.grows)

    def offsets_for_time(self, partitions: Sequence[Partition], moment: datetime) -> dict[Partition, int]:
        """A record a second, from the epoch on."""
        at = min(max(math.ceil(moment.timestamp()), self.oldest), len(self.bodies))
        return dict.fromkeys(partitions, at)

    def align_offset(self, partition: Partition, seen: Bounds, offset: int) -> int:
        return offset

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        if wanted.begin < self.oldest or wanted.begin == len(self.bodies) < wanted.end:
            raise OffsetGone("expired", where=f"offset {wanted.begin}")
        yield from self._between(wanted, wanted.begin, min(wanted.end, wanted.begin + wanted.max_records))

    def wait(self, seen: Mapping[Partition, Bounds], limit_s: float) -> None:
        if self.happenings:
            self.happenings.pop(0)()
        else:
            clock.sleep(min(limit_s, 0.005))

    def follow(
        self, wanted: Sequence[Range], limit: Limit, idle_timeout_s: float
    ) -> Iterator[tuple[Range, SourceBatch]]:
        (one,) = wanted
        place, came = one.begin, clock.monotonic()
        while limit.quantum_left_s() > 0 and clock.monotonic() - came < idle_timeout_s:
            if place == len(self.bodies):
                self.wait({}, 0.005)
                continue
            for batch in self._between(one, place, len(self.bodies)):
                yield one, batch
                place, came = batch.next_offset, clock.monotonic()

    def _between(self, wanted: Range, first: int, last: int) -> Iterator[SourceBatch]:
        for begin in range(first, last, self.batch):
            end = min(begin + self.batch, last)
            if self.gone is not None and begin <= self.gone < end:
                raise OffsetGone("expired", where=f"offset {self.gone}")
            left_out = tuple(sorted(self.copies & set(range(begin, end))))
            here = {n: self.bodies[n] for n in range(begin, end) if n not in self.holes | self.unreadable | self.copies}
            odd = tuple(
                Reject(n, 0, "read", "Odd", "it is odd", b"") for n in range(begin, end) if n in self.unreadable
            )
            holes = tuple((n, n + 1) for n in sorted(self.holes) if begin <= n < end)
            yield SourceBatch(records(here), end, holes, odd, left_out)

    def evidence(self, wanted: Range, end: int) -> Json:
        return {"before": end - 1}

    def commit_offsets(self, positions: Mapping[Partition, Position]) -> None:
        pass


@dataclass
class MemorySink:
    """`rows` is the target, `durable` of them were flushed. It takes `room` rows before the quantum counts as over,
    fails a flush when `broken`, and can never hold a body that is in `hated`."""

    rows: list[tuple[int, bytes]] = field(default_factory=list)
    room: int = 1 << 30
    broken: bool = False
    hated: frozenset[bytes] = frozenset()
    closed: bool = False
    alone: bool = False
    name: str = "memory"
    scan_tells_records: bool = True
    durable: int = 0

    def target_leases(self, task: int) -> tuple[str, ...]:
        return (self.name,) if self.alone else ()

    def pinned_target_leases(self, target: Json) -> tuple[str, ...]:
        return (str(target["memory"]),) if self.alone else ()

    def reaches(self, target: Json, name: str) -> bool:
        return True

    def targets(self, task: int, floors: Sequence[Floor], topics: Mapping[str, int]) -> Targets:
        return Targets({"memory": self.name})

    def floors(self, wanted: Range, known: Sequence[Floor], *, restored: bool = False) -> tuple[Floor, ...]:
        if restored and not known:
            return (Floor(wanted.partition.id, "memory", 0, ahead=True),)
        return tuple(known) or (Floor(wanted.partition.id, "memory", len(self.rows)),)

    def scan(self, wanted: Scan) -> dict[int, ScanResult]:
        return {}

    def invalid_rows(self, batch: pa.RecordBatch) -> list[tuple[int, str, str]]:
        values = batch.column("value").to_pylist()
        return [(row, "Hated", "it is hated") for row, value in enumerate(values) if value in self.hated]

    @contextmanager
    def writer(self, attempt: Attempt, wanted: OpenRange) -> Iterator[MemorySink]:
        self.first = len(self.rows)
        yield self
        self.closed = True

    def write(self, batch: pa.RecordBatch, limit: Limit) -> int:
        taken = min(len(batch), self.room)
        self.room -= taken
        self.rows += list(zip(batch.column("offset").to_pylist(), batch.column("value").to_pylist(), strict=True))[
            :taken
        ]
        return taken

    def flush(self, limit: Limit) -> Delivered:
        if self.broken:
            raise Retriable("the answer was lost")
        self.durable = len(self.rows)
        mine = self.rows[self.first :]
        return Delivered(len(mine), sum(len(body) for _, body in mine), {"memory": len(self.rows)}, _spans(self))


def _spans(sink: MemorySink) -> Json:
    return {"memory": [[sink.first, len(sink.rows)]]}


def lane_of(*items: OpenRange, tolerance: int = 0, quantum_s: float = 5.0, home: str = "/nowhere") -> Lane:
    """A lane with ten seconds to live."""
    return Lane(
        connector="orders",
        uid="uid",
        task=0,
        epoch=1,
        source=Side("memory", {}),
        sink=Side("memory", {}),
        pipeline={},
        tolerance=tolerance,
        ranges=items,
        quantum_s=quantum_s,
        boot_id="boot",
        deadline_ns=time.clock_gettime_ns(time.CLOCK_BOOTTIME) + 10_000_000_000,
        lock_paths=(f"{home}/locks/one",),
        code="code",
    )


def open_range(begin: int, end: int, *, number: int = 1, found: ScanResult | None = None) -> OpenRange:
    partition = Partition("memory")
    pins = Pins(1, "pipeline", {}, "code")
    wanted = Range("live", partition, 0, 0, begin, end, 1_000_000, 1 << 30, {}, pins)
    return OpenRange(number, wanted, (Floor(partition.id, "memory", 0),), found is not None, found)
