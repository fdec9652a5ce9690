"""Positions, floors and open ranges: what a run reads before it plans, and `plan` itself. Called by a run's driver.

Everything that a run writes here is one fenced transaction a call: a run that lost its lease changes nothing. By
convention the first of `leases` is the one of the run's task, whose epoch is recorded; the others are those of targets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from connect_core.errors import DataError
from connect_core.ledger.auditing import note
from connect_core.ledger.backfills import unfinished
from connect_core.ledger.begun import Begun, begun, undisturbed
from connect_core.ledger.connectors import locked
from connect_core.ledger.continuity import continues
from connect_core.ledger.database import MANY, Transactions, among, now, upsert
from connect_core.ledger.floors import FloorKey, FloorsBeside, key_of
from connect_core.ledger.leases import Lease, fence
from connect_core.ledger.rows import floor_of, floor_row, position_of, range_of, range_row, target_id
from connect_core.ledger.tables import CONNECTORS, FLOORS, OFFSETS, RANGES
from connect_core.sdk.records import Partition
from connect_core.sdk.values import OPEN_END, Floor, OpenRange, Position, Range

if TYPE_CHECKING:
    from connect_core.sdk.scan import ScanResult

FLOOR_KEY = ("uid", "stream", "partition_id", "target_id")

# Built once: building a statement costs more than running it.
_FLOORS = (
    sa.select(FLOORS)
    .where(FLOORS.c.uid == sa.bindparam("connector"), FLOORS.c.stream == sa.bindparam("of_stream"))
    .order_by(FLOORS.c.partition_id, FLOORS.c.target)
)
_FLOORS_OF = _FLOORS.where(FLOORS.c.partition_id.in_(sa.bindparam("wanted", expanding=True)))
_LOCKED_FLOORS = (
    sa.select(FLOORS)
    .where(
        FLOORS.c.uid == sa.bindparam("connector"),
        FLOORS.c.stream == sa.bindparam("of_stream"),
        FLOORS.c.partition_id.in_(sa.bindparam("wanted", expanding=True)),
    )
    .order_by(FLOORS.c.partition_id, FLOORS.c.target_id)
    .with_for_update()
)
_COMMITTED = sa.select(OFFSETS).where(
    OFFSETS.c.uid == sa.bindparam("connector"), OFFSETS.c.stream == sa.bindparam("of_stream")
)
_COMMITTED_OF = _COMMITTED.where(OFFSETS.c.partition_id.in_(sa.bindparam("wanted", expanding=True)))
_OPEN = (
    sa.select(RANGES)
    .where(
        RANGES.c.uid == sa.bindparam("connector"),
        RANGES.c.stream == sa.bindparam("of_stream"),
        RANGES.c.open_key.is_not(None),
    )
    .order_by(RANGES.c.id)
)
_OF_PARTITION = RANGES.alias("of_partition")
_NEWEST = sa.select(
    sa.select(_OF_PARTITION.c.id)
    .where(
        _OF_PARTITION.c.uid == FLOORS.c.uid,
        _OF_PARTITION.c.stream == FLOORS.c.stream,
        _OF_PARTITION.c.partition_id == FLOORS.c.partition_id,
    )
    .order_by(
        _OF_PARTITION.c.uid.desc(),
        _OF_PARTITION.c.stream.desc(),
        _OF_PARTITION.c.partition_id.desc(),
        _OF_PARTITION.c.id.desc(),
    )
    .limit(1)
    .correlate(FLOORS)
    .scalar_subquery()
).where(FLOORS.c.uid == sa.bindparam("connector"), FLOORS.c.stream == sa.bindparam("of_stream"), FLOORS.c.ahead)
"""For each partition with a floor `ahead`; found by one step in an index, however many ranges the partition has had."""
_GOES_ON_THERE = (
    (OFFSETS.c.uid == RANGES.c.uid)
    & (OFFSETS.c.stream == RANGES.c.stream)
    & (OFFSETS.c.partition_id == RANGES.c.partition_id)
    & (OFFSETS.c.incarnation == RANGES.c.incarnation)
    & (OFFSETS.c.next_offset == RANGES.c.end_offset)
)
_CLOSED_SHORT = (
    sa.select(RANGES)
    .join(OFFSETS, _GOES_ON_THERE)
    .where(RANGES.c.id.in_(_NEWEST), RANGES.c.state == "settled", RANGES.c.end_offset < RANGES.c.planned_end)
    .where(RANGES.c.planned_end < OPEN_END)
)
_INSERT = RANGES.insert().returning(RANGES.c.id, sort_by_parameter_order=True)


class TargetWriter(NamedTuple):
    """Who has written a target that can have one writer only."""

    target: str
    connector: str
    stream: str


class Ranges(Transactions):
    """The part of the ledger that plans go into."""

    def positions(self, uid: str, stream: str, partitions: Iterable[Partition]) -> dict[Partition, Position | None]:
        """The committed position of each of `partitions`; None for one that was never settled nor set."""
        with self._read() as connection:
            return committed(connection, uid, stream, list(partitions))

    def begun(self, uid: str, stream: str, mine: Iterable[Partition]) -> Begun:
        """What there is now, as the task sees it whose partitions are `mine`."""
        with self._read() as connection:
            return begun(connection, uid, stream, {partition.id for partition in mine})

    def floors(self, uid: str, stream: str) -> list[Floor]:
        with self._read() as connection:
            return _floors(connection, uid, stream)

    def other_writers(self, uid: str, stream: str, targets: Iterable[str]) -> list[TargetWriter]:
        """Who else has floors of one of these targets and may write it again: the live stream of each connector that
        is not deleted, and its backfills that are not over."""
        ours = sorted(targets)
        query = (
            sa.select(FLOORS.c.target, CONNECTORS.c.uid, CONNECTORS.c.name, FLOORS.c.stream)
            .join(CONNECTORS, CONNECTORS.c.uid == FLOORS.c.uid)
            .where(among(FLOORS.c.target_id, [target_id(one) for one in ours]))
            .where((FLOORS.c.uid != uid) | (FLOORS.c.stream != stream), CONNECTORS.c.live_name.is_not(None))
        )
        with self._read() as connection:
            rows = [row for row in connection.execute(query) if row.target in ours]
            going_on = unfinished(connection, [(row.uid, row.stream) for row in rows])
        return sorted(
            {TargetWriter(row.target, row.name, row.stream) for row in rows if (row.uid, row.stream) in going_on}
        )

    def open_ranges(self, uid: str, stream: str, partitions: Iterable[Partition] | None = None) -> list[OpenRange]:
        """Ranges that were planned and not closed, in the order of their planning; all `inherited`, with what `scan`
        has seen so far and the floors of their partition and of the whole target. None: of every partition."""
        wanted = None if partitions is None else {partition.id for partition in partitions}
        with self._read() as connection:
            rows = _open_rows(connection, uid, stream, wanted)
            floors = FloorsBeside(_floors(connection, uid, stream) if rows else ())
        return [
            OpenRange(
                row.id,
                range_of(row),
                floors.of(row.partition_id),
                inherited=True,
                found=None if row.found is None else _scanned(row.found),
            )
            for row in rows
        ]

    def without_receipt(self, uid: str, stream: str, partitions: Iterable[Partition]) -> set[Partition]:
        """Those whose newest settled range had no receipt of its attempt: it was settled from what the target held."""
        mine = sa.select(RANGES.c.reconstructed).where(RANGES.c.uid == uid, RANGES.c.stream == stream)
        newest = mine.where(RANGES.c.state == "settled").order_by(RANGES.c.id.desc()).limit(1)
        with self._read() as connection:
            return {
                one for one in partitions if connection.scalar(newest.where(RANGES.c.partition_id == one.id)) is True
            }

    def given_up(self, uid: str, stream: str, partition_id: str, begin: int, end: int) -> set[str]:
        """The digests of the pipelines of ranges that a person has given up, and that could hold something of
        [begin, end)."""
        query = sa.select(RANGES.c.pins).where(
            *(RANGES.c.uid == uid, RANGES.c.stream == stream, RANGES.c.partition_id == partition_id),
            *(sa.text("state = 'abandoned'"), RANGES.c.begin_offset < end, RANGES.c.planned_end > begin),
        )
        with self._read() as connection:
            return {str(row.pins["pipeline"]) for row in connection.execute(query)}

    def rests(self, uid: str, stream: str) -> list[Range]:
        """What is left of ranges that closed short while records of ours stand further on in a target (a floor is
        `ahead`): from their end on, with their pins and what their limits leave. Only of ranges that are the newest of
        their partition, and where nobody has moved the offset since. Of one that is full nothing is left: what stands
        further on was written by a range behind it, which a restored ledger has forgotten."""
        with self._read() as connection:
            rows = connection.execute(_CLOSED_SHORT, {"connector": uid, "of_stream": stream})
            return [_rest_of(row, *left) for row in rows if min(left := _left_by_limits(row)) > 0]

    def plan(
        self,
        leases: Sequence[Lease],
        run_id: str,
        uid: str,
        task: int,
        ranges: Sequence[Range],
        floors: Sequence[Floor],
        beside: Begun | None = None,
    ) -> list[OpenRange]:
        """Opens `ranges`, all of one stream, in their order, and stores the floors that are given for them; other
        floors stay as they are. Opens none when other tasks have begun something since they were `beside`.

        Raises DataError, and opens none, when one of them does not go on from the committed position of its partition
        (see `continuity`) or its partition has an open range; Fenced when a lease is lost.
        """
        if not ranges:
            return []
        [stream] = {one.stream for one in ranges}
        with self._write() as connection:
            if beside:
                locked(connection, uid)
            fence(connection, leases)
            if not undisturbed(connection, uid, stream, beside):
                return []
            require_continuous(connection, uid, stream, ranges)
            moment = now()
            _store_floors(connection, uid, stream, floors)
            common = {"state": "open", "run_id": run_id, "task": task, "epoch": leases[0].epoch}
            rows = [{**range_row(uid, one), **common, "attempts": 1, "planned_at": moment} for one in ranges]
            ids = _inserted(connection, rows)
            stored = FloorsBeside(_floors(connection, uid, stream, {one.partition.id for one in ranges}))
        return [OpenRange(ids[i], one, stored.of(one.partition.id)) for i, one in enumerate(ranges)]

    def record_found(self, leases: Sequence[Lease], found: Mapping[int, ScanResult]) -> None:
        """Keeps how far `scan` has come, by range id (delivery rule 7). Raises DataError when a range is not open."""
        with self._write() as connection:
            fence(connection, leases)
            for range_id, seen in found.items():
                _change_open(connection, range_id, found=seen.encode())

    def adopt(self, leases: Sequence[Lease], run_id: str, range_ids: Sequence[int]) -> None:
        """This run goes on with ranges that an earlier one planned. Raises DataError when one is not open."""
        with self._write() as connection:
            fence(connection, leases)
            for range_id in range_ids:
                _change_open(connection, range_id, run_id=run_id, epoch=leases[0].epoch, attempts=RANGES.c.attempts + 1)

    def abandon(self, leases: Sequence[Lease], range_id: int, *, who: str, why: str) -> None:
        """Closes an open range without a receipt, on an operator's word; the committed position stays at its begin.

        What its attempts wrote stays in the target. So that the next plan looks for it before it writes, the floors of
        its partition are marked `ahead`. Raises DataError when the range is not open.
        """
        with self._write() as connection:
            fence(connection, leases)
            abandon_range(connection, range_id, who, why)


def _rest_of(row: Any, max_records: int, max_bytes: int) -> Range:
    return replace(
        range_of(row),
        begin=row.end_offset,
        max_records=max_records,
        max_bytes=max_bytes,
        evidence=row.end_evidence,
        gaps=(),
    )


def _left_by_limits(row: Any) -> tuple[int, int]:
    """Records and bytes."""
    read = row.passed if row.read is None else row.read
    return row.max_records - read, row.max_bytes - (row.bytes_read or 0)


def abandon_range(connection: Connection, range_id: int, who: str, why: str) -> None:
    _change_open(connection, range_id, state="abandoned", open_key=None, closed_at=now(), found=None)
    row = connection.execute(sa.select(RANGES).where(RANGES.c.id == range_id)).one()
    connection.execute(
        FLOORS.update()
        .where(FLOORS.c.uid == row.uid, FLOORS.c.stream == row.stream, FLOORS.c.partition_id == row.partition_id)
        .values(ahead=True, changed_at=now())
    )
    detail = {"range": range_id, "stream": row.stream, "partition": row.partition_key, "begin": row.begin_offset}
    note(connection, row.uid, "abandon", who, why, detail)


def move_up(connection: Connection, uid: str, stream: str, partition: Partition, floors: Sequence[Floor]) -> None:
    """Where a partition's floors stand before these, they are moved there."""
    for floor in floors:
        below = (FLOORS.c.target_id == target_id(floor.target)) & (FLOORS.c.position < floor.position)
        here = (FLOORS.c.uid == uid) & (FLOORS.c.stream == stream) & (FLOORS.c.partition_id == partition.id)
        connection.execute(FLOORS.update().where(here, below).values(position=floor.position, changed_at=now()))


