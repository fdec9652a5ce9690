"""One range in one log, while the log is scanned: what of the range is there, and what nobody can know any more
(delivery rule 7). Pure, and columnar: a restored ledger may look for millions of records.

The records of a partition are in order within a log. So the first one that is left says whether any of the range can
have been among those that have expired.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, Self, TypeVar

import numpy as np

from connect_core.errors import Failure
from connect_core.sdk.kits.log_marks import Elsewhere, Marks
from connect_core.sdk.records import Lineage
from connect_core.sdk.scan import Numbers, Piece, ScanResult, parted
from connect_core.sdk.values import Floor, OpenRange

OnUnknown = Literal["fail", "redeliver"]
_ROWS_AT_ONCE, _PIECES_AT_ONCE = 65_536, 1_024
_NO_ROWS = np.empty((0, 5), dtype=np.int64)


@dataclass
class RangeSearch:
    """`floor` is the name of the range's floor in this log. `begin` is where its scan continues. `doubtful`: so many
    positions have expired, and nothing has said yet whether a record of the range was among them.
    `settled_before`: what is before the range was settled before the floor was set, so each copy of it that is here is
    a duplicate."""

    item: OpenRange
    floor: str
    lineage: Lineage
    begin: int
    doubtful: int
    settled_before: bool
    late: int = 0
    """Copies of records that were settled before."""
    unclear: int = 0
    """Records that may be of this range: damaged ones, and those of an incarnation that may be the same."""
    later: int | None = None
    """The position of the first record of a later incarnation."""
    out_of_order: bool = False
    """Later records of the range are left, and earlier ones may have expired: to write it again would change its
    order."""
    failure: Failure | None = None
    """Why nobody can say what of the range is there. The scan sets it, where `unknowable` says so."""
    rows: list[Numbers] = field(default_factory=list)
    kept: list[Numbers] = field(default_factory=list)
    further: list[Piece] = field(default_factory=list)

    @classmethod
    def of(cls, item: OpenRange, floor: Floor, uid: str) -> Self:
        """Continues where the last slice of the scan stopped."""
        scanned = item.found.scanned if item.found else {}
        begin = max(floor.position, scanned.get(floor.target, 0))
        doubtful = scanned.get(_doubt(floor.target), 0)
        return cls(item, floor.target, item.range.lineage(uid), begin, doubtful, not floor.ahead)

    def expired(self, oldest: int) -> None:
        """The log begins at `oldest` now."""
        self.missed(self.begin, oldest)

    def missed(self, begin: int, end: int) -> None:
        """Nothing is left in these positions, which are behind all that was taken before."""
        self.doubtful += max(end - max(begin, self.begin), 0)

    def take(self, rows: Numbers) -> None:
        """`rows` are those of `Marks`, behind all that were taken before."""
        rows = rows[np.searchsorted(rows[:, 2], self.begin) :]
        if not len(rows) or self.out_of_order:
            return
        wanted = self.item.range
        if self.doubtful and (int(rows[0, 0]), int(rows[0, 1])) > (wanted.begin, 0):
            self.out_of_order = True
            return
        self.doubtful = 0
        mine = rows[:, 0] >= wanted.begin
        if self.settled_before:
            self.late += int(len(rows) - np.count_nonzero(mine))
        self.rows.append(rows[mine])
        if sum(map(len, self.rows)) >= _ROWS_AT_ONCE or len(self.rows) >= _PIECES_AT_ONCE:
            self._pack()

    def take_elsewhere(self, other: Elsewhere) -> None:
        """One of another incarnation is ahead of this range, unless it may be of it."""
        if other.position < self.begin or (other.same and other.offset < self.item.range.begin):
            return
        if other.same and other.offset < self.item.range.end:
            self.unclear += 1
        elif self.later is None:
            self.later = other.position

    def unknowable(self, *, complete: bool, on_unknown: OnUnknown) -> bool:
        """Whether nobody can say what of the range is there. `complete`: the log was read to its end."""
        return self.out_of_order or bool(self.doubtful and complete and on_unknown == "fail")

    def seen(self) -> Numbers:
        self._pack()
        return np.concatenate(self.kept)

    def possible_duplicates(self, *, complete: bool) -> int:
        """Of a log without a record that tells, as many records of the range as can have expired count."""
        wanted = self.item.range
        return self.unclear + (min(self.doubtful, wanted.end - wanted.begin) if complete else 0)

    def _pack(self) -> None:
        """What is behind the range is packed at once: there may be millions."""
        kept, behind = parted(np.concatenate([_NO_ROWS, *self.rows]), self.item.range.end)
        self.kept.append(kept)
        self.further += [Piece.of(self.floor, behind)] if len(behind) else []
        self.rows = []


class Searched(NamedTuple):
    """What came of one range in one log. The scan `reached` that position; `complete` when that is the log's end."""

    search: RangeSearch
    reached: int
    complete: bool


AnySearch = TypeVar("AnySearch", bound=RangeSearch)
Log = TypeVar("Log", bound=Hashable)


def each_log(
    by_log: Mapping[Log, list[AnySearch]],
    ends: Mapping[Log, int],
    read: Callable[[Log, list[AnySearch], int], int],
    unknowable: Callable[[AnySearch], Failure],
    on_unknown: OnUnknown,
) -> dict[int, list[Searched]]:
    """By range id what came of it in each of its logs. `read` scans a log up to its end for all of its ranges, and
    returns the position reached; `unknowable` is the failure of a range of which nobody can say what is there."""
    searched: dict[int, list[Searched]] = {}
    for log, searches in by_log.items():
        reached = read(log, searches, ends[log])
        for one in searches:
            complete = reached >= ends[log]
            if one.unknowable(complete=complete, on_unknown=on_unknown):
                one.failure = unknowable(one)
            searched.setdefault(one.item.id, []).append(Searched(one, reached, complete))
    return searched


def together(item: OpenRange, searched: Sequence[Searched], spread: tuple[str, ...] = ()) -> ScanResult:
    """What came of one range in all of its logs. `spread` is that of `ScanResult`."""
    if failure := next((one.search.failure for one in searched if one.search.failure), None):
        return ScanResult(failure=failure)
    scanned: dict[str, int] = {}
    for search, reached, complete in searched:
        scanned |= {search.floor: max(reached, search.begin)}
        scanned |= {_doubt(search.floor): 0 if complete else search.doubtful}
    return replace(item.known, spread=spread).joined(
        {one.search.floor: one.search.seen() for one in searched},
        scanned,
        all(one.complete for one in searched),
        further=[piece for one in searched for piece in one.search.further],
        later={one.search.floor: one.search.later for one in searched if one.search.later is not None},
        late=sum(one.search.late for one in searched),
        possible_duplicates=sum(one.search.possible_duplicates(complete=one.complete) for one in searched),
    )


def by_lineage(searches: Sequence[AnySearch]) -> Mapping[Lineage, list[AnySearch]]:
    """Ranges of one partition have the same."""
    found: dict[Lineage, list[AnySearch]] = {}
    for one in searches:
        found.setdefault(one.lineage, []).append(one)
    return found


def give(found: Marks | Elsewhere, searches: Mapping[Lineage, Sequence[AnySearch]]) -> None:
    """Gives what was found to each search of its lineage."""
    for one in searches[found.lineage]:
        if isinstance(found, Marks):
            one.take(found.rows)
        else:
            one.take_elsewhere(found)


def _doubt(floor: str) -> str:
    """The name under which a slice of a scan tells the next one how many positions are doubtful in this log."""
    return f"{floor} doubtful"
