"""A source in memory that pushes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from connect_core import clock
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.source import Recovered
from connect_core.sdk.values import Bounds, Gap, Json, Limit, Position, Range, SourceBatch
from tests.unit.replication.memory import MemorySink, MemorySource, records


@dataclass
class MemoryPushSource(MemorySource):
    """Sends everything that is not acknowledged, in order, in batches; the one behind `holds_back` records when the
    quantum is over. `acknowledged` counts, as `given` does; `durable` says how many records the target holds."""

    acknowledged: int = 0
    sink: MemorySink = field(default_factory=MemorySink)
    lost: bool = False
    connecting_s: float = 0.0
    holds_back: int = -1
    given: int = 0
    _ahead: int = 0
    told: list[int] = field(default_factory=list)

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        return {partition: self._seen(at or Position(0, 0)) for partition, at in known.items()}

    def _seen(self, at: Position) -> Bounds:
        gaps = (Gap(0, at.offset, None, "the session is lost"),) if self.lost and at.evidence else ()
        evidence = {} if gaps else at.evidence
        return Bounds(0, at.offset, at.offset, at.offset, evidence=evidence, gaps=gaps, pushes=True)

    def follow(
        self, wanted: Sequence[Range], limit: Limit, idle_timeout_s: float
    ) -> Iterator[tuple[Range, SourceBatch]]:
        (one,) = wanted
        assert one.live
        self.lost = False
        self.acknowledged = max(self.acknowledged, one.begin + self._ahead)  # what was settled is recognised
        clock.sleep(self.connecting_s)
        sent, place, came = self.acknowledged, one.begin, clock.monotonic()
        self._ahead = sent - place
        while limit.quantum_left_s() > 0 and clock.monotonic() - came < idle_timeout_s:
            if sent == len(self.bodies):
                self.wait({}, 0.005)
                continue
            if sent == self.holds_back:
                clock.sleep(max(limit.quantum_left_s(), 0))
            bodies = self.bodies[sent : sent + self.batch]
            batch = records({place + n: body for n, body in enumerate(bodies)})
            sent, place = sent + len(bodies), place + len(bodies)
            self.given += len(bodies)
            yield one, SourceBatch(batch, place)
            came = clock.monotonic()

    def acknowledge(self, wanted: Range, end: int) -> None:
        assert end <= max(self.sink.durable, wanted.begin), "acknowledged before it is durable"
        self.acknowledged = end + self._ahead
        self.told.append(end)

    def evidence(self, wanted: Range, end: int) -> Json:
        return {"session": True}

    def recovered(self, wanted: Range, found: ScanResult) -> Recovered:
        return Recovered({"session": True, "left": len(found.hits)}, possible_duplicates=2)
