"""Records of a source for which a condition holds, within a window that a person names. Reads the source, writes
nothing.

The work is bounded: what is left of the window when a limit is reached is said, to be searched next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from connect_core.clock import now_ns
from connect_core.errors import ConfigError, Fault
from connect_core.replication.backfill.request import Request, moments, parse_span
from connect_core.replication.backfill.select import Selection, bounds_of, by_moments, by_ranges, looked_at_each
from connect_core.replication.driver.dry_run import Matching
from connect_core.sdk.records import Partition
from connect_core.sdk.source import OfFiles, Source
from connect_core.sdk.values import LIVE, Bounds, Json, Limit, Part, Pins, Position, Range

MAX_FOUND, MAX_RECORDS, MAX_BYTES, MAX_S = 20, 1_000_000, 1 << 30, 60.0
_NONE = Pins(revision=0, pipeline="", target={}, code="")


class SearchWindow(NamedTuple):
    """Records stored between two times, as a backfill has them, or `ranges`: PARTITION:BEGIN-END."""

    begin: str = ""
    end: str = ""
    ranges: tuple[str, ...] = ()


class FoundRecord(NamedTuple):
    """Where it is now: the incarnation is the one that is there, which a run may not have met yet."""

    partition: Partition
    offset: int
    incarnation: int


@dataclass
class SearchFindings:
    """What was `found`, in how many records that were `read`; and the `rest` of the window, as ranges."""

    found: list[FoundRecord] = field(default_factory=list)
    read: int = 0
    rest: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        return len(self.found) >= MAX_FOUND or self.read >= MAX_RECORDS


def searched(
    source: Source,
    committed: Mapping[Partition, Position | None],
    window: SearchWindow,
    condition: str,
    parse: Json,
    now: datetime,
) -> SearchFindings:
    """`committed` are the live positions, `parse` is what the document says of payloads. Raises ConfigError for a
    window that is none."""
    chosen = _chosen(source, committed, window, now)
    told = SearchFindings(notices=list(chosen.notices))
    over = now_ns() + int(MAX_S * 1e9)
    limit = Limit(over, over)
    for part, seen in looked_at_each(source, chosen.parts):
        gone = [gap for gap in seen.gaps if gap.loses]
        told.notices += [f"gone: {part.partition.key} from {gap.begin} to {gap.end}: {gap.reason}" for gap in gone]
        at = seen.begin
        if seen.begin < seen.end and not told.is_over and limit.quantum_left_s() > 0:
            at = _search(source, part, seen, limit, Matching(condition, parse, _path(source, part)), told)
        if at < seen.end:
            told.rest.append(f"{part.partition.key}:{at}-{seen.end}")
    return told


def _chosen(
    source: Source, committed: Mapping[Partition, Position | None], window: SearchWindow, now: datetime
) -> Selection:
    if faults := list(_faults(window)):
        raise ConfigError("The records to search are not named", faults=tuple(faults))
    bounds = bounds_of(source, committed)
    if window.ranges:
        return by_ranges(source, bounds, window.ranges)
    return by_moments(source, bounds, moments(Request(begin=window.begin, end=window.end), now), now)


def _faults(window: SearchWindow) -> Iterator[Fault]:
    if bool(window.ranges) == bool(window.begin or window.end):
        yield Fault("", "give either --range PARTITION:BEGIN-END, or --from (and --to) where the source knows times")
    if window.end and not window.begin:
        yield Fault("from", "is missing: --to alone does not say where to start")
    for text in window.ranges:
        try:
            parse_span(text)
        except ValueError as error:
            yield Fault("range", str(error))


def _path(source: Source, part: Part) -> str | None:
    return source.path_of(part.partition) if isinstance(source, OfFiles) else None


def _search(source: Source, part: Part, seen: Bounds, limit: Limit, matching: Matching, told: SearchFindings) -> int:
    """Where it has come to."""
    wanted = Range(
        stream=LIVE,
        partition=part.partition,
        slot=0,
        incarnation=seen.incarnation,
        begin=seen.begin,
        end=seen.end,
        max_records=MAX_RECORDS - told.read,
        max_bytes=MAX_BYTES,
        evidence=seen.evidence,
        pins=_NONE,
    )
    at = seen.begin
    for batch in source.read(wanted, limit):
        offsets = matching.offsets(batch.records)
        room = MAX_FOUND - len(told.found)
        told.found += [FoundRecord(part.partition, offset, seen.incarnation) for offset in offsets[:room]]
        told.read += len(batch.records) + len(batch.rejects) + len(batch.filtered)
        at = offsets[room - 1] + 1 if len(offsets) > room else batch.next_offset
        if told.is_over:
            break
    return at
