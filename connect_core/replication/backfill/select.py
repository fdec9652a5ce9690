"""From what is asked for to the parts of a backfill: which offsets that is, what of it is there, what is gone. Reads
the source, writes nothing.

Whatever a person should know before it starts comes back as a notice, or is an error while nothing has begun.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from connect_core.errors import ConfigError, Fault, OffsetGone
from connect_core.ledger import SettledRange
from connect_core.planning.backfill_plan import merged, within
from connect_core.replication.backfill.request import Moments, chosen, parse_span
from connect_core.sdk.records import Partition
from connect_core.sdk.source import PushSource, Source
from connect_core.sdk.values import Bounds, Part, Position


@dataclass(frozen=True)
class Selection:
    """`parts` are empty when there is nothing to move. `gone` is what the source has lost of what was asked for, or may
    have lost."""

    parts: tuple[Part, ...]
    notices: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


@dataclass(frozen=True)
class PartitionBounds:
    """A partition as it is now, under the incarnation that the live stream reads."""

    partition: Partition
    seen: Bounds

    def part(self, begin: int, end: int) -> Part:
        return Part(self.partition, self.seen.incarnation, begin, end, self.seen.evidence)


def bounds_of(source: Source, committed: Mapping[Partition, Position | None]) -> list[PartitionBounds]:
    """`committed` are the live positions. A partition that was never read is looked at from its beginning, for to ask
    where the live stream would begin may settle that. Raises ConfigError for a source that pushes."""
    if isinstance(source, PushSource):
        raise ConfigError(
            "The source cannot give acknowledged records again, so they cannot be backfilled or replayed",
            next_step="The target has them: move them from there",
        )
    known = {partition: position or Position(0, 0) for partition, position in committed.items()}
    return [PartitionBounds(partition, seen) for partition, seen in sorted(_to_the_end(source, known).items())]


def _to_the_end(source: Source, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
    """All that is there: some sources look ahead to a bound."""
    found = source.available_offsets(known)
    while partial := {
        one: Position(seen.incarnation, seen.end, seen.evidence)
        for one, seen in found.items()
        if seen.partial and seen.end > seen.begin
    }:
        for one, seen in source.available_offsets(partial).items():
            more = seen.partial and seen.end > seen.begin
            found[one] = replace(found[one], end=seen.end, partial=more)
    return found


def by_moments(source: Source, bounds: Sequence[PartitionBounds], wanted: Moments, now: datetime) -> Selection:
    """Records stored in these times. Raises ConfigError when the source knows no times."""
    partitions = [one.partition for one in bounds]
    begins, ends = source.offsets_for_time(partitions, wanted.begin), source.offsets_for_time(partitions, wanted.end)
    notices = [f"{wanted.end.isoformat()} is in the future: up to the current end"] if wanted.end > now else []
    parts = merged(one.part(begins[one.partition], ends[one.partition]) for one in bounds)
    cut = [one for one in bounds if 0 < one.seen.oldest == begins[one.partition]]
    moved = {part.partition for part in parts}
    # A quiet queue never gets rid of that doubt, and a scheduler that catches up meets it at every tick: it is told.
    quiet = [one for one in cut if one.partition not in moved and (moved or one.seen.oldest == one.seen.end)]
    notices += [
        f"{one.partition.key} no longer has records before {one.seen.oldest}; whether some were of that time is unknown"
        for one in quiet
    ]
    doubts = tuple(
        f"{one.partition.key} before {one.seen.oldest} (records of that time may be among it)"
        for one in cut
        if one not in quiet
    )
    return Selection(parts, tuple(notices), doubts)


def by_ranges(source: Source, bounds: Sequence[PartitionBounds], ranges: Sequence[str]) -> Selection:
    """The stretches that a person named, moved on to where records begin and cut to what is there. Raises ConfigError
    with every fault."""
    known = {one.partition: one for one in bounds}
    faults: list[Fault] = []
    found: list[Part] = []
    notices: list[str] = []
    for text in ranges:
        span = parse_span(text)
        try:
            one = known[chosen(span.partition, known)]
        except ValueError as error:
            faults.append(Fault(text, str(error)))
            continue
        _require_seen(one.seen)
        begin = one.seen.oldest if span.begin is None else span.begin
        end = one.seen.end if span.end is None else span.end
        if end > one.seen.end:
            notices.append(f"{one.partition.key} ends at {one.seen.end}: up to there, not to {end}")
            end = one.seen.end
        placed = [_placed(source, one, offset) for offset in (begin, end)]
        if placed != [begin, end] and begin < end:
            notices.append(f"{one.partition.key}: {begin}-{end} becomes {placed[0]}-{placed[1]}, where records begin")
        found.append(one.part(*placed))
    if faults:
        raise ConfigError("There are no such ranges", faults=tuple(faults))
    return Selection(merged(found), tuple(notices))


def _placed(source: Source, one: PartitionBounds, offset: int) -> int:
    """What is gone is judged later, and is not moved. Where nothing is gone the partition begins at its oldest record:
    what a file has before one of its parts is another one's."""
    if offset >= one.seen.oldest:
        return source.align_offset(one.partition, one.seen, offset) if offset <= one.seen.end else offset
    there = source.available_offsets({one.partition: Position(one.seen.incarnation, offset, one.seen.evidence)})
    return offset if any(gap.loses for gap in there[one.partition].gaps) else one.seen.oldest


