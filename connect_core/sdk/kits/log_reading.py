"""Reads a log, one request after the other. Each request begins with the record that was read last: an answer that
holds another record there comes from another log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from connect_core.errors import OffsetGone, Retriable
from connect_core.sdk.batches import record_batch
from connect_core.sdk.kits.log_answers import Ends, Fetched, Logs, ends_of, fetched_of
from connect_core.sdk.kits.log_positions import SourceMark, evidence_of
from connect_core.sdk.records import Record
from connect_core.sdk.values import Json, Range, SourceBatch

Rows = Sequence[tuple[int, Record]]


class LogChanged(Retriable):
    """The log is not the one that the range was planned for. Nothing of it was delivered; the next plan looks at it."""


class RecordsGone(OffsetGone):
    """Records of the range are not there any more. The next plan sees the gap."""


class LogReader:
    """Reads `wanted` from its begin. `place` is the offset to continue at. Raises RecordsGone and LogChanged."""

    def __init__(self, logs: Logs, wanted: Range) -> None:
        self._logs, self.wanted, self.log = logs, wanted, wanted.partition.key
        self.place = wanted.begin
        self._before = self._last = SourceMark.in_evidence(wanted.evidence)
        """The records that were read last before the newest batch, and with it."""
        self._rows: Rows = ()
        """Those of the newest batch."""
        self._end = -1
        """Where the log ended at the newest look."""

    def look(self) -> Ends:
        """Where the log begins and ends now."""
        ends = ends_of(self._logs, self.log)
        if ends is None or ends.end < self.place:
            raise self._changed()
        if ends.begin > self.place:
            raise self._gone()
        self._end = ends.end
        return ends

    def next(self, end: int, most: int) -> SourceBatch | None:
        """What one request brings before `end`, at most `most` records; None where it brings nothing."""
        fetched = self._fetched(end)
        rows = [(offset, record) for offset, record in fetched.records if offset >= self.place]
        rows, behind = rows[:most], rows[most][0] if len(rows) > most else min(fetched.next, end)
        holes = [*_holes(self.place, rows, behind)]
        if (lost := self._first_lost(holes)) is not None:
            rows, behind = [row for row in rows if row[0] < lost], lost
            holes = [hole for hole in holes if hole[0] < lost]
            if behind == self.place:
                raise self._gone()
        if behind <= self.place:
            return None
        self._before, self._rows, self.place = self._last, rows, behind
        self._last = SourceMark.of(*rows[-1]) if rows else self._last
        return SourceBatch(record_batch([row[1] for row in rows], [row[0] for row in rows]), behind, tuple(holes))

    def nothing(self) -> Retriable:
        """The error of a request that brought nothing though there was something. Raises what `look` raises."""
        self.look()
        return Retriable(
            f"The source gives no record {self.place:,}, and had records up to {self.wanted.end:,} before",
            where=f"partition {self.log}",
            next_step="The next run checks what the source still has",
        )

    def evidence(self, end: int) -> Json:
        """Of a place in the newest batch, or at one of its ends."""
        before = [row for row in self._rows if row[0] < end]
        mark = SourceMark.of(*before[-1]) if before else self._before
        return evidence_of(mark, self.wanted.origin, at_end=end >= self._end)

    def _fetched(self, end: int) -> Fetched:
        begin = min(self._last.offset, self.place) if self._last else self.place
        fetched = fetched_of(self._logs, self.log, begin, end)
        if any(
            SourceMark.of(*row) != self._last for row in fetched.records if self._last and row[0] == self._last.offset
        ):
            raise self._changed()
        if begin < self.place and fetched.next <= self.place:  # a request that brings one record at a time
            return fetched_of(self._logs, self.log, self.place, end)
        return fetched

    def _first_lost(self, holes: Sequence[tuple[int, int]]) -> int | None:
        """Where the first hole begins that is a loss: in a log without holes any; else one whose records have expired
        since the look."""
        if not holes:
            return None
        if not self._logs.sparse:
            return holes[0][0]
        ends = ends_of(self._logs, self.log)
        if ends is None:
            raise self._changed()
        return next((begin for begin, _ in holes if begin < ends.begin), None)

    def _changed(self) -> LogChanged:
        return LogChanged(
            "The log was deleted, truncated or recreated after this range was planned",
            where=f"partition {self.log}, offset {self.place:,}",
            next_step="The next run reports what was lost with the former log",
        )

    def _gone(self) -> RecordsGone:
        return RecordsGone(
            f"Record {self.place:,} can no longer be read",
            where=f"partition {self.log}",
            next_step="Find out what happened to it. With errors.on_data_loss: skip the next run continues after it",
        )


def _holes(begin: int, rows: Rows, behind: int) -> Iterator[tuple[int, int]]:
    """The stretches of offsets without a record."""
    for offset in (*(row[0] for row in rows), behind):
        if offset > begin:
            yield begin, offset
        begin = offset + 1
