"""Looks for records of ours in logs: one forward scan of each log for all ranges at once (delivery rule 7).

A scan begins at the lowest floor of its ranges, or where the last slice of the scan stopped, and ends at the end that
the log had when the scan began. What has expired in between nobody can see: `log_search` says what that means. Where no
record of a range is left, `on_unknown` says whether it is delivered again; its records count as possible duplicates
then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from connect_core import clock
from connect_core.errors import Failure, Retriable, TargetChanged
from connect_core.sdk.kits.log_connection import LogConnection, slices
from connect_core.sdk.kits.log_marks import Damaged, MarkRecogniser, grouped
from connect_core.sdk.kits.log_search import OnUnknown, RangeSearch, Searched, by_lineage, each_log, give, together
from connect_core.sdk.kits.log_standing import anchors, check
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.sink import Scan
from connect_core.sdk.values import Floor, OpenRange

__all__ = ["OnUnknown", "Sought", "scan"]


class Sought(NamedTuple):
    """A range in one log, where it has that floor."""

    item: OpenRange
    log: str
    floor: Floor


def scan(
    connection: LogConnection, wanted: Scan, places: Sequence[Sought], on_unknown: OnUnknown
) -> dict[int, ScanResult]:
    """Of each range what its logs hold. One of which not every log was read to its end is not `complete`. Raises
    TargetChanged where a log ends before a position that it had, or has something else where a record of ours stood.
    What a log has lost by expiry is a failure of the ranges that it concerns."""
    by_log = _by_log(places, wanted.attempt.uid)
    ends = {log: _checked_end(connection, log, searches) for log, searches in by_log.items()}
    deadline = clock.monotonic() + wanted.limit_s  # of the scan alone, so that every slice gets on

    def read(log: str, searches: list[RangeSearch], end: int) -> int:
        return _scan_log(connection, log, searches, end, deadline)

    searched = each_log(by_log, ends, read, _unknowable, on_unknown)
    return {item.id: _result(item, searched.get(item.id, [])) for item in wanted.ranges}


def _by_log(places: Sequence[Sought], uid: str) -> dict[str, list[RangeSearch]]:
    logs: dict[str, list[RangeSearch]] = {}
    for item, log, floor in places:
        logs.setdefault(log, []).append(RangeSearch.of(item, floor, uid))
    return logs


def _checked_end(connection: LogConnection, log: str, searches: Sequence[RangeSearch]) -> int:
    known = [anchor for one in searches for anchor in anchors(one.item, one.floor, one.lineage.uid)]
    return check(connection, log, searches[0].floor, known, max(one.begin for one in searches))


def _scan_log(connection: LogConnection, log: str, searches: Sequence[RangeSearch], end: int, deadline: float) -> int:
    """The position reached."""
    oldest = connection.begin(log)
    for one in searches:
        one.expired(oldest)
    begin = max(min(one.begin for one in searches), oldest)
    lineages = by_lineage(searches)
    recogniser = MarkRecogniser(searches[0].lineage.uid, lineages)
    reached = begin
    for part in slices(connection, log, begin, end, deadline):
        for found in grouped(recogniser.read(part.entries)):
            if isinstance(found, Damaged):
                _take_damaged(found, searches)
            else:
                give(found, lineages)
        reached = part.behind
    if connection.begin(log) > begin:
        raise Retriable(
            "Records expired while the log was searched",
            where=searches[0].floor,
            next_step="The next attempt searches it again",
        )
    return reached


def _take_damaged(found: Damaged, searches: Sequence[RangeSearch]) -> None:
    """It may be of any range."""
    for one in searches:
        if found.position >= one.begin:
            one.unclear += 1


def _result(item: OpenRange, searched: Sequence[Searched]) -> ScanResult:
    """The outputs of a record may be in several logs, and are in order within each of them alone."""
    result = together(item, searched)
    several = bool((result.outputs != 1).any())
    return replace(result, spread=tuple(one.search.floor for one in searched) if several else ())


def _unknowable(search: RangeSearch) -> Failure:
    wanted = search.item.range
    unknowable = TargetChanged(
        "Records expired before Waybill checked which of an open range had arrived",
        where=f"{search.floor}, range of {wanted.partition.key} from {wanted.begin}",
        next_step=f"Find out which arrived, then give the range up: {wanted.give_up}",
    )
    return Failure.of(unknowable)