def by_receipts(bounds: Sequence[PartitionBounds], settled: Iterable[SettledRange]) -> Selection:
    """What a run has settled, each record once also where it went back over its own traces. Raises ConfigError for a
    partition that the source does not have any more."""
    now = {one.partition: one.seen.incarnation for one in bounds}
    parts = merged(
        Part(one.partition, one.incarnation, one.receipt.begin, one.receipt.end, one.evidence) for one in settled
    )
    if strange := sorted({part.partition.key for part in parts if part.partition not in now}):
        raise ConfigError(
            f"The source no longer reads {', '.join(strange)}",
            next_step="Add these to the source again, or choose ranges of what it reads",
        )
    lost = [part for part in parts if not part.evidence and part.incarnation != now[part.partition]]
    gone = tuple(f"{part.partition.key} from {part.begin} to {part.end} (it was replaced since)" for part in lost)
    return Selection(tuple(part for part in parts if part not in lost), gone=gone)


def looked_at(source: Source, selected: Selection, accept_gaps: bool, where: str) -> Selection:
    """The selection as the source can give it now. Raises OffsetGone when some of it is gone, unless that is accepted:
    then what is wholly gone is left out, and the rest is noted as a gap when it is moved. So is what it has lost at the
    end of a part: a source need not look so far ahead."""
    kept: list[Part] = []
    gone = list(selected.gone)
    for part, seen in looked_at_each(source, selected.parts):
        told = list(_told(part, seen))
        gone += told
        if seen.incarnation == part.incarnation and seen.begin < part.end:
            kept.append(replace(part, evidence=seen.evidence if seen.begin == part.begin else part.evidence))
    if gone and not accept_gaps:
        raise OffsetGone(
            f"Records are gone: {'; '.join(gone)}",
            where=where,
            next_step="Choose ranges that are still there (`waybill plan` shows them), or continue without these:"
            " --accept-gaps",
        )
    return Selection(merged(kept), (*selected.notices, *(f"gone: {one}" for one in gone)))


def looked_at_each(source: Source, parts: Sequence[Part]) -> Iterator[tuple[Part, Bounds]]:
    """What a run would see that goes on at the begin of each part. A partition is asked about one place at a time."""
    waiting = list(parts)
    while waiting:
        first: dict[Partition, Part] = {}
        for part in waiting:
            first.setdefault(part.partition, part)
        bounds = source.available_offsets(
            {one: Position(p.incarnation, p.begin, p.evidence) for one, p in first.items()}
        )
        for partition, part in first.items():
            _require_seen(bounds[partition])
            yield part, within(part, bounds[partition])
        waiting = [part for part in waiting if part is not first[part.partition]]


def _require_seen(seen: Bounds) -> None:
    """Raises why a partition that was chosen cannot be looked at: what is in it now is not known."""
    if seen.failure:
        raise seen.failure.as_error()


def _told(part: Part, seen: Bounds) -> Iterator[str]:
    for gap in (one for one in seen.gaps if one.loses):
        end = "an unknown end" if gap.end is None else gap.end
        yield f"{part.partition.key} from {gap.begin} to {end} ({gap.reason})"
