"""A place that a person names: whether reading can go on there, and what stands there now (delivery rules 10, 15); and
where the target is looked through from then on (delivery rules 6, 7)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from connect_core.errors import ConfigError
from connect_core.sdk.records import Partition
from connect_core.sdk.sink import Expiring, Sink
from connect_core.sdk.source import PushSource, Source
from connect_core.sdk.values import Bounds, Floor, Position


def checked_position(
    source: Source, partition: Partition, before: Position | None, offset: int, where: str
) -> Position:
    """The position at `offset` of what is read now, with its evidence: who reads on from there notices when that is
    replaced before. Raises ConfigError with the offsets that are possible: within what the source has, and where a
    record begins. Of a source that pushes nobody can say: its records are numbered as they come, and what is known of
    its session is as true under another number.

    Who names the place where it stands moves nothing, as to give up a range: the next run tells what is gone there."""
    at, where = before or Position(0, 0), f"{where}, partition {partition.key}"
    if isinstance(source, PushSource):
        return Position(at.incarnation, offset, at.evidence)
    if before and offset == before.offset:
        return before
    there = _looked_at(source, partition, Position(at.incarnation, 0, at.evidence))
    if not there.oldest <= offset <= there.end:
        raise ConfigError(
            f"The source has nothing at offset {offset:,}",
            where=where,
            next_step=f"Choose one from {there.oldest} to {there.end}, which is where the next record will be",
        )
    is_as_before = there.incarnation == at.incarnation
    wanted = Position(there.incarnation, offset, at.evidence if is_as_before else {})
    if is_as_before and offset == at.offset:
        return wanted
    seen = _looked_at(source, partition, wanted)
    begins = source.align_offset(partition, seen, offset)
    if begins != offset:
        raise ConfigError(
            f"Offset {offset:,} is inside a record",
            where=where,
            next_step=f"The next record begins at {begins}",
        )
    _require_left(seen, there.incarnation, offset, where)
    return Position(seen.incarnation, offset, seen.evidence)


def record_at(source: Source, partition: Partition, at: Position) -> int:
    """Where the first record begins at or behind a position, of what the source has. Raises what the source says where
    it cannot look. One that pushes numbers its records as they come: any number will do."""
    if isinstance(source, PushSource):
        return at.offset
    there = _looked_at(source, partition, replace(at, offset=0))
    wanted = replace(at, offset=min(max(at.offset, there.oldest), there.end))
    return source.align_offset(partition, _looked_at(source, partition, wanted), wanted.offset)


def require_readable(source: Source, partition: Partition, at: Position, where: str) -> None:
    """Raises ConfigError when reading cannot go on at a position that once was reached: records behind it are gone, or
    the partition was replaced. Of a source that pushes nobody can say."""
    if not isinstance(source, PushSource):
        seen = _looked_at(source, partition, at)
        _require_left(seen, at.incarnation, at.offset, f"{where}, partition {partition.key}")


def _require_left(seen: Bounds, incarnation: int, offset: int, where: str) -> None:
    if (seen.incarnation, seen.begin) != (incarnation, offset):
        why = "; ".join(gap.reason for gap in seen.gaps) or f"the oldest record is at {seen.begin:,}"
        raise ConfigError(
            f"Reading cannot continue at offset {offset:,}: {why}",
            where=where,
            next_step="Choose another offset, or let the next run continue from the current one",
        )


def oldest_offset(source: Source, partition: Partition, at: Position, where: str) -> int:
    """Of what is read now. Raises ConfigError for a source that pushes: it has nothing to read again."""
    if isinstance(source, PushSource):
        raise ConfigError(
            "The source has no oldest record: it sends each once",
            where=f"{where}, partition {partition.key}",
            next_step="Name an offset",
        )
    return _looked_at(source, partition, Position(at.incarnation, 0, at.evidence)).oldest


def floors_left(sink: Sink, floors: Iterable[Floor]) -> list[Floor]:
    """Those of a range that is given up, none before what its target has left. Empty where a target loses nothing by
    itself."""
    return sink.within(list(floors)) if isinstance(sink, Expiring) else []


def _looked_at(source: Source, partition: Partition, at: Position) -> Bounds:
    seen = source.available_offsets({partition: at})[partition]
    if seen.failure:
        raise seen.failure.as_error()
    return seen
