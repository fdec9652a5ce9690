"""A sink that writes rows and a marker in one transaction: exactly once.

A marker is kept for each partition in each stream, and each target that the document has named. Every transaction locks
it first, sees that its attempt still owns it, writes rows, and moves it. An attempt that finds what another one has
left takes the marker over before anything is written: from then on a transaction of the other one, wherever it is
stuck, is refused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from connect_core.errors import Failure, TargetChanged, TooManyRejects
from connect_core.sdk.batches import value_lengths
from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.kits import marker as markers
from connect_core.sdk.kits.contract import perform
from connect_core.sdk.kits.identity import identity_of
from connect_core.sdk.kits.marker import Marker
from connect_core.sdk.kits.one_target import OneTarget, settled, spans
from connect_core.sdk.kits.refused import RowsRefused
from connect_core.sdk.kits.refused_runs import MAX_RUNS
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.sink import Lacking, OnRefused, RowsKept, Scan
from connect_core.sdk.values import Attempt, Delivered, Floor, Limit, OpenRange, Position, Range

_LEFT = {"marker": "left"}
"""The evidence of a floor of whose partition a run has left a marker, before there were rows."""
_AT_ONCE = 1_000
"""So many partitions are asked for in one question."""
_LATE = "The target takes this row now, but had refused it in an earlier attempt, and has rows that came after it"


class TransactionConnection(Protocol):
    """The author's way into the target, with one transaction at a time. Each method raises Unreachable when the target
    does not answer. It may be `Identified` (`kits.identity`): then another target of the same name is noticed."""

    def begin(self, name: str) -> str | None:
        """Begins a transaction; returns the marker called `name`, None where there is none. Until the transaction ends
        no other one may get behind `begin` with this name, whether there is a marker or not."""

    def write(self, records: pa.RecordBatch) -> None:
        """Raises RowsRefused when the target can never take one of these rows: the transaction is rolled back then."""

    def commit(self, name: str, marker: str) -> None:
        """Stores the marker and ends the transaction: both, with the rows, or none of them."""

    def rollback(self) -> None:
        """Ends the transaction, if there is one, as though it had not been."""


@runtime_checkable
class Listing(Protocol):
    """A `TransactionConnection` that says what stands under many names at once."""

    def markers(self, names: Sequence[str]) -> Mapping[str, str]:
        """Those that there are, by name, without a lock; none where the place of the markers is gone. Asked outside of
        transactions."""


class TransactionSink(OneTarget, ABC):
    """Guarantee: exactly once, where the target keeps what it has committed.

    The record of a row that the target refuses is rejected (`Refusable`), and the marker says that it is not there. A
    range ends behind it where the marker has no room for more of them (`kits.refused_runs`).
    """

    guarantee = Guarantee("exactly once", ("The target keeps what it has committed.",))
    takes_late = True
    """Whether a row that was refused may be written behind later ones when the target takes it in a later attempt. Not
    where it could replace a newer row: then its record is rejected again."""

    @abstractmethod
    def connect(self) -> AbstractContextManager[TransactionConnection]:
        """Opens the target. Raises Unreachable when it does not answer. Leaving the context rolls back."""

    def lacking(self, uid: str, stream: str, floors: Sequence[Floor]) -> dict[str, Lacking]:
        """See `sdk.sink.Remembering`. A connection that does not list its markers says nothing."""
        mine = [
            floor for floor in floors if floor.target == self.target and (floor.position or floor.evidence == _LEFT)
        ]
        stored, lacking = self._listed(uid, stream, [floor.partition_id for floor in mine]), {}
        for floor in (one for one in mine if one.partition_id in stored):
            marker, where = None, f"partition {floor.partition_id}, stream {stream}"
            try:
                marker = self._one_of(stored[floor.partition_id])
                markers.check_settled(marker, floor.position, where)
                markers.check_left(marker, where)
            except TargetChanged as error:
                lacking[floor.partition_id] = Lacking(Failure.of(error), self.target, _said(marker))
        return lacking

    def kept(self, uid: str, stream: str, partition_ids: Sequence[str]) -> dict[str, RowsKept]:
        found = {}
        for partition_id, texts in self._listed(uid, stream, partition_ids).items():
            with suppress(TargetChanged):  # what cannot be read says nothing
                if kept := _said(self._one_of(texts)):
                    found[partition_id] = kept
        return found

    def remember(self, attempt: Attempt, stream: str, positions: Mapping[str, Position]) -> list[Floor]:
        """A marker that is there is left as it is: the one that has put it there was ended before its ledger knew."""
        floors = []
        with self.connect() as connection:
            for partition_id, position in positions.items():
                name, kept = self._kept(connection, markers.name_of(attempt.uid, stream, partition_id))
                if kept is None:
                    first = markers.first(position, attempt).kept_in(self.target, identity_of(connection))
                    perform(connection.commit, name, first.encode())
                else:
                    connection.rollback()
                ahead = kept is not None and kept.count > 0
                floors.append(Floor(partition_id, self.target, 0, ahead=ahead, evidence=_LEFT))
        return floors

    def _listed(self, uid: str, stream: str, partition_ids: Sequence[str]) -> dict[str, dict[str, str]]:
        """By id of each partition its markers, by their names; of none where the connection does not list them."""
        listed: dict[str, dict[str, str]] = {}
        if not partition_ids:
            return listed
        with self.connect() as connection:
            if not isinstance(connection, Listing):
                return listed
            for begin in range(0, len(partition_ids), _AT_ONCE):
                names = {one: self._names(uid, stream, one) for one in partition_ids[begin : begin + _AT_ONCE]}
                kept = connection.markers([name for both in names.values() for name in both])
                listed |= {one: {name: kept[name] for name in both if name in kept} for one, both in names.items()}
        return listed

    def _names(self, uid: str, stream: str, partition_id: str) -> tuple[str, str]:
        """Of what may be its marker in this target."""
        name = markers.name_of(uid, stream, partition_id)
        return name, markers.name_for(name, self.target)

    def _one_of(self, stored: Mapping[str, str]) -> Marker | None:
        found = [self._decoded(text, name) for name, text in stored.items()]
        return next((one for one in found if one.is_of(self.target)), None)

    def scan(self, wanted: Scan) -> dict[int, ScanResult]:
        """Takes over: what the target holds of each range then is final."""
        with self.connect() as connection:
            return {item.id: self._found(connection, wanted.attempt, item) for item in wanted.ranges}

    @contextmanager
    def writer(self, attempt: Attempt, wanted: OpenRange) -> Iterator[_Writer]:
        with self.connect() as connection:
            name, kept = self._kept_of(connection, attempt.uid, wanted.range)
            here = identity_of(connection)
            markers.check_target(kept, here, wanted.range, self.target)
            begun = markers.begun(kept, wanted, settled(wanted, self.target), attempt)
            begun = begun.kept_in(self.target, here)
            perform(connection.commit, name, begun.encode())
            yield _Writer(connection, name, self, begun, attempt, wanted.range)

    def _found(self, connection: TransactionConnection, attempt: Attempt, item: OpenRange) -> ScanResult:
        wanted, known = item.range, settled(item, self.target)
        name, kept = self._kept_of(connection, attempt.uid, wanted)
        here = identity_of(connection)
        try:
            markers.check_target(kept, here, wanted, self.target)
            markers.check_kept(kept, wanted, known)
        except TargetChanged as error:
            connection.rollback()
            return ScanResult(failure=Failure.of(error))
        mine = markers.taken_over(kept, wanted, attempt).kept_in(self.target, here)
        perform(connection.commit, name, mine.encode())
        return markers.found(kept, item.range, known, self.target)

    def _kept_of(self, connection: TransactionConnection, uid: str, wanted: Range) -> tuple[str, Marker | None]:
        return self._kept(connection, markers.name_of(uid, wanted.stream, wanted.partition.id))

    def _kept(self, connection: TransactionConnection, name: str) -> tuple[str, Marker | None]:
        """The name of the marker and what it says, within a transaction that begins here. What is in another target
        says nothing of this one."""
        marker = self._begun(connection, name)
        if marker is None or marker.is_of(self.target):
            return name, marker
        connection.rollback()
        name = markers.name_for(name, self.target)
        return name, self._begun(connection, name)

    def _begun(self, connection: TransactionConnection, name: str) -> Marker | None:
        text = connection.begin(name)
        return None if text is None else self._decoded(text, name)

    def _decoded(self, text: str, name: str) -> Marker:
        return Marker.decode(text, f"{self.target}, marker {name}")


class _Writer:
    """A `sdk.sink.Writer`, and `Refusable`: a transaction for each batch, and for each part of one that is refused."""

    def __init__(
        self,
        connection: TransactionConnection,
        name: str,
        sink: TransactionSink,
        begun: Marker,
        attempt: Attempt,
        wanted: Range,
    ) -> None:
        self._connection, self._name = connection, name
        self._target, self._takes_late = sink.target, sink.takes_late
        self._begun = self._now = begun
        self._stored = begun.encode()
        self._attempt, self._range = attempt, wanted
        self._bytes = 0
        self._full = False
        """What comes next belongs to the next range: the marker has no room for more stretches of this one, or a
        refused row is not tolerated."""
        self._taken = False
        self.on_refused: OnRefused | None = None

    def write(self, records: pa.RecordBatch, limit: Limit) -> int:
        done, parts = 0, self._parts(records) if limit.quantum_left_s() > 0 else []
        while parts and not self._full:
            part = parts.pop()
            try:
                self._put(part)
            except RowsRefused as refusal:
                self._connection.rollback()
                if halves := _halves(part):
                    parts += reversed(halves)
                    continue
                if not self._refuse(part, refusal):
                    break
            done += len(part)
            self._taken = True
            if limit.quantum_left_s() <= 0:
                break
        return done

    def flush(self, limit: Limit) -> Delivered:
        if self._now.encode() != self._stored:
            self._begin()
            self._commit(self._now)
        before, now = self._begun.count, self._now.count
        return Delivered(
            records=now - before,
            bytes=self._bytes,
            behind={self._target: now},
            where=spans(self._target, before, now),
        )

    def _parts(self, records: pa.RecordBatch) -> list[pa.RecordBatch]:
        """What is tried in one transaction each, the last one first."""
        offsets = records.column("offset").to_numpy()
        if self._takes_late or not len(offsets) or offsets[0] >= self._now.position:
            return [records] if len(offsets) else []
        late = self._now.refused_before(offsets)
        starts = [0, *(np.flatnonzero(late[1:] != late[:-1]) + 1).tolist(), len(offsets)]
        return [records.slice(begin, end - begin) for begin, end in pairwise(starts)][::-1]

    def _put(self, records: pa.RecordBatch) -> None:
        """Writes all of them. Raises RowsRefused where one of them is refused, or would come too late."""
        self._begin()
        perform(self._connection.write, records)
        offsets = records.column("offset").to_numpy()
        if not self._takes_late and self._now.refused_before(offsets[:1]).any():
            raise RowsRefused("RefusedBefore", _LATE)
        self._commit(self._now.written(len(records), int(offsets[0]), int(offsets[-1]) + 1))
        self._bytes += int(value_lengths(records.column("value")).sum())

    def _begin(self) -> None:
        text = self._connection.begin(self._name)
        if text != self._stored:
            marker = None if text is None else Marker.decode(text, self._target)
            markers.check_owner(marker, self._attempt, self._range)

    def _commit(self, after: Marker) -> None:
        """Raises TargetChanged where another target has got the name since this one was opened."""
        here = identity_of(self._connection)
        markers.check_target(self._now, here, self._range, self._target)
        after = after.kept_in(self._target, here)
        text = after.encode()
        perform(self._connection.commit, self._name, text)
        self._keep(after)
        self._stored = text

    def _refuse(self, record: pa.RecordBatch, refusal: RowsRefused) -> bool:
        """The marker says so when the next rows are written, or in the end: until then it does not say that the record
        is there. False where it is not tolerated: the range ends before it, and keeps the dead letters that it has.
        Raises TooManyRejects where there is nothing before it."""
        if self.on_refused is None:
            raise refusal
        for output in range(len(record)):
            try:
                self.on_refused(record.slice(output, 1), refusal.kind, refusal.what)
            except TooManyRejects:
                if output or not self._taken:
                    raise
                self._full = True
                return False
        self._keep(self._now.refusing(int(record.column("offset")[0].as_py()), self._range.begin))
        return True

    def _keep(self, after: Marker) -> None:
        begin = self._range.begin
        more = after.refused_from(begin) > self._now.refused_from(begin)
        self._full |= more and after.refused_from(begin) >= MAX_RUNS
        self._now = after


def _said(marker: Marker | None) -> RowsKept | None:
    return None if marker is None else RowsKept(marker.count, marker.incarnation, marker.position)


def _halves(records: pa.RecordBatch) -> list[pa.RecordBatch]:
    """None of a record alone: its outputs are written together."""
    offsets = records.column("offset").to_numpy()
    if offsets[0] == offsets[-1]:
        return []
    middle = int(offsets.searchsorted(offsets[len(offsets) // 2]))
    middle = middle or int(offsets.searchsorted(offsets[0], side="right"))
    return [records.slice(0, middle), records.slice(middle)]
