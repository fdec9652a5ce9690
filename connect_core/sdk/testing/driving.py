"""Drives sources and sinks as a run does, without ledger and engine: bounds, range, read, evidence, position."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.sdk.records import Partition
from connect_core.sdk.source import Source
from connect_core.sdk.values import Attempt, Bounds, Gap, Json, Limit, Pins, Position, Range, Reject

UID = "0123abcd"
NO_PINS = Pins(1, "", {}, "test")


def limit(quantum_s: float = 20.0, deadline_s: float = 30.0) -> Limit:
    now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return Limit(now + int(quantum_s * 1e9), now + int(deadline_s * 1e9))


def range_of(
    partition: Partition, bounds: Bounds, *, max_records: int = 10**6, max_bytes: int = 10**9, pins: Json | None = None
) -> Range:
    return Range(
        stream="live",
        partition=partition,
        slot=0,
        incarnation=bounds.incarnation,
        begin=bounds.begin,
        end=bounds.end,
        max_records=max_records,
        max_bytes=max_bytes,
        evidence=bounds.evidence,
        pins=replace(NO_PINS, target=pins or {}),
        gaps=bounds.gaps,
    )


def attempt(epoch: int = 1, uid: str = UID) -> Attempt:
    return Attempt(uid, epoch)


def records(values: list[bytes | None], first_offset: int = 0, **columns: list[object]) -> pa.RecordBatch:
    """Records with these values and offsets in sequence; other columns as given, else null."""
    given: Mapping[str, list[object]] = {
        "value": list(values),
        "offset": [first_offset + row for row in range(len(values))],
        "operation": [0] * len(values),
        **columns,
    }
    arrays = [pa.array(given.get(f.name, [None] * len(values)), type=f.type) for f in RECORD_SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORD_SCHEMA)


@dataclass
class Follower:
    """A task whose ledger is this object: every `run` goes on where the last one settled."""

    source: Source
    positions: dict[Partition, Position | None] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    max_records: int = 10**6
    max_bytes: int = 10**9

    def run(self) -> list[bytes | None]:
        """Plans and reads until nothing is left; the values, in order of reading."""
        for partition in self.source.partitions(list(self.positions)):
            self.positions.setdefault(partition, None)
        values: list[bytes | None] = []
        while True:
            before = dict(self.positions)
            values += (more := self.step())
            if not more and self.positions == before:  # a range may hold nothing, and others follow
                return values

    def step(self) -> list[bytes | None]:
        """One plan and its execution."""
        values: list[bytes | None] = []
        for partition, bounds in self.source.available_offsets(self.positions).items():
            if bounds.failure:
                raise bounds.failure.as_error()
            if bounds.end > bounds.begin:
                values += self._read(partition, bounds)
            elif bounds.chosen:
                self._keep(partition, Position(bounds.incarnation, bounds.begin, bounds.evidence), bounds.gaps)
        return values

    def _keep(self, partition: Partition, there: Position, gaps: tuple[Gap, ...]) -> None:
        """What was seen. Behind a loss it begins only when that is settled."""
        at = self.positions[partition]
        if not gaps or (at and (at.incarnation, at.offset) == (there.incarnation, there.offset)):
            self.positions[partition] = there

    def tell(self) -> list[Gap]:
        """Settles what only tells of gaps, as a run does with empty ranges; gives these gaps."""
        told: list[Gap] = []
        for partition, bounds in self.source.available_offsets(self.positions).items():
            if bounds.gaps and bounds.end == bounds.begin:
                self.positions[partition] = Position(bounds.incarnation, bounds.begin, bounds.evidence)
                told += bounds.gaps
        return told

    def _read(self, partition: Partition, bounds: Bounds) -> list[bytes | None]:
        wanted = range_of(partition, bounds, max_records=self.max_records, max_bytes=self.max_bytes)
        values: list[bytes | None] = []
        end = wanted.begin
        for batch in self.source.read(wanted, limit()):
            assert batch.next_offset > end
            values += batch.records.column("value").to_pylist()
            self.rejects += batch.rejects
            end = batch.next_offset
        self.positions[partition] = Position(bounds.incarnation, end, self.source.evidence(wanted, end))
        self.gaps += bounds.gaps
        return values
