"""What stands last of ours in a log, and whether it still stands there (delivery rule 7).

A floor keeps the position and the mark of the newest record that was delivered. A log that was deleted, made anew and
filled by others past the floor has another record at that position, or none. One that has expired tells nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from connect_core import clock
from connect_core.errors import TargetChanged, WireFormatError
from connect_core.sdk.kits.log_connection import LogConnection, slices
from connect_core.sdk.kits.log_marks import identity
from connect_core.sdk.records import Coordinates
from connect_core.sdk.values import Floor, Json, OpenRange

_AT, _MARK, _READ_TO = "at", "mark", "read_to"
_READ_S = 5.0
_NEXT_STEP = (
    "Restore the log from a backup of its own. Or delete the connector and apply it again: under its new id it "
    "delivers whatever the source still has"
)


class Anchor(NamedTuple):
    """The record that has to stand at a position; `mark` begins with its coordinates."""

    at: int
    mark: str

    def evidence(self) -> Json:
        """For a floor."""
        return {_AT: self.at, _MARK: self.mark}

    def is_that(self, mark: str | None) -> bool:
        try:
            return mark is not None and identity(mark) == identity(self.mark)
        except WireFormatError:
            return False


def anchors(item: OpenRange, floor: str, uid: str) -> list[Anchor]:
    """What stood in a floor's log before anything of a range is written: what was settled last, and the first record of
    the range that was found."""
    known = anchors_of(one for one in item.floors if one.target == floor)
    return [*known, *found_anchors(item, floor, uid)[:1]]


def found_anchors(item: OpenRange, floor: str, uid: str) -> list[Anchor]:
    """The first and the last record of a range that was found in a floor's log; empty where none was."""
    found = item.found
    if found is None or floor not in found.targets:
        return []
    here = found.hits[found.hits[:, 2] == found.targets.index(floor)]
    lineage = item.range.lineage(uid)
    rows = here[[here[:, 3].argmin(), here[:, 3].argmax()]].tolist() if len(here) else []
    return [Anchor(position, Coordinates(lineage, offset, one).text()) for offset, one, _, position in rows]


def anchors_of(floors: Iterable[Floor]) -> Iterator[Anchor]:
    return (Anchor(int(one.evidence[_AT]), str(one.evidence[_MARK])) for one in floors if _AT in one.evidence)


def check(connection: LogConnection, log: str, where: str, known: Sequence[Anchor], reached: int = 0) -> int:
    """The end of the log. Raises TargetChanged when it ends before `reached`, or before one of the anchors, or when
    another record stands in the place of the oldest anchor that has not expired: what is behind that came later."""
    end, least = connection.end(log), max([reached, *(one.at + 1 for one in known)])
    if end < least:
        raise rewound(where, least, end)
    oldest = connection.begin(log) if known else 0
    left = sorted(one for one in known if one.at >= oldest)
    if left and not _stands(connection, log, left[0]) and connection.begin(log) <= left[0].at:
        raise TargetChanged(
            f"The log has another record at {left[0].at} than the one that was delivered there: it was deleted and "
            "recreated, and others have filled it since",
            where=where,
            next_step=_NEXT_STEP,
        )
    return end


def _stands(connection: LogConnection, log: str, anchor: Anchor) -> bool:
    parts = slices(connection, log, anchor.at, anchor.at + 1, clock.monotonic() + _READ_S)
    return any(one.position == anchor.at and anchor.is_that(one.mark) for part in parts for one in part.entries)


def rewound(where: str, expected: int, end: int) -> TargetChanged:
    return TargetChanged(
        f"The log ends at {end}, before {expected}: it was recreated, or has lost records",
        where=where,
        next_step=_NEXT_STEP,
    )


def moved(floor: Floor, position: int) -> Floor:
    """A floor that a plan moves up, past what nobody has read; it keeps up to where somebody has."""
    if position <= floor.position:
        return floor
    return floor._replace(position=position, evidence={_READ_TO: floor.position} | floor.evidence)


def read_to(floor: Floor) -> int:
    """The position up to which somebody has read what was written behind the partition's records."""
    return int(floor.evidence.get(_READ_TO, floor.position))


def newest(floors: Iterable[Floor]) -> Floor | None:
    """The one that a partition's newest record was written to; None where nothing says so."""
    written = [floor for floor in floors if _MARK in floor.evidence]
    return max(written, key=lambda floor: _order(str(floor.evidence[_MARK])), default=None)


def _order(mark: str) -> tuple[int, int]:
    coordinates = Coordinates.parse(mark)
    return coordinates.lineage.incarnation, coordinates.offset