def committed(
    connection: Connection, uid: str, stream: str, partitions: Sequence[Partition]
) -> dict[Partition, Position | None]:
    wanted = [partition.id for partition in partitions]
    query = _COMMITTED_OF if len(wanted) <= MANY else _COMMITTED
    rows = connection.execute(query, {"connector": uid, "of_stream": stream, "wanted": wanted})
    known = {row.partition_id: position_of(row) for row in rows}
    return {partition: known.get(partition.id) for partition in partitions}


def open_range_ids(connection: Connection, uid: str, stream: str, partition: Partition) -> list[int]:
    return [row.id for row in _open_rows(connection, uid, stream, {partition.id})]


def all_open_range_ids(connection: Connection, uid: str, stream: str) -> list[int]:
    """Of every partition."""
    return [row.id for row in _open_rows(connection, uid, stream, None)]


def last_planned_end(connection: Connection, uid: str, stream: str, partition: Partition) -> int:
    """Of the newest range, whatever became of it; 0 where there is none."""
    newest = sa.select(RANGES.c.planned_end).where(
        RANGES.c.uid == uid, RANGES.c.stream == stream, RANGES.c.partition_id == partition.id
    )
    return int(connection.scalar(newest.order_by(RANGES.c.id.desc()).limit(1)) or 0)


