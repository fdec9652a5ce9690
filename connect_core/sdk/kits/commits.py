"""A sink whose rows become visible by a commit: files are staged, and one commit of the target shows them all. Exactly
once.

Each commit carries the marker of its partition (`kits.marker`). It is made directly behind a known commit of the
target, and only while the partition's marker is the one that this attempt has seen: so a commit that is repeated
changes nothing, and one of an attempt that was taken over is refused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from typing import NamedTuple, Protocol

import pyarrow as pa

from connect_core import clock
from connect_core.errors import Failure, Fenced, Retriable, TargetChanged, Unreachable
from connect_core.sdk.batches import value_lengths, whole_records
from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.kits import marker as markers
from connect_core.sdk.kits.contract import method_of, must_be_json, perform
from connect_core.sdk.kits.marker import Marker
from connect_core.sdk.kits.one_target import OneTarget, settled, spans
from connect_core.sdk.kits.refused import RowsRefused
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.sink import OnRefused, Scan
from connect_core.sdk.values import Attempt, Delivered, Json, Limit, OpenRange

_MARGIN_S = 1.0
"""No commit begins later than this before the deadline."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 1.0
"""Between two tries of a commit that others came before."""


class CommitConflict(Retriable):
    """Another commit came first: nothing of this one was done."""


class Last(NamedTuple):
    """The newest commit of the target, whoever made it ("" where there is none), and the marker of the newest one that
    was made under a name; None where none was."""

    commit: str
    marker: str | None


class CommitConnection(Protocol):
    """The author's way into the target. Each method raises Unreachable when the target does not answer."""

    def stage(self, records: pa.RecordBatch) -> Json:
        """Stores rows, for good, where nobody sees them; returns what `commit` needs to show them. Raises RowsRefused
        when the target can never take one of them."""

    def last(self, name: str) -> Last:
        """Reads the target as it is now. A marker is kept as long as the target, also when the target forgets its old
        commits."""

    def commit(self, staged: Sequence[Json], name: str, marker: str, behind: str) -> None:
        """Makes one commit that shows everything `staged` and keeps the marker under `name`: all of it or nothing.
        There may be nothing to show. Raises CommitConflict when the newest commit is not `behind`."""


class CommitSink(OneTarget, ABC):
    """Guarantee: exactly once, where the target keeps what it has committed and checks what a commit is made behind.

    A row that the target refuses ends the range behind it: its record is rejected (`Refusable`). Nobody deletes what
    was staged and never committed: a commit that is still under way may name it. The target's own maintenance does.
    """

    guarantee = Guarantee(
        "exactly once",
        ("The target keeps what it has committed, and refuses a commit that is not behind the newest one.",),
    )

    @abstractmethod
    def connect(self) -> AbstractContextManager[CommitConnection]:
        """Opens the target. Raises Unreachable when it does not answer."""

    def scan(self, wanted: Scan) -> dict[int, ScanResult]:
        """Takes over: what the target holds of each range then is final."""
        with self.connect() as connection:
            return {item.id: self._found(connection, wanted, item) for item in wanted.ranges}

    @contextmanager
    def writer(self, attempt: Attempt, wanted: OpenRange) -> Iterator[_Writer]:
        with self.connect() as connection:
            name = markers.name_of(attempt.uid, wanted.range.stream, wanted.range.partition.id)
            last = connection.last(name)
            begun = markers.begun(self._decoded(last, name), wanted, settled(wanted, self.target), attempt)
            yield _Writer(connection, self.target, _Fence(connection, self.target, name, last.marker), begun)

    def _found(self, connection: CommitConnection, wanted: Scan, item: OpenRange) -> ScanResult:
        """The marker is taken over by a commit that shows nothing. When another attempt commits meanwhile, this scan
        fails, and the next one sees what that has done."""
        known = settled(item, self.target)
        name = markers.name_of(wanted.attempt.uid, item.range.stream, item.range.partition.id)
        last = connection.last(name)
        kept = self._decoded(last, name)
        try:
            markers.check_kept(kept, item.range, known)
        except TargetChanged as error:
            return ScanResult(failure=Failure.of(error))
        mine = markers.taken_over(kept, item.range, wanted.attempt).encode()
        _Fence(connection, self.target, name, last.marker).commit((), mine, clock.monotonic() + wanted.limit_s)
        return markers.found(kept, item.range, known, self.target)

    def _decoded(self, last: Last, name: str) -> Marker | None:
        return None if last.marker is None else Marker.decode(last.marker, f"{self.target}, marker {name}")


