"""A source of logs with offsets of their own: topics of a log server, streams with a counter, append-only tables.

A position is an offset of the log. What it is recognised by, and every way to lose records: `log_positions`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from connect_core import clock
from connect_core.errors import ConfigError, WaybillError
from connect_core.sdk.batches import value_lengths
from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.kits.log_answers import Ends, Fetched, ends_of
from connect_core.sdk.kits.log_positions import bounds_of
from connect_core.sdk.kits.log_reading import LogChanged, LogReader, RecordsGone
from connect_core.sdk.kits.one_partition import failure_of_one
from connect_core.sdk.records import Partition
from connect_core.sdk.source import Followed
from connect_core.sdk.values import STOPPED_WITHIN_S, Bounds, Json, Limit, Position, Range, SourceBatch

__all__ = ["Ends", "Fetched", "LogSource"]

_MOST = 10_000
"""Records of one batch, where nothing else bounds it."""


class LogSource(ABC):
    """A partition is a log. The author writes `logs`, `ends` and `fetch`; the others have defaults.

    Guarantee: exactly once where an offset holds the same record each time, as long as it is the same log. A log that
    was cut or made anew is recognised by the record just before the position, or by its name (`Ends.name`). Where that
    record has expired and there is no name, it is not recognised.
    """

    guarantee = Guarantee(
        "exactly once",
        (
            "An offset holds the same record each time, as long as it is the same log.",
            "A log that is deleted and created again has another name, or still has the last record that was read.",
        ),
        order="each log",
    )
    sparse = False
    """Whether offsets may hold no record though nothing was lost, as in a compacted log. They are counted as absent.
    Otherwise such an offset is a gap."""
    first_offset = 0
    """The offset of the first record of a new log. Where a log is made anew, records from here on are gone if it begins
    later."""
    every_s = 1.0
    """The pause between two looks at logs in which nothing comes."""

    def __init__(self) -> None:
        self._readers: dict[Partition, LogReader] = {}
        """The newest reader of each partition."""

    @abstractmethod
    def logs(self, known: Sequence[str]) -> Sequence[str]:
        """The logs that the document names now. Of `known`, which were read before, also those that it still names and
        that are not there at the moment: a log that is left out is retired."""

    @abstractmethod
    def ends(self, log: str) -> Ends | None:
        """Where the log begins and ends now; None where it is not there. Of one log neither end ever goes back."""

    @abstractmethod
    def fetch(self, log: str, begin: int, end: int) -> Fetched:
        """What one request brings of [begin, end), from the first record that is still there. No record, and `begin` as
        the next offset, where there is none. Reads a log that is deleted as one that is empty."""

    def position_at(self, log: str, moment: datetime) -> int:
        """The first offset stored at or after that moment; the end where there is none yet."""
        raise ConfigError(
            "This source does not know when its records were stored", next_step="Name offsets instead of a time"
        )

    def wait_for(self, ends: Mapping[str, int], limit_s: float) -> None:
        """Returns as soon as one of these logs may end elsewhere, at the latest after `limit_s`."""
        until = clock.monotonic() + limit_s
        while (left_s := until - clock.monotonic()) > 0:
            clock.sleep(min(self.every_s, left_s))
            if any(self._moved(log, end) for log, end in ends.items()):
                return

    def commit(self, log: str, offset: int) -> None:
        """Shows the server what is settled, for its lag tools. Where it has a higher offset already, that stays."""
        return

    # ---------------------------------------------------------------------------------------------- `sdk.source.Source`

    def partitions(self, known: Sequence[Partition]) -> list[Partition]:
        """A log that was never read is a partition as soon as it is there."""
        before = [partition.key for partition in known]
        return [Partition(log) for log in self.logs(before) if log in before or ends_of(self, log) is not None]

    def topic(self, partition: Partition) -> str:
        return ""

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        return {partition: self._bounds(partition, at) for partition, at in known.items()}

    def _bounds(self, partition: Partition, at: Position | None) -> Bounds:
        try:
            return bounds_of(self, partition.key, at)
        except WaybillError as error:
            return Bounds.unread(at, failure_of_one(error))

    def offsets_for_time(self, partitions: Sequence[Partition], moment: datetime) -> dict[Partition, int]:
        return {partition: self.position_at(partition.key, moment) for partition in partitions}

    def align_offset(self, partition: Partition, seen: Bounds, offset: int) -> int:
        return offset

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        reader = self._readers[wanted.partition] = LogReader(self, wanted)
        left, left_bytes = wanted.max_records, wanted.max_bytes
        if reader.place < wanted.end:
            reader.look()
        while reader.place < wanted.end and left > 0 and left_bytes > 0 and limit.quantum_left_s() > 0:
            batch = reader.next(wanted.end, min(left, _MOST))
            if batch is None:
                raise reader.nothing()
            yield batch
            left -= len(batch.records)
            left_bytes -= int(value_lengths(batch.records.column("value")).sum())

    def wait(self, seen: Mapping[Partition, Bounds], limit_s: float) -> None:
        self.wait_for({partition.key: one.end for partition, one in seen.items() if one.grows}, limit_s)

    def follow(self, wanted: Sequence[Range], limit: Limit, idle_timeout_s: float) -> Iterator[Followed]:
        """Ends as well when records of one log are gone, or the log is another one: the next plan looks at it."""
        readers = {one.partition: LogReader(self, one) for one in wanted}
        self._readers |= readers
        came_at = clock.monotonic()
        while readers and limit.quantum_left_s() > 0:
            something = False
            for partition, reader in [*readers.items()]:
                try:
                    batch = _newest(reader)
                except (RecordsGone, LogChanged):
                    return
                except WaybillError as error:
                    del readers[partition]
                    yield reader.wanted, failure_of_one(error)
                    continue
                if batch is not None:
                    something, came_at = True, clock.monotonic()
                    yield reader.wanted, batch
            left_s = min(idle_timeout_s - (clock.monotonic() - came_at), limit.quantum_left_s())
            if something:
                continue
            if left_s <= 0 or not readers:
                return
            self.wait_for({reader.log: reader.place for reader in readers.values()}, min(left_s, STOPPED_WITHIN_S))

    def evidence(self, wanted: Range, end: int) -> Json:
        reader = self._readers.get(wanted.partition)
        return wanted.evidence if reader is None or end == wanted.begin else reader.evidence(end)

    def commit_offsets(self, positions: Mapping[Partition, Position]) -> None:
        for partition, at in positions.items():
            self.commit(partition.key, at.offset)

    def _moved(self, log: str, end: int) -> bool:
        """Whether the log ends elsewhere now; also where nobody can say."""
        try:
            ends = ends_of(self, log)
        except WaybillError:
            return True
        return ends is None or ends.end != end


def _newest(reader: LogReader) -> SourceBatch | None:
    end = reader.look().end
    return reader.next(end, _MOST) if end > reader.place else None
