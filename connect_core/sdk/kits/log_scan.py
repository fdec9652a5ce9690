"""Looks for records of ours in logs: one forward scan of each log for all ranges at once (delivery rule 7).

A scan begins at the lowest floor of its ranges, or where the last slice of the scan stopped, and ends at the end that
the log had when the scan began. What has expired in between nobody can see. The records of a partition stand in order,
so the first one that is left decides whether any of the range can have been among them. Where none is left,
`on_unknown` says whether the range is delivered again; its records count as possible duplicates then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from connect_core import clock
from connect_core.errors import Failure, Retriable, TargetChanged
from connect_core.sdk.kits.log_connection import Connection, slices
from connect_core.sdk.kits.log_marks import Damaged, Elsewhere, Mark, Recogniser
from connect_core.sdk.kits.log_standing import anchors, check
from connect_core.sdk.records import Lineage
from connect_core.sdk.scan import Numbers, Piece, ScanResult, parted
from connect_core.sdk.sink import Scan
from connect_core.sdk.values import OpenRange

OnUnknown = Literal["fail", "redeliver"]
_ROWS_AT_ONCE = 65_536
_NO_ROWS = np.empty((0, 5), dtype=np.int64)


class Sought(NamedTuple):
    """A range in one log; `floor` is the name of its floor there."""

    item: OpenRange
    log: str
    floor: str


@dataclass
class _Search:
    """What becomes of a range in one log. `begin` is where its scan continues. `doubtful`: so many positions behind it
    have expired, and nothing has said yet whether a record of the range was among them. `settled_before`: what is
    before the range was settled before the floor was set, so each copy of it that is here is a duplicate."""

    sought: Sought
    lineage: Lineage
    begin: int
    doubtful: int
    settled_before: bool
    late: int = 0
    unclear: int = 0
    """Records that may be of this range: damaged ones, and those of an incarnation that may be the same."""
    later: int | None = None
    """The position of the first record of a later incarnation."""
    failure: Failure | None = None
    rows: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    kept: list[Numbers] = field(default_factory=list)
    further: list[Piece] = field(default_factory=list)

    def take(self, found: Mark | Elsewhere | Damaged) -> None:
        if found.position < self.begin or self.failure:
            return
        if isinstance(found, Mark):
            self._take_mark(found)
        elif isinstance(found, Elsewhere):
            self._take_elsewhere(found)
        else:
            self.unclear += 1

    def _take_mark(self, mark: Mark) -> None:
        begin = self.sought.item.range.begin
        if self.doubtful and (mark.offset, mark.ordinal) > (begin, 0):
            self.failure = _unknowable(self.sought)
            return
        self.doubtful = 0
        if mark.offset < begin:
            self.late += self.settled_before
            return
        self.rows.append((mark.offset, mark.ordinal, mark.position, mark.trace, mark.outputs))
        if len(self.rows) >= _ROWS_AT_ONCE:
            self._pack()

    def _take_elsewhere(self, other: Elsewhere) -> None:
        """A record of another incarnation is ahead of this range, unless it may be of it."""
        wanted = self.sought.item.range
        if other.same and other.offset < wanted.begin:
            return
        if other.same and other.offset < wanted.end:
            self.unclear += 1
        elif self.later is None:
            self.later = other.position

    def _pack(self) -> None:
        """What is behind the range is packed at once: there may be millions."""
        rows = np.array(self.rows, dtype=np.int64) if self.rows else _NO_ROWS
        kept, behind = parted(rows, self.sought.item.range.end)
        self.kept.append(kept)
        self.further += [Piece.of(self.sought.floor, behind)] if len(behind) else []
        self.rows = []

    def seen(self) -> Numbers:
        self._pack()
        return np.concatenate(self.kept)

    def possible_duplicates(self) -> int:
        """When nothing in the log has told: how many records of the range can have expired."""
        wanted = self.sought.item.range
        return self.unclear + min(self.doubtful, wanted.end - wanted.begin)


def scan(
    connection: Connection, wanted: Scan, places: Sequence[Sought], on_unknown: OnUnknown
) -> dict[int, ScanResult]:
    """Of each range what its logs hold. One of which not every log was read to its end is not `complete`. Raises
    TargetChanged where a log ends before a position that it had, or has something else where a record of ours stood.
    What a log has lost by expiry is a failure of the ranges that it concerns."""
    ends = {log: _checked_end(connection, wanted, mine) for log, mine in _by_log(places).items()}
    deadline = clock.monotonic() + wanted.limit_s  # of the scan alone, so that every slice gets on
    looked: dict[int, list[tuple[_Search, int, bool]]] = {item.id: [] for item in wanted.ranges}
    for log, mine in _by_log(places).items():
        searches = [_search(one, wanted) for one in mine]
        reached = _scan_log(connection, log, searches, ends[log], deadline)
        for one in searches:
            complete = reached >= ends[log]
            if one.doubtful and complete and on_unknown == "fail":
                one.failure = one.failure or _unknowable(one.sought)
            looked[one.sought.item.id].append((one, max(reached, one.begin), complete))
    return {item.id: _together(item, looked[item.id]) for item in wanted.ranges}


def _by_log(places: Sequence[Sought]) -> Mapping[str, list[Sought]]:
    logs: dict[str, list[Sought]] = {}
    for one in places:
        logs.setdefault(one.log, []).append(one)
    return logs


def _checked_end(connection: Connection, wanted: Scan, mine: Sequence[Sought]) -> int:
    known = [anchor for one in mine for anchor in anchors(one.item, one.floor, wanted.attempt.uid)]
    reached = max(_search(one, wanted).begin for one in mine)
    return check(connection, mine[0].log, mine[0].floor, known, reached)


def _search(sought: Sought, wanted: Scan) -> _Search:
    scanned = sought.item.found.scanned if sought.item.found else {}
    floor = next(one for one in sought.item.floors if one.target == sought.floor)
    begin = max(floor.position, scanned.get(sought.floor, 0))
    lineage = sought.item.range.lineage(wanted.attempt.uid)
    return _Search(sought, lineage, begin, scanned.get(_doubt(sought.floor), 0), not floor.ahead)


def _scan_log(connection: Connection, log: str, searches: Sequence[_Search], end: int, deadline: float) -> int:
    """The position reached."""
    oldest = connection.begin(log)
    for one in searches:
        one.doubtful += max(oldest - one.begin, 0)
    begin = max(min(one.begin for one in searches), oldest)
    by_lineage: dict[Lineage, list[_Search]] = {}
    for one in searches:
        by_lineage.setdefault(one.lineage, []).append(one)
    recogniser = Recogniser(searches[0].lineage.uid, by_lineage)
    reached = begin
    for part in slices(connection, log, begin, end, deadline):
        for found in recogniser.read(part.entries):
            for one in _concerned(found, by_lineage):
                one.take(found)
        reached = part.behind
    if connection.begin(log) > begin:
        raise Retriable(
            "Records expired while the log was searched",
            where=searches[0].sought.floor,
            next_step="The next attempt searches it again",
        )
    return reached


def _concerned(found: Mark | Elsewhere | Damaged, by_lineage: Mapping[Lineage, Sequence[_Search]]) -> Iterator[_Search]:
    if isinstance(found, Damaged):
        return (one for some in by_lineage.values() for one in some)
    return iter(by_lineage[found.lineage])


def _together(item: OpenRange, looked: Sequence[tuple[_Search, int, bool]]) -> ScanResult:
    """What came of one range in all of its logs."""
    if failure := next((search.failure for search, _, _ in looked if search.failure), None):
        return ScanResult(failure=failure)
    scanned: dict[str, int] = {}
    for search, reached, complete in looked:
        scanned |= {search.sought.floor: reached, _doubt(search.sought.floor): 0 if complete else search.doubtful}
    result = (item.found or ScanResult()).joined(
        {search.sought.floor: search.seen() for search, _, _ in looked},
        scanned,
        all(complete for _, _, complete in looked),
        further=[piece for search, _, _ in looked for piece in search.further],
        later={search.sought.floor: search.later for search, _, _ in looked if search.later is not None},
        late=sum(search.late for search, _, _ in looked),
        possible_duplicates=sum(
            search.possible_duplicates() if complete else search.unclear for search, _, complete in looked
        ),
    )
    several = bool((result.outputs != 1).any())
    return replace(result, spread=tuple(search.sought.floor for search, _, _ in looked) if several else ())


def _doubt(floor: str) -> str:
    """The name under which a slice of a scan tells the next one how many positions are doubtful in this log."""
    return f"{floor} doubtful"


def _unknowable(sought: Sought) -> Failure:
    wanted = sought.item.range
    unknowable = TargetChanged(
        "Records expired before Waybill checked which of an open range had arrived",
        where=f"{sought.floor}, range of {wanted.partition.key} from {wanted.begin}",
        next_step=f"Find out which arrived, then give the range up: {wanted.give_up}",
    )
    return Failure.of(unknowable)
