"""One connector of a real ledger (SQLite) with source, target and engine in this process; `run` is one attempt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from connect_core.config.resolving import Resolved
from connect_core.errors import EngineFailed
from connect_core.ledger import Connector, Ledger
from connect_core.replication.driver.context import RunContext, RunListener
from connect_core.replication.driver.leases import LeaseTimes
from connect_core.replication.driver.ledger_batches import RANGES
from connect_core.replication.driver.summary import TaskSummary
from connect_core.replication.driver.task import TaskRun
from connect_core.replication.locks import shared
from connect_core.replication.worker.lane import move
from connect_core.sdk.records import Partition
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.values import Json
from connect_core.work import Lane, Outcome, Receipt, ScanTask, Side
from tests.unit.replication.memory import MemorySink, MemorySource

BODIES = [b"line %d" % n for n in range(200)]
MEMORY = Partition("memory")


@dataclass
class DirectEngine:
    """Runs lanes in this process. `before` and `after` an execution may raise; `limit` rows is what a worker manages
    before it dies, without a receipt."""

    source: MemorySource
    sink: MemorySink
    dies_after: int | None = None
    lost_after: bool = False
    sought: list[ScanTask] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)
    described: str = "direct"

    @property
    def searches(self) -> int:
        return len(self.sought)

    def execute(self, lanes: Sequence[Lane]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for lane in lanes:
            self.lanes.append(lane)
            with shared(lane.lock_paths):
                if self.dies_after is not None:
                    self.sink.room = self.dies_after
                    move(lane, self.source, self.sink)
                    self.sink.room, self.dies_after = 1 << 30, None
                    raise EngineFailed("a worker was killed")
                outcomes += move(lane, self.source, self.sink)
        if self.lost_after:
            self.lost_after = False
            raise EngineFailed("the answer of the engine was lost")
        return outcomes

    def scan(self, task: ScanTask) -> dict[int, ScanResult]:
        self.sought.append(task)
        seen = {}
        for item in task.scan.ranges:
            begin = min(floor.position for floor in item.floors)
            rows = [
                (offset, 0, "memory", position)
                for position, (offset, _) in enumerate(self.sink.rows)
                if position >= begin and offset >= item.range.begin
            ]
            seen[item.id] = ScanResult().merged(rows, {"memory": len(self.sink.rows)}, True)
        return seen


@dataclass
class World:
    """One connector, its ledger, its source and its target; `run` is one attempt."""

    ledger: Ledger
    connector: Connector
    home: Path
    source: MemorySource
    sink: MemorySink
    engine: DirectEngine
    said: list[str] = field(default_factory=list)
    on_data_loss: str = "fail"
    accept_gaps: bool = False
    tolerance: int = 0
    window_s: float = 0.0
    records_per_second: int = 0
    range_records: int = 1000
    attempt_of: str | None = None
    pipeline: Json = field(default_factory=lambda: {"transforms": []})
    batch_ranges: int = RANGES
    times: LeaseTimes = LeaseTimes(ttl_s=1.5, margin_s=0.3, quantum_s=0.9)  # noqa: RUF009  frozen

    def context(self) -> RunContext:
        side = Side("memory", {})
        resolved = Resolved(
            name=self.connector.name,
            uid=self.connector.uid,
            source=side,
            sink=side,
            pipeline=self.pipeline,
            tasks=1,
            range_records=self.range_records,
            range_bytes=1 << 20,
            tolerance=self.tolerance,
            on_data_loss=self.on_data_loss,
            records_per_second=self.records_per_second,
        )
        return RunContext(
            ledger=self.ledger,
            connector=self.connector,
            resolved=resolved,
            resolve=lambda revision: resolved,
            engine=self.engine,
            home=self.home,
            times=self.times,
            lanes=2,
            find_slice_s=1,
            holder=f"holder {len(self.said)}",
            listener=RunListener(self.said.append, lambda progress: None),
            accept_gaps=self.accept_gaps,
            window_s=self.window_s,
            batch_ranges=self.batch_ranges,
            attempt_of=self.attempt_of,
        )

    def run(self) -> TaskSummary:
        self.said.append("new attempt")
        assignment = self.ledger.assign(self.connector.uid, [MEMORY], 1)
        return TaskRun(self.context(), assignment, 0, self.source, self.sink).run()

    def run_closed(self) -> TaskSummary:
        """One attempt without a window."""
        window_s, self.window_s = self.window_s, 0
        try:
            return self.run()
        finally:
            self.window_s = window_s

    def receipts(self) -> list[Receipt]:
        return sorted(
            (row.receipt for row in self.ledger.receipts(self.connector.uid, stream="live")),
            key=lambda r: (r.begin, r.end),
        )

    def committed(self) -> int:
        (offset,) = self.ledger.positions(self.connector.uid, "live", [MEMORY]).values()
        assert offset is not None
        return offset.offset

    def check(self) -> None:
        """Nothing lost, nothing twice, in order; receipts join without a gap and their identities hold."""
        assert [offset for offset, _ in self.sink.rows] == list(range(len(self.source.bodies)))
        position = 0
        for settled in self.receipts():
            assert settled.begin == position
            assert settled.read == settled.filtered + settled.rejected + settled.passed
            assert settled.emitted == settled.delivered + settled.deduplicated
            assert settled.duplicates == 0
            position = settled.end
        assert position == len(self.source.bodies)
        assert not self.ledger.open_ranges(self.connector.uid, "live", [MEMORY])