def _open_rows(connection: Connection, uid: str, stream: str, partition_ids: set[str] | None) -> Sequence[Any]:
    rows = connection.execute(_OPEN, {"connector": uid, "of_stream": stream}).all()
    return rows if partition_ids is None else [row for row in rows if row.partition_id in partition_ids]


def _floors(connection: Connection, uid: str, stream: str, partition_ids: Collection[str] | None = None) -> list[Floor]:
    """None: of every partition. Of some those that all partitions share come with them."""
    of_some = partition_ids is not None and len(partition_ids) < MANY
    wanted = ["", *partition_ids] if partition_ids is not None and of_some else []
    query = _FLOORS_OF if of_some else _FLOORS
    rows = connection.execute(query, {"connector": uid, "of_stream": stream, "wanted": wanted})
    return [floor_of(row) for row in rows]


def locked_floors(
    connection: Connection, uid: str, stream: str, partition_ids: Collection[str]
) -> dict[FloorKey, Floor]:
    """Those of these partitions; nobody else changes them before this transaction ends. All who lock floors do so in
    the same order."""
    wanted = sorted(partition_ids)
    return {
        key_of(floor): floor
        for first in range(0, len(wanted), MANY)
        for row in connection.execute(
            _LOCKED_FLOORS, {"connector": uid, "of_stream": stream, "wanted": wanted[first : first + MANY]}
        )
        if (floor := floor_of(row))
    }