class _Fence:
    """Commits under one name, and only while the marker there is `seen`."""

    def __init__(self, connection: CommitConnection, target: str, name: str, seen: str | None) -> None:
        self._connection, self._target, self._name, self._seen = connection, target, name, seen

    def commit(self, staged: Sequence[Json], marker: str, deadline: float) -> None:
        """Returns when the commit is in the target, once. Raises Fenced when another attempt has moved the marker, and
        Retriable when others came first until the deadline, a moment of `clock.monotonic`."""
        pause_s, unknown = _FIRST_PAUSE_S, False
        while True:
            last = self._connection.last(self._name)
            if last.marker == marker:  # of a try before, whose answer was lost
                break
            if last.marker != self._seen:
                raise Fenced(
                    "Another attempt has taken over in the target",
                    where=f"{self._target}, {self._name}",
                    next_step="Nothing more is written here; the newer attempt continues",
                )
            if clock.monotonic() >= deadline:
                raise Retriable(
                    "Other commits came first until no time was left",
                    where=self._target,
                    next_step="The next attempt checks the target and tries again; give this target fewer writers",
                )
            try:
                perform(self._connection.commit, staged, self._name, marker, last.commit)
                break
            except CommitConflict:
                clock.sleep(pause_s)
                pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
            except Unreachable:
                if unknown:
                    raise
                unknown = True
        self._seen = marker


class _Writer:
    """A `sdk.sink.Writer`, and `Refusable`: a commit for each flush."""

    def __init__(self, connection: CommitConnection, target: str, fence: _Fence, begun: Marker) -> None:
        self._connection, self._target, self._fence = connection, target, fence
        self._begun = self._committed = self._now = begun
        self._staged: list[Json] = []
        self._bytes = 0
        self._refused = False
        """Whether the target has refused a row: what comes behind its record belongs to the next range, because a
        marker cannot say that a record before it is missing."""
        self.on_refused: OnRefused | None = None

    def write(self, records: pa.RecordBatch, limit: Limit) -> int:
        return 0 if self._refused or limit.quantum_left_s() <= 0 else self._stage(records)

    def flush(self, limit: Limit) -> Delivered:
        if self._now != self._committed:
            left_s = limit.left_s() - _MARGIN_S
            self._fence.commit(self._staged, self._now.encode(), clock.monotonic() + left_s)
            self._committed, self._staged = self._now, []
        before, now = self._begun.count, self._committed.count
        return Delivered(
            records=now - before,
            bytes=self._bytes,
            behind={self._target: now},
            where=spans(self._target, before, now),
        )

    def _stage(self, records: pa.RecordBatch) -> int:
        """How many rows are done with: all, or those up to a record that was refused, this included."""
        if not len(records):
            return 0
        try:
            staged = self._connection.stage(records)
        except RowsRefused as refusal:
            return self._stage_before_refused(records, refusal)
        must_be_json(staged, f"The answer of {method_of(self._connection, 'stage')}")
        self._staged.append(deepcopy(staged))  # an author may fill the same one again
        self._now = self._now.advanced(len(records), int(records.column("offset")[-1].as_py()) + 1)
        self._bytes += int(value_lengths(records.column("value")).sum())
        return len(records)

    def _stage_before_refused(self, records: pa.RecordBatch, refusal: RowsRefused) -> int:
        """By halves, in order."""
        offsets = records.column("offset").to_numpy()
        half = whole_records(offsets, len(records) // 2)
        if half in (0, len(records)):
            half = int(offsets.searchsorted(offsets[-1]))
        if not half:  # the outputs of one record
            self._refuse(records, refusal)
            return len(records)
        done = self._stage(records.slice(0, half))
        return done if self._refused else done + self._stage(records.slice(half))

    def _refuse(self, record: pa.RecordBatch, refusal: RowsRefused) -> None:
        if self.on_refused is None:
            raise refusal
        for row in range(len(record)):
            self.on_refused(record.slice(row, 1), refusal.kind, refusal.what)
        self._refused = True
