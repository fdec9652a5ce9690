"""What a `LogSink` promises beyond the contract of every sink: inherit it, with a `LogSinkCase` as `target`.

A request of an attempt that has died, and others that write to the log, are played by appending through a connection
of the sink.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

import pytest

from connect_core.errors import Retriable, TargetChanged, Unreachable
from connect_core.sdk.kits.log_connection import LogEntry, StoredAt, slices
from connect_core.sdk.kits.log_marks import marks
from connect_core.sdk.kits.log_sink import LogSink
from connect_core.sdk.records import Lineage
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.sink import Scan, Writer
from connect_core.sdk.testing.differences import difference
from connect_core.sdk.testing.driving import attempt, limit, range_of, records
from connect_core.sdk.testing.kits import ROWS, ChangedCase, RefusingContract
from connect_core.sdk.testing.sink_content import ContentCase
from connect_core.sdk.testing.sinks import PARTITION, SettledState, in_order, numbers
from connect_core.sdk.values import LIVE, Bounds, OpenRange


class LogSinkCase(ContentCase, Protocol):
    """A target with one log. `SimpleCase` skips what needs a method that a case does not have."""

    def expire(self, records: int) -> None:
        """The oldest so many records of the log expire."""

    def recreate(self) -> None:
        """The log is deleted and made anew, empty."""


OTHERS = b"of others"


def tearing(connection: Any) -> Any:
    """For a `ChangedCase`: stores only the first half of each batch, and gives no answer."""
    append = connection.append

    def torn(log: str, each: Sequence[str], batch: Any) -> StoredAt:
        append(log, each[: len(each) // 2], batch.slice(0, len(each) // 2))
        raise Unreachable("The answer was lost")

    connection.append = torn
    return connection


class LogSinkContract(RefusingContract):
    calls = 16

    def test_a_batch_that_was_stored_in_part_is_completed(self, target: LogSinkCase) -> None:
        ledger = SettledState(target)
        ledger.attempt(5, settle_at=5)
        ledger.system = ChangedCase(target, tearing)
        for _ in range(3):
            with suppress(Unreachable):
                ledger.attempt(ROWS, settle_at=None)
        ledger.system = target
        ledger.attempt(ROWS, settle_at=ROWS)
        assert target.content() == numbers(ROWS)

    def test_what_is_read_is_each_record_once_in_order_with_its_mark(self, target: LogSinkCase) -> None:
        lineage = Lineage(uuid.uuid4().hex[:12], LIVE, PARTITION.id, 12, "0123456789abcdef")
        batches = [records(list(numbers(900)), 10**12 + first) for first in range(0, 2_700, 900)]
        given = [mark for batch in batches for mark in marks(lineage, batch)]
        sink: Any = target.sink()
        sink.prepare()
        with sink.connect() as connection:
            (log, *_) = connection.logs()
            begin = connection.end(log)
            places = [connection.append(log, marks(lineage, batch), batch) for batch in batches]
            read = self._read(connection, log, begin, connection.end(log))
            assert not difference([entry.mark for entry in read], given)
            at = [entry.position for entry in read]
            assert not difference(at, sorted(set(at)))
            assert begin <= at[0]
            for place, first in zip(places, range(0, 2_700, 900), strict=True):
                assert place.first == at[first]
                assert place.behind > at[first + 899]
            assert not difference(self._read(connection, log, at[1_000], at[2_600]), read[1_000:2_600])

    def test_nothing_follows_a_batch_whose_outcome_is_unknown(self, target: LogSinkCase) -> None:
        ledger = SettledState(target)
        torn, wanted = ChangedCase(target, tearing).sink(), ledger.planned(target.sink(), ROWS)
        with torn.writer(attempt(1, ledger.uid), wanted) as writer:
            with pytest.raises(Unreachable):
                writer.write(records(list(numbers(10))), limit())
            with pytest.raises(Retriable):
                writer.write(records(list(numbers(10)), 10), limit())
            with pytest.raises(Retriable):
                writer.flush(limit())
        assert target.content() == numbers(5)

    def test_no_batch_is_sent_so_late_that_nobody_learns_of_it(self, target: LogSinkCase) -> None:
        ledger = SettledState(target)
        sink = target.sink()
        assert isinstance(sink, LogSink)
        with sink.writer(attempt(1, ledger.uid), ledger.planned(sink, ROWS)) as writer, pytest.raises(Retriable):
            writer.write(records(list(numbers(10))), limit(deadline_s=sink.append_s))
        assert target.count() == 0

    def test_a_late_request_between_two_batches_is_a_duplicate(self, target: LogSinkCase) -> None:
        ledger = SettledState(target)
        with target.sink().writer(attempt(1, ledger.uid), ledger.planned(target.sink(), ROWS)) as writer:
            self._write(writer, 0, 10)
            self._arrives_late(target, ledger, 8, 10)
            self._write(writer, 10, ROWS)
            assert writer.flush(limit()).duplicates == 2

    def test_a_late_request_behind_what_was_settled_is_a_duplicate(self, target: LogSinkCase) -> None:
        ledger = SettledState(target)
        ledger.attempt(10, settle_at=10)
        self._arrives_late(target, ledger, 7, 10)
        with target.sink().writer(attempt(2, ledger.uid), ledger.planned(target.sink(), ROWS)) as writer:
            self._write(writer, 10, ROWS)
            assert writer.flush(limit()).duplicates == 3

    def test_a_copy_that_a_scan_sees_is_a_duplicate(self, target: LogSinkCase) -> None:
        ledger = SettledState(target)
        ledger.attempt(10, settle_at=10)
        ledger.attempt(20, settle_at=None)
        self._arrives_late(target, ledger, 8, 12)
        assert ledger.open
        found = self._scanned(target, ledger.open, ledger)
        assert (found.count_below(20), found.duplicates(20)) == (10, 4)

    def test_what_others_write_changes_nothing(self, target: LogSinkCase) -> None:
        first, second = SettledState(target), SettledState(target)
        for end in (10, 30):
            self._others_write(target, 3)
            first.attempt(end, settle_at=None)
            second.attempt(end, settle_at=None)
            first.attempt(end, settle_at=end)
            second.attempt(end, settle_at=end)
        mine = [value for value in target.content() if value != OTHERS]
        assert in_order(mine) == in_order(numbers(30) * 2)

    def test_what_others_write_within_a_range_is_no_duplicate(self, target: LogSinkCase) -> None:
        ledger = SettledState(target)
        self._others_write(target, 3)
        with target.sink().writer(attempt(1, ledger.uid), ledger.planned(target.sink(), ROWS)) as writer:
            for begin in range(0, ROWS, 10):
                self._others_write(target, 3)
                self._write(writer, begin, begin + 10)
            assert writer.flush(limit()).duplicates == 0

    def test_records_that_expired_unseen_stop_the_partition(self, target: LogSinkCase) -> None:
        ledger = SettledState(target)
        ledger.attempt(10, settle_at=10)
        ledger.attempt(30, settle_at=None)
        assert ledger.open
        target.expire(10)
        assert self._scanned(target, ledger.open, ledger).count_below(30) == 20
        for more in (5, 15):
            target.expire(more)
            failure = self._scanned(target, ledger.open, ledger).failure
            assert failure
            assert failure.family == TargetChanged.__name__

    def test_what_may_have_expired_is_delivered_again_where_that_is_wanted(self, target: LogSinkCase) -> None:
        ledger = SettledState(target)
        ledger.attempt(10, settle_at=10)
        ledger.attempt(30, settle_at=None)
        assert ledger.open
        target.expire(30)
        found = self._scanned(target, ledger.open, ledger, on_unknown="redeliver")
        assert (found.failure, found.there(), found.possible_duplicates) == (None, 0, 20)

    def test_a_floor_that_would_expire_is_moved(self, target: LogSinkCase) -> None:
        """A log that got nothing of the partition for long is no reason to stop it, also when an attempt dies before it
        has written anything."""
        ledger = SettledState(target)
        ledger.attempt(10, settle_at=10)
        self._others_write(target, 30)
        target.expire(20)
        ledger.planned(target.sink(), 20)
        ledger.attempt(20, settle_at=20)
        assert [value for value in target.content() if value != OTHERS] == numbers(20)[10:]

    def test_a_log_that_was_made_anew_stops_the_partition(self, target: LogSinkCase) -> None:
        ledger = SettledState(target)
        ledger.attempt(10, settle_at=10)
        target.recreate()
        self._stops(target, ledger)
        self._others_write(target, 20)
        self._stops(target, ledger)

    def test_a_log_that_is_made_anew_within_a_range_ends_it(self, target: LogSinkCase) -> None:
        ledger = SettledState(target)
        with target.sink().writer(attempt(1, ledger.uid), ledger.planned(target.sink(), ROWS)) as writer:
            self._write(writer, 0, 10)
            target.recreate()
            self._others_write(target, 20)
            with pytest.raises(TargetChanged):
                writer.flush(limit())

    def test_what_a_restored_ledger_has_forgotten_is_looked_for(self, target: LogSinkCase) -> None:
        ledger = SettledState(target)
        ledger.attempt(30, settle_at=30)
        sink = target.sink()
        wanted = range_of(PARTITION, Bounds(0, 0, 0, ROWS), pins=sink.targets(0, (), {}).pins)
        floors = sink.floors(wanted, (), restored=True)
        assert [floor.ahead for floor in floors] == [True]
        assert self._scanned(target, OpenRange(1, wanted, floors), ledger).count_below(ROWS) == 30

    def _read(self, connection: Any, log: str, begin: int, end: int) -> list[LogEntry]:
        parts = slices(connection, log, begin, end, time.monotonic() + 20)
        return [entry for part in parts for entry in part.entries]

    def _write(self, writer: Writer, begin: int, end: int) -> None:
        values: Sequence[bytes | None] = [b"%d" % number for number in range(begin, end)]
        assert writer.write(records(list(values), begin), limit()) == end - begin

    def _arrives_late(self, target: LogSinkCase, ledger: SettledState, begin: int, end: int) -> None:
        batch = records([b"%d" % number for number in range(begin, end)], begin)
        lineage = Lineage(ledger.uid, LIVE, PARTITION.id, 0)
        self._append(target, marks(lineage, batch), batch)

    def _others_write(self, target: LogSinkCase, count: int) -> None:
        batch = records([OTHERS] * count)
        self._append(target, marks(Lineage("others", LIVE, PARTITION.id, 0), batch), batch)

    def _append(self, target: LogSinkCase, each: Sequence[str], batch: Any) -> None:
        sink: Any = target.sink()
        sink.prepare()
        with sink.connect() as connection:
            connection.append(connection.logs()[0], each, batch)

    def _scanned(self, target: LogSinkCase, item: OpenRange, ledger: SettledState, **options: Any) -> ScanResult:
        sink = target.sink()
        for name, value in options.items():
            setattr(sink, name, value)
        return sink.scan(Scan(attempt(ledger.epoch + 1, ledger.uid), (item,), 10.0))[item.id]

    def _stops(self, target: LogSinkCase, ledger: SettledState) -> None:
        floors = list(ledger.floors.values())
        with pytest.raises(TargetChanged):
            target.sink().targets(0, floors, {})
        with pytest.raises(TargetChanged), target.sink().writer(attempt(9, ledger.uid), self._item(target, floors)):
            pass

    def _item(self, target: LogSinkCase, floors: Sequence[Any]) -> OpenRange:
        wanted = range_of(PARTITION, Bounds(0, 10, 0, ROWS), pins=target.sink().targets(0, (), {}).pins)
        return OpenRange(1, wanted, tuple(floors))