def _store_floors(connection: Connection, uid: str, stream: str, floors: Sequence[Floor]) -> None:
    """Those that are new or changed. One that all partitions share is moved by settle alone: the sink knows no more
    about it than the ledger."""
    stored = locked_floors(connection, uid, stream, {floor.partition_id for floor in floors})
    changed = [floor for floor in floors if floor != stored.get(key_of(floor))]
    for floor in changed:
        before = stored.get(key_of(floor))
        if before is not None and not floor.partition_id and floor.position != before.position:
            raise DataError(
                f"A plan would move the floor of {floor.target} from {before.position} to {floor.position}",
                where=f"connector {uid}, stream {stream}",
                next_step="Nothing was planned; the next attempt reads what was settled there",
            )
    moment = now()
    upsert(connection, FLOORS, FLOOR_KEY, [floor_row(uid, stream, floor, moment) for floor in changed])


def require_continuous(connection: Connection, uid: str, stream: str, ranges: Sequence[Range]) -> None:
    """Raises DataError when one of them does not go on from where its partition stands."""
    positions = committed(connection, uid, stream, [one.partition for one in ranges])
    for one in ranges:
        fault = continues(positions[one.partition], one)
        if fault:
            where = f"connector {uid}, stream {stream}, partition {one.partition.key}, offset {one.begin}"
            raise DataError(fault, where=where, next_step="Plan again from the committed position")


def _inserted(connection: Connection, rows: list[dict[str, Any]]) -> list[int]:
    """The ids of the new rows, in their order."""
    try:
        return list(connection.scalars(_INSERT, rows))
    except IntegrityError as refused:
        if RANGES.c.open_key.name not in str(refused.orig):
            raise
        partitions = ", ".join(row["partition_key"] for row in rows)
        raise DataError(
            "A partition already has an open range",
            where=f"connector {rows[0]['uid']}, stream {rows[0]['stream']}, one of the partitions {partitions}",
            next_step="Let a run finish it, or abandon it: `waybill offsets set --abandon`",
        ) from refused


def _change_open(connection: Connection, range_id: int, **values: object) -> None:
    still_open = RANGES.update().where(RANGES.c.id == range_id, RANGES.c.state == "open")
    if connection.execute(still_open.values(**values)).rowcount != 1:
        raise DataError(f"Range {range_id} is not open", next_step="Read the open ranges again")


def _scanned(stored: bytes) -> ScanResult:
    """Loads NumPy, which few commands need."""
    from connect_core.sdk.scan import ScanResult

    return ScanResult.decode(stored)
