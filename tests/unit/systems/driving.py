"""A task that writes to a sink, without ledger and engine."""

from __future__ import annotations

from dataclasses import dataclass, field

from connect_core.sdk.records import Partition
from connect_core.sdk.sink import Sink
from connect_core.sdk.testing.driving import attempt, limit, range_of, records
from connect_core.sdk.values import Bounds, Delivered, Floor, OpenRange


@dataclass
class Filler:
    """A task that writes: its floors are what a ledger would keep."""

    sink: Sink
    floors: dict[str, Floor] = field(default_factory=dict)
    epoch: int = 0
    next_offset: int = 0

    def plan(self, records_planned: int = 1000) -> OpenRange:
        self.epoch += 1
        targets = self.sink.targets(0, list(self.floors.values()), {})
        bounds = Bounds(0, self.next_offset, 0, self.next_offset + records_planned)
        wanted = range_of(Partition("source"), bounds, pins=targets.pins)
        for floor in self.sink.floors(wanted, list(self.floors.values())):
            self.floors[floor.target] = floor
        return OpenRange(1, wanted, tuple(self.floors.values()))

    def write(self, planned: OpenRange, values: list[bytes | None]) -> Delivered:
        """Writes and flushes; settles nothing."""
        with self.sink.writer(attempt(self.epoch), planned) as writer:
            assert writer.write(records(values, self.next_offset), limit()) == len(values)
            return writer.flush(limit())

    def settle(self, delivered: Delivered, count: int) -> None:
        self.next_offset += count
        for target, position in delivered.behind.items():
            self.floors[target] = self.floors[target]._replace(position=position, evidence=delivered.evidence)

    def run(self, values: list[bytes | None]) -> Delivered:
        delivered = self.write(self.plan(), values)
        self.settle(delivered, len(values))
        return delivered
