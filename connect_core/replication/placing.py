"""Whether reading can go on at a place that a person names: within what the source has, and where a record begins."""

from __future__ import annotations

from connect_core.contracts import Inbox, Position, Source
from connect_core.errors import ConfigError
from connect_core.records import Partition


def require_place(source: Source, partition: Partition, wanted: Position, where: str) -> None:
    """Raises ConfigError with the offsets that are possible. Of a source that pushes nobody can say: its records are
    numbered as they come."""
    if isinstance(source, Inbox):
        return
    offset, where = wanted.offset, f"{where}, partition {partition.key}"
    seen = source.bounds({partition: Position(wanted.incarnation, 0)})[partition]
    if seen.failure:
        raise seen.failure.as_error()
    if not seen.oldest <= offset <= seen.end:
        raise ConfigError(
            f"the source has nothing at offset {offset:,}",
            where=where,
            next_step=f"Choose one from {seen.oldest} to {seen.end}, which is where the next record will be",
        )
    begins = source.record_at(partition, seen, offset)
    if begins != offset:
        raise ConfigError(
            f"offset {offset:,} is inside a record",
            where=where,
            next_step=f"The next record begins at {begins}",
        )
