"""What moving a committed position by hand means: what would be delivered once more, and who has built on a change.

Read by the commands before anything is changed. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from connect_core.ledger.database import Transactions
from connect_core.ledger.tables import OFFSET_CHANGES, RANGES
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Position

Place = tuple[int, int]
"""Incarnation and offset: of two places of a partition the later one is the greater."""


@dataclass(frozen=True)
class SettledCounts:
    """A settled range by its begin and end, and what its receipt counts; `bytes_read` None: nobody knows."""

    begin: Place
    end: Place
    emitted: int
    bytes_read: int | None


@dataclass(frozen=True)
class Repeats:
    """Receipts between two places, and the records and bytes that they moved. `at_most`: a part of some receipt lies
    outside, and how much of its counts that part has is not known."""

    receipts: int = 0
    records: int = 0
    bytes_read: int = 0
    at_most: bool = False


@dataclass(frozen=True)
class LastChange:
    """The last change of a partition's position by a person: `before` is what an undo puts back. `built_on` is how
    many runs have settled something of the partition since, and `newest_run` the last of them."""

    before: Position | None
    who: str
    changed_at: datetime
    built_on: int
    newest_run: str | None


def place_of(position: Position | None) -> Place:
    """None: as if nothing had been read."""
    return (position.incarnation, position.offset) if position else (0, 0)


def repeated(newest_first: Iterable[SettledCounts], before: Place, after: Place) -> Repeats:
    """Of what was settled from `after` up to `before`. A place that several receipts cover counts once, by the newest
    of them; reading stops as soon as everything is covered."""
    receipts = records = bytes_read = 0
    at_most = False
    uncovered = [(after, before)] if after < before else []
    for one in newest_first:
        rest = [piece for stretch in uncovered for piece in _without(stretch, one)]
        if rest != uncovered:
            receipts += 1
            records += one.emitted
            bytes_read += one.bytes_read or 0
            at_most = at_most or not any(begin <= one.begin and one.end <= end for begin, end in uncovered)
        uncovered = rest
        if not uncovered:
            break
    return Repeats(receipts, records, bytes_read, at_most)


def _without(stretch: tuple[Place, Place], one: SettledCounts) -> list[tuple[Place, Place]]:
    begin, end = stretch
    if one.end <= begin or one.begin >= end or one.begin == one.end:
        return [stretch]
    return [piece for piece in ((begin, one.begin), (one.end, end)) if piece[0] < piece[1]]


class Moves(Transactions):
    """The part of the ledger that is asked before a position is moved by hand."""

    def repeats(
        self, uid: str, stream: str, partition: Partition, before: Position | None, after: Position | None
    ) -> Repeats:
        """What is delivered again when the position of a partition moves from `before` to `after`; nothing when that
        is not back."""
        first, last = place_of(after), place_of(before)
        if first >= last:
            return Repeats()
        ends_behind = sa.tuple_(RANGES.c.incarnation, RANGES.c.end_offset) > sa.tuple_(*map(sa.literal, first))
        query = _settled(uid, stream, partition, ends_behind).order_by(RANGES.c.closed_at.desc(), RANGES.c.id.desc())
        with self._read() as connection:
            return repeated(map(_stretch_of, connection.execute(query)), last, first)

    def last_change(self, uid: str, stream: str, partition: Partition) -> LastChange | None:
        """None when nobody ever changed the position of this partition."""
        table = OFFSET_CHANGES
        mine = (table.c.uid == uid) & (table.c.stream == stream) & (table.c.partition_id == partition.id)
        query = sa.select(table).where(mine).order_by(table.c.id.desc()).limit(1)
        with self._read() as connection:
            row = connection.execute(query).one_or_none()
            if row is None:
                return None
            newer = (RANGES.c.closed_at > row.changed_at) & (RANGES.c.end_offset > RANGES.c.begin_offset)
            runs = [one.run_id for one in connection.execute(_settled(uid, stream, partition, newer))]
        before = None if row.before is None else Position(**row.before)
        return LastChange(before, row.who, row.changed_at, len(set(runs)), max(runs, default=None))


def _settled(uid: str, stream: str, partition: Partition, condition: sa.ColumnElement[bool]) -> sa.Select[Any]:
    columns = (RANGES.c.incarnation, RANGES.c.begin_offset, RANGES.c.end_offset, RANGES.c.emitted, RANGES.c.bytes_read)
    mine = (RANGES.c.uid == uid) & (RANGES.c.stream == stream) & (RANGES.c.partition_id == partition.id)
    return sa.select(*columns, RANGES.c.run_id).where(mine, RANGES.c.state == "settled", condition)


def _stretch_of(row: Any) -> SettledCounts:
    return SettledCounts(
        (row.incarnation, row.begin_offset), (row.incarnation, row.end_offset), row.emitted, row.bytes_read
    )
