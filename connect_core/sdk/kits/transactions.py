"""A sink that writes rows and a marker in one transaction: exactly once.

A marker is kept for each partition in each stream. Every transaction locks it first, sees that its attempt still owns
it, writes rows, and moves it. An attempt that finds what another one has left takes the marker over before anything is
written: from then on a transaction of the other one, wherever it is stuck, is refused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

import pyarrow as pa

from connect_core.errors import DataError, Failure, TargetChanged
from connect_core.sdk.batches import value_lengths, whole_records
from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.kits import marker as markers
from connect_core.sdk.kits.contract import perform
from connect_core.sdk.kits.marker import Marker
from connect_core.sdk.kits.one_target import OneTarget, settled, spans
from connect_core.sdk.kits.refused import RowsRefused
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.sink import OnRefused, Scan
from connect_core.sdk.values import Attempt, Delivered, Limit, OpenRange, Range


class TransactionConnection(Protocol):
    """The author's way into the target, with one transaction at a time. Each method raises Unreachable when the target
    does not answer."""

    def begin(self, name: str) -> str | None:
        """Begins a transaction; returns the marker called `name`, None where there is none. Until the transaction ends
        no other one may get behind `begin` with this name, whether there is a marker or not."""

    def write(self, records: pa.RecordBatch) -> None:
        """Raises RowsRefused when the target can never take one of these rows: the transaction is rolled back then."""

    def commit(self, name: str, marker: str) -> None:
        """Stores the marker and ends the transaction: both, with the rows, or none of them."""

    def rollback(self) -> None:
        """Ends the transaction, if there is one, as though it had not been."""


class TransactionSink(OneTarget, ABC):
    """Guarantee: exactly once, where the target keeps what it has committed.

    A row that the target refuses ends the range behind it: its record is rejected (`Refusable`).
    """

    guarantee = Guarantee("exactly once", ("The target keeps what it has committed.",))

    @abstractmethod
    def connect(self) -> AbstractContextManager[TransactionConnection]:
        """Opens the target. Raises Unreachable when it does not answer. Leaving the context rolls back."""

    def scan(self, wanted: Scan) -> dict[int, ScanResult]:
        """Takes over: what the target holds of each range then is final."""
        with self.connect() as connection:
            return {item.id: self._found(connection, wanted.attempt, item) for item in wanted.ranges}

    @contextmanager
    def writer(self, attempt: Attempt, wanted: OpenRange) -> Iterator[_Writer]:
        with self.connect() as connection:
            name = markers.name_of(attempt.uid, wanted.range.stream, wanted.range.partition)
            kept = self._kept(connection, name)
            begun = markers.begun(kept, wanted, settled(wanted, self.target), attempt)
            perform(connection.commit, name, begun.encode())
            yield _Writer(connection, name, self.target, begun, attempt, wanted.range)

    def _found(self, connection: TransactionConnection, attempt: Attempt, item: OpenRange) -> ScanResult:
        wanted, known = item.range, settled(item, self.target)
        name = markers.name_of(attempt.uid, wanted.stream, wanted.partition)
        kept = self._kept(connection, name)
        try:
            markers.check_kept(kept, wanted, known)
        except TargetChanged as error:
            connection.rollback()
            return ScanResult(failure=Failure.of(error))
        perform(connection.commit, name, markers.taken_over(kept, wanted, attempt).encode())
        return markers.found(kept, item.range, known, self.target)

    def _kept(self, connection: TransactionConnection, name: str) -> Marker | None:
        """Within a transaction that begins here."""
        text = connection.begin(name)
        return None if text is None else Marker.decode(text, f"{self.target}, marker {name}")


class _Writer:
    """A `sdk.sink.Writer`, and `Refusable`: a transaction for each batch."""

    def __init__(
        self, connection: TransactionConnection, name: str, target: str, begun: Marker, attempt: Attempt, wanted: Range
    ) -> None:
        self._connection, self._name, self._target = connection, name, target
        self._begun = self._now = begun
        self._attempt, self._range = attempt, wanted
        self._bytes = 0
        self._refused = False
        """Whether the target has refused a row: what comes behind its record belongs to the next range, because a
        marker cannot say that a record before it is missing."""
        self.on_refused: OnRefused | None = None

    def write(self, records: pa.RecordBatch, limit: Limit) -> int:
        if self._refused or limit.quantum_left_s() <= 0:
            return 0
        try:
            self._commit(records)
            return len(records)
        except RowsRefused:
            self._connection.rollback()
        return self._write_before_refused(records)

    def flush(self, limit: Limit) -> Delivered:
        before, now = self._begun.count, self._now.count
        return Delivered(
            records=now - before,
            bytes=self._bytes,
            behind={self._target: now},
            where=spans(self._target, before, now),
        )

    def _commit(self, records: pa.RecordBatch) -> None:
        self._begin()
        if len(records):
            perform(self._connection.write, records)
        last = int(records.column("offset")[-1].as_py()) + 1 if len(records) else self._now.position
        after = self._now.advanced(len(records), last)
        perform(self._connection.commit, self._name, after.encode())
        self._now = after
        self._bytes += int(value_lengths(records.column("value")).sum())

    def _begin(self) -> None:
        text = self._connection.begin(self._name)
        markers.check_owner(None if text is None else Marker.decode(text, self._target), self._attempt, self._range)

    def _write_before_refused(self, records: pa.RecordBatch) -> int:
        """Writes what stands before the first record with a row that is refused; returns how many rows are done with,
        that record included."""
        row, refusal = self._first_refused(records)
        offsets = records.column("offset").to_numpy()
        first, behind = int(offsets.searchsorted(offsets[row])), whole_records(offsets, row + 1)
        if first:
            self._commit(records.slice(0, first))
        if self.on_refused is None:
            raise refusal
        for one in range(first, behind):
            self.on_refused(records.slice(one, 1), refusal.kind, refusal.what)
        self._refused = True
        return behind

    def _first_refused(self, records: pa.RecordBatch) -> tuple[int, RowsRefused]:
        """By halves: of the rows before `low` none is refused, of those before `high` one is."""
        low, high, refusal = 0, len(records), None
        while refusal is None or high - low > 1:
            middle = (low + high) // 2 if refusal else high
            if found := self._refusal(records.slice(0, middle)):
                high, refusal = middle, found
            elif refusal is None:
                raise DataError(
                    "The target has refused rows, and takes them when they are written again",
                    where=self._target,
                    next_step="Try again; if it happens again, look at what else writes there",
                )
            else:
                low = middle
        return high - 1, refusal

    def _refusal(self, records: pa.RecordBatch) -> RowsRefused | None:
        """What the target says to these rows. They are not kept."""
        self._begin()
        try:
            perform(self._connection.write, records)
        except RowsRefused as refusal:
            return refusal
        finally:
            self._connection.rollback()
        return None
