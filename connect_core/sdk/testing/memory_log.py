"""Logs in memory for `LogSink`: their records expire, their newest ones cannot be read at once, and they can be made
anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from connect_core.sdk.kits.log_connection import LogEntry, LogSlice, StoredAt
from connect_core.sdk.kits.log_sink import LogSink
from connect_core.sdk.kits.refused import RowsRefused
from connect_core.sdk.testing.memory import HATED, values_of

_PAGE = 100


class Stored(NamedTuple):
    position: int
    mark: str | None
    value: bytes | None


@dataclass
class Log:
    """`visible` is the position before which everything can be read; `trimmed` says that records have expired."""

    records: list[Stored] = field(default_factory=list)
    next: int = 0
    visible: int = 0
    trimmed: bool = False


@dataclass
class Journal:
    """The server. Records of a log are `step` positions apart. One that `lags` shows what it has acknowledged only to
    those who wait for the end, and answers every other read with nothing."""

    step: int = 1
    lags: bool = False
    logs: dict[str, Log] = field(default_factory=lambda: {"log": Log()})
    reads: int = 0

    def append(self, log: str, marks: Sequence[str | None], values: Sequence[bytes | None]) -> StoredAt:
        here = self.logs[log]
        positions = range(here.next, here.next + len(values) * self.step, self.step)
        stored = [*map(Stored, positions, marks, values)]
        here.records += stored
        here.next = positions.stop
        here.visible = here.visible if self.lags else here.next
        return StoredAt(positions.start, positions[-1] + 1 if values else positions.start)

    def expire(self, records: int) -> None:
        """Of each log the oldest."""
        for log in self.logs.values():
            log.records, log.trimmed = log.records[records:], True

    def recreate(self) -> None:
        self.logs = {name: Log() for name in self.logs}

    def values(self) -> list[bytes | None]:
        return [one.value for log in self.logs.values() for one in log.records]


class MemoryLog(LogSink):
    in_flight_s = 0.0

    def __init__(self, journal: Journal) -> None:
        super().__init__("memory")
        self._journal = journal

    @contextmanager
    def connect(self) -> Iterator[MemoryLog.Connection]:
        yield MemoryLog.Connection(self._journal)

    class Connection:
        def __init__(self, journal: Journal) -> None:
            self._journal = journal

        def logs(self) -> list[str]:
            return list(self._journal.logs)

        def begin(self, log: str) -> int:
            here = self._journal.logs[log]
            oldest = here.records[0].position if here.records else here.next
            return oldest if here.trimmed else 0

        def end(self, log: str) -> int:
            here = self._journal.logs[log]
            here.visible = here.next
            return here.next

        def append(self, log: str, marks: Sequence[str], records: pa.RecordBatch) -> StoredAt:
            values = values_of(records)
            if HATED in values:
                raise RowsRefused("Hated", "A value is hated")
            return self._journal.append(log, marks, values)

        def read(self, log: str, begin: int, end: int) -> LogSlice:
            here = self._journal.logs[log]
            self._journal.reads += 1
            if self._journal.lags and self._journal.reads % 2:
                return LogSlice((), begin)
            behind = min(end, here.visible)
            found = [LogEntry(one.position, one.mark) for one in here.records if begin <= one.position < behind][:_PAGE]
            full = len(found) == _PAGE
            return LogSlice(found, found[-1].position + 1 if full else max(begin, behind))
