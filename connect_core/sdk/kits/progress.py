"""How far a partition has come in its target, as the target itself keeps it, and what follows from that for a range
(delivery rules 6, 7, 19 and 20). Pure.

It is kept beside the records: `kits.marker` in the transaction that stores them, the MQTT sink in a retained message
behind them. What else each of them keeps, and what they make of a progress that is missing or older than what was
settled, is their own.

Records are told by `count`, not by position alone: positions go back when a person sets them back, and begin anew with
an incarnation. The count of the ledger, `settled` (a floor's position), and the one that is kept differ by what is in
the target and not settled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from connect_core.sdk.scan import NO_PREFIX, Prefix
from connect_core.sdk.values import Range

ADDED = {"begin": 0, "settled": 0, "highest": 0, "elsewhere": 0}
"""What is missing where a former version stored it."""


@dataclass(frozen=True)
class TargetProgress:
    """Every record of `incarnation` with an offset in [since, position) is in the target, but for those that a receipt
    says are not; `count` of the partition in all. `origin` names what was read as this incarnation
    (`sdk.values.ORIGIN`): a ledger that was restored may count otherwise. The range that was begun last began with
    `settled` records settled, and at `begin`, or the first one did that began with so many: the others stand behind
    that. `highest` is how far the partition had come before that: further than `position` while it is delivered again,
    since a person has set it back. `elsewhere` of the records behind `settled` were read from another place than that
    range, which counts them as possible duplicates when it is settled, whichever attempt does that."""

    incarnation: int
    since: int
    position: int
    count: int = 0
    origin: str = ""
    begin: int = 0
    settled: int = 0
    highest: int = 0
    elsewhere: int = 0

    def advanced(self, records: int, position: int) -> Self:
        """After so many records more, which end at `position`."""
        return replace(self, position=position, count=self.count + records)


def covered(kept: TargetProgress | None, wanted: Range, settled: int) -> Prefix:
    """What of a range is in the target behind the `settled` records."""
    if kept is None or kept.count <= settled or not _reaches(kept, wanted, settled):
        return NO_PREFIX
    return Prefix(max(kept.position, wanted.begin), kept.count - settled - _not_counted(kept, settled))


def elsewhere(kept: TargetProgress | None, wanted: Range, settled: int) -> int:
    """How many records that are not settled are in the target and were read from another place than this range: a
    person has set the offset since, or the ledger was restored and counts the files of a log otherwise. An attempt at
    this range that died may have seen that before."""
    if kept is None or kept.count <= settled:
        return 0
    return _not_counted(kept, settled) if _reaches(kept, wanted, settled) else kept.count - settled


def begun(kept: TargetProgress | None, wanted: Range, settled: int) -> TargetProgress:
    """The progress with which a range begins to be written."""
    there = covered(kept, wanted, settled)
    return TargetProgress(
        incarnation=wanted.incarnation,
        since=kept.since if kept is not None and adjoins(kept, wanted, settled) else wanted.begin,
        position=max(there.through, wanted.begin),
        count=max(kept.count, settled) if kept is not None else settled,
        origin=wanted.origin,
        begin=_first_begin(kept, wanted, settled),
        settled=settled,
        highest=max(kept.highest, kept.position) if kept is not None and _is_of(kept, wanted) else 0,
        elsewhere=elsewhere(kept, wanted, settled),
    )


def _not_counted(kept: TargetProgress, settled: int) -> int:
    """Of `elsewhere`: no receipt of the range has told of it. A receipt settles these records, too."""
    return kept.elsewhere if settled <= kept.settled else 0


def _first_begin(kept: TargetProgress | None, wanted: Range, settled: int) -> int:
    """Where the ranges begin that have settled no record since: a ledger may be restored to any of them."""
    if kept is None or not _is_of(kept, wanted) or kept.settled != settled:
        return wanted.begin
    return min(kept.begin, wanted.begin)


def adjoins(kept: TargetProgress, wanted: Range, settled: int) -> bool:
    """Whether the range goes on behind what was written: not where a person has set the offset back, nor where some of
    what was settled is not there."""
    if kept.count < settled or not _reaches(kept, wanted, settled):
        return False
    return kept.count > settled or kept.position <= wanted.begin


def _reaches(kept: TargetProgress, wanted: Range, settled: int) -> bool:
    """Whether what was written without a hole begins at or before the range. What is not settled does not where a
    person has set the offset back: then all between was settled, and is wanted again. Nor where a ledger that was
    restored has forgotten that: what was written before it stands behind the hole."""
    set_back = wanted.begin < kept.begin and settled >= kept.settled
    forgotten = kept.position < kept.highest and settled < kept.settled
    return _is_of(kept, wanted) and not set_back and not forgotten and kept.since <= wanted.begin


def _is_of(kept: TargetProgress, wanted: Range) -> bool:
    """Whether both count the same records by the same positions."""
    other = kept.origin and wanted.origin and kept.origin != wanted.origin
    return not other and kept.incarnation == wanted.incarnation
