"""An operator's changes of committed offsets (delivery rule 5), each kept so that it can be undone. Called by CLI and
API.

What a change does to the target: nothing. After setting BACK, the records from the new offset up to the old one are
delivered again, on purpose: they stand below the floors, where nobody looks. After setting FORWARD, the records between
are not delivered at all. The floors stay in both cases. They are still true: a floor is the lowest place where a record
at or behind the committed offset can stand that is not settled, so whatever an earlier attempt delivered without
settling is still found, and so is what the repetition itself delivers before it dies: each record is repeated once, not
once an attempt. A repeated record that already stands above a floor is found there and not sent a third time.

The caller holds the lease of the task that has the partition, as a run would.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Literal

import sqlalchemy as sa
from sqlalchemy import Connection

from connect_core.errors import ConfigError, DataError
from connect_core.ledger.auditing import note
from connect_core.ledger.begun import Begun, undisturbed
from connect_core.ledger.connectors import locked
from connect_core.ledger.database import Transactions, insert_missing, now, upsert
from connect_core.ledger.leases import Lease, fence
from connect_core.ledger.ranges import abandon_range, committed, move_up, open_range_ids
from connect_core.ledger.rows import position_row
from connect_core.ledger.settling import OFFSET_KEY
from connect_core.ledger.tables import OFFSET_CHANGES, OFFSETS
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Floor, Json, Position


class Offsets(Transactions):
    """The part of the ledger in which people move offsets."""

    def set_offset(
        self,
        leases: Sequence[Lease],
        uid: str,
        stream: str,
        partition: Partition,
        position: Position,
        *,
        who: str,
        why: str,
        abandon: bool = False,
        floors: Sequence[Floor] = (),
    ) -> None:
        """Moves the committed position of one partition. Without the source's evidence nobody would notice that what
        is read was replaced before the next run. `floors` of it are moved up to where they are given, when it has a
        range that is abandoned.

        Raises DataError while a range of the partition is open, unless `abandon` closes it without a receipt; Fenced
        when a lease is lost.
        """
        with self._write() as connection:
            fence(connection, leases)
            if _close_open_ranges(connection, uid, stream, partition, who, why, abandon):
                move_up(connection, uid, stream, partition, floors)
            before = committed(connection, uid, stream, [partition])[partition]
            _move(connection, uid, stream, partition, "set", before, position, who, why)

    def keep_seen(
        self,
        leases: Sequence[Lease],
        uid: str,
        stream: str,
        positions: Mapping[Partition, Position],
        beside: Begun | None = None,
    ) -> bool:
        """Keeps where partitions begin that have no position yet, or a later incarnation of them; and what was seen
        last where they stand. Leaves those that stand elsewhere. No change by a person: `undo` knows none of it.
        False, and nothing is kept, when other tasks have begun something since they were `beside`.
        Raises Fenced when a lease is lost."""
        with self._write() as connection:
            if beside:
                locked(connection, uid)
            fence(connection, leases)
            if not undisturbed(connection, uid, stream, beside):
                return False
            known, moment = committed(connection, uid, stream, list(positions)), now()
            here = {one: at for one, at in positions.items() if _is_there(known[one], at)}
            rows = [position_row(uid, stream, one, at, moment) for one, at in here.items()]
            upsert(connection, OFFSETS, OFFSET_KEY, rows)
        return True

    def keep_first(self, uid: str, stream: str, positions: Mapping[Partition, Position], beside: Begun) -> bool:
        """Keeps where partitions begin that have no position yet. For those who hold no lease: whatever a run has
        settled meanwhile stays. False, and nothing is kept, when something was begun since they were `beside`: it may
        be what was seen."""
        with self._write() as connection:
            locked(connection, uid)
            if not undisturbed(connection, uid, stream, beside):
                return False
            moment = now()
            rows = [position_row(uid, stream, one, at, moment) for one, at in positions.items()]
            insert_missing(connection, OFFSETS, OFFSET_KEY, rows)
        return True

    def undo_offset(
        self,
        leases: Sequence[Lease],
        uid: str,
        stream: str,
        partition: Partition,
        *,
        who: str,
        session: Json | None = None,
    ) -> Position | None:
        """Puts back the position that stood before the last change made by a person, evidence included; None: as if
        the partition had never been read. It is a change itself: undone again, it is made again. Of a source that
        pushes `session` is the evidence of now: what was known of its session then says nothing any more.

        What was settled since stays in the target. Raises ConfigError when nobody changed this partition, DataError
        while a range is open.
        """
        with self._write() as connection:
            fence(connection, leases)
            _close_open_ranges(connection, uid, stream, partition, who, "", abandon=False)
            after = _before_last_change(connection, uid, stream, partition)
            if session is not None:
                after = replace(after or Position(0, 0), evidence=session)
            before = committed(connection, uid, stream, [partition])[partition]
            _move(connection, uid, stream, partition, "undo", before, after, who, "")
            return after

    def forgotten(self, uid: str, stream: str) -> dict[Partition, Position]:
        """By partition that counts as never read, since a person took back the first change of its offset: where it
        stood then."""
        table = OFFSET_CHANGES
        query = sa.select(table).where(table.c.uid == uid, table.c.stream == stream).order_by(table.c.id)
        with self._read() as connection:
            last = {row.partition_key: row for row in connection.execute(query)}
        return {Partition(key): Position(**row.before) for key, row in last.items() if row.after is None and row.before}

    def move_offsets(
        self,
        leases: Sequence[Lease],
        uid: str,
        stream: str,
        positions: Mapping[Partition, Position],
        *,
        who: str,
        why: str,
        kind: Literal["import", "set"] = "import",
    ) -> None:
        """Takes over positions from elsewhere, or those that a person has set, all or none, evidence included. Raises
        DataError while a range of one of these partitions is open."""
        with self._write() as connection:
            fence(connection, leases)
            old = committed(connection, uid, stream, list(positions))
            for partition, position in positions.items():
                _close_open_ranges(connection, uid, stream, partition, who, why, abandon=False)
                _move(connection, uid, stream, partition, kind, old[partition], position, who, why)


def _close_open_ranges(
    connection: Connection, uid: str, stream: str, partition: Partition, who: str, why: str, abandon: bool
) -> list[int]:
    """Their ids."""
    open_ids = open_range_ids(connection, uid, stream, partition)
    for range_id in open_ids:
        if not abandon:
            raise DataError(
                f"Range {range_id} is open: it is not known yet which of its records were delivered",
                where=f"connector {uid}, stream {stream}, partition {partition.key}",
                next_step="Let a run finish it, or abandon it: `waybill offsets set --abandon`",
            )
        abandon_range(connection, range_id, who, why)
    return open_ids


def _before_last_change(connection: Connection, uid: str, stream: str, partition: Partition) -> Position | None:
    table = OFFSET_CHANGES
    query = sa.select(table.c.before).where(
        table.c.uid == uid, table.c.stream == stream, table.c.partition_id == partition.id
    )
    last = connection.execute(query.order_by(table.c.id.desc()).limit(1)).one_or_none()
    if last is None:
        where = f"connector {uid}, stream {stream}, partition {partition.key}"
        raise ConfigError("There is no change of this offset to undo", where=where, next_step="See `offsets history`")
    return None if last.before is None else Position(**last.before)


def _move(
    connection: Connection,
    uid: str,
    stream: str,
    partition: Partition,
    kind: str,
    before: Position | None,
    after: Position | None,
    who: str,
    why: str,
) -> None:
    moment = now()
    if after is None:
        here = (OFFSETS.c.uid == uid) & (OFFSETS.c.stream == stream) & (OFFSETS.c.partition_id == partition.id)
        connection.execute(OFFSETS.delete().where(here))
    else:
        upsert(connection, OFFSETS, OFFSET_KEY, [position_row(uid, stream, partition, after, moment)])
    change = {
        "before": None if before is None else asdict(before),
        "after": None if after is None else asdict(after),
    }
    place = {"uid": uid, "stream": stream, "partition_id": partition.id, "partition_key": partition.key}
    connection.execute(
        OFFSET_CHANGES.insert().values(**place, **change, kind=kind, who=who, why=why, changed_at=moment)
    )
    note(connection, uid, f"offset {kind}", who, why, {"stream": stream, "partition": partition.key, **change})


def _is_there(stands: Position | None, at: Position) -> bool:
    if stands is None or stands.incarnation < at.incarnation:
        return True
    return (stands.incarnation, stands.offset) == (at.incarnation, at.offset)
