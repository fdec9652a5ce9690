"""The source: a few partitions in memory whose positions count records. They have holes, records that cannot be read
and records that no target takes; they grow while they are read, and their oldest records expire."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import pyarrow as pa

from connect_core import clock
from connect_core.errors import OffsetGone, Unreachable
from connect_core.sdk.batches import batch_of_columns
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Bounds, Gap, Json, Limit, Position, Range, Reject, SourceBatch
from tests.simulator.faults import CONFIRM_FAILED, SOURCE_AWAY, Faults

_LOOK_S = 0.05
HOLE, UNREADABLE, TOO_LARGE, PLAIN = "hole", "unreadable", "too large", "plain"


@dataclass(frozen=True)
class Entry:
    """What stands at one position. `stored_after`: how often the log had lost its end when this was stored."""

    kind: str
    body: bytes
    key: str | None = None
    stored_after: int = 0


@dataclass
class Log:
    """One partition: `oldest` is the lowest position that can still be read. `former` has in order what was stored
    before the log lost its end for the last time, with the positions; from `since` on it was stored later."""

    entries: list[Entry] = field(default_factory=list)
    oldest: int = 0
    former: list[tuple[int, Entry]] = field(default_factory=list)
    since: int = 0
    losses: int = 0

    @property
    def end(self) -> int:
        return len(self.entries)

    def add(self, entry: Entry) -> None:
        """Told by its body from what the log has lost there."""
        mark = b"'" * self.losses
        self.entries.append(replace(entry, body=entry.body + mark, stored_after=self.losses))

    def lose(self, since: int) -> None:
        """Everything from this position on."""
        self.former = self.ever()
        del self.entries[since:]
        self.since, self.losses = since, self.losses + 1

    def ever(self) -> list[tuple[int, Entry]]:
        """All that was ever stored, in order, with the positions."""
        return [*self.former, *((n, self.entries[n]) for n in range(self.since, self.end))]

    def gone(self, at: int, entry: Entry) -> str:
        """What destroyed it; empty for one that is there."""
        if at >= self.end or self.entries[at] is not entry:
            return "lost by its broker"
        return "expired" if at < self.oldest else ""

    def readable(self, begin: int, end: int) -> list[int]:
        return [n for n in range(begin, end) if self.entries[n].kind in (PLAIN, TOO_LARGE)]

    def records(self, offsets: Sequence[int]) -> pa.RecordBatch:
        rows = [self.entries[n] for n in offsets]
        count = len(rows)
        columns = {
            "key": pa.array([row.key for row in rows], pa.string()),
            "value": pa.array([row.body for row in rows], pa.binary()),
            "offset": pa.array(offsets, pa.int64()),
            "operation": pa.array([0] * count, pa.int8()),
        }
        return batch_of_columns(columns, count)


class SimulatedSource:
    """A `sdk.source.Source` over the logs."""

    def __init__(self, logs: Mapping[Partition, Log], batch: int, step: Callable[[str], None], faults: Faults) -> None:
        self._logs, self._batch, self._step, self._faults = logs, batch, step, faults

    def partitions(self, known: Sequence[Partition]) -> list[Partition]:
        return sorted(self._logs)

    def topic(self, partition: Partition) -> str:
        return ""

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        self._ask()
        return {partition: _bounds(self._logs[partition], position) for partition, position in known.items()}

    def offsets_for_time(self, partitions: Sequence[Partition], moment: datetime) -> dict[Partition, int]:
        raise NotImplementedError("no backfill is simulated")

    def align_offset(self, partition: Partition, seen: Bounds, offset: int) -> int:
        return offset

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        log = self._logs[wanted.partition]
        last = min(wanted.end, wanted.begin + wanted.max_records)
        for begin in range(wanted.begin, last, self._batch):
            self._ask()
            if limit.quantum_left_s() <= 0:
                return
            if begin < log.oldest:
                raise OffsetGone("expired", where=f"{wanted.partition.key}, offset {begin}")
            yield _batch(log, begin, min(begin + self._batch, last))

    def wait(self, seen: Mapping[Partition, Bounds], limit_s: float) -> None:
        until = clock.monotonic() + limit_s
        while clock.monotonic() < until:
            self._ask()
            if any(self._logs[partition].end > bounds.end for partition, bounds in seen.items()):
                return
            clock.sleep(min(_LOOK_S, limit_s))

    def follow(
        self, wanted: Sequence[Range], limit: Limit, idle_timeout_s: float
    ) -> Iterator[tuple[Range, SourceBatch]]:
        places = {one.partition: one.begin for one in wanted}
        came = clock.monotonic()
        while limit.quantum_left_s() > 0 and clock.monotonic() - came < idle_timeout_s:
            self._ask()
            for one in wanted:
                log, begin = self._logs[one.partition], places[one.partition]
                if begin < log.oldest:
                    raise OffsetGone("expired", where=f"{one.partition.key}, offset {begin}")
                end = places[one.partition] = min(begin + self._batch, log.end)
                if end > begin:
                    yield one, _batch(log, begin, end)
                    came = clock.monotonic()
            clock.sleep(_LOOK_S)

    def evidence(self, wanted: Range, end: int) -> Json:
        self._ask()
        return {"before": end - 1}

    def commit_offsets(self, positions: Mapping[Partition, Position]) -> None:
        self._step("tells the source")
        if self._faults.strikes(CONFIRM_FAILED):
            raise Unreachable("the source cannot be told")

    def _ask(self) -> None:
        self._step("asks the source")
        if self._faults.strikes(SOURCE_AWAY):
            raise Unreachable("the source does not answer")


def _bounds(log: Log, position: Position | None) -> Bounds:
    begin = log.oldest if position is None else position.offset
    if begin >= log.oldest:
        return Bounds(0, min(begin, log.end), log.oldest, log.end)
    return Bounds(0, log.oldest, log.oldest, log.end, gaps=(Gap(0, begin, log.oldest, "expired"),))


def _batch(log: Log, begin: int, end: int) -> SourceBatch:
    unreadable = tuple(
        Reject(n, 0, "read", "Unreadable", "it cannot be read", log.entries[n].body)
        for n in range(begin, end)
        if log.entries[n].kind == UNREADABLE
    )
    holes = tuple((n, n + 1) for n in range(begin, end) if log.entries[n].kind == HOLE)
    return SourceBatch(log.records(log.readable(begin, end)), end, holes, unreadable)
