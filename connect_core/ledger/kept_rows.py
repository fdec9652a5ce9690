"""Where rows begin that a target has lost, and what a target is to remember of partitions that a person has placed
(delivery rules 5, 6 and 20)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from connect_core.ledger.database import Transactions, insert_missing, now
from connect_core.ledger.leases import Lease, fence
from connect_core.ledger.ranges import FLOOR_KEY, committed
from connect_core.ledger.rows import floor_row
from connect_core.ledger.tables import FLOORS, OFFSET_CHANGES, RANGES
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Floor, Position


class KeptRows(Transactions):
    """The part of the ledger that knows what targets have that count rows (`sdk.sink.Remembering`)."""

    def begin_behind(self, uid: str, stream: str, partition: Partition, target: str, count: int) -> Position | None:
        """Where the range began that brought the rows of `target` behind the first `count`; None where these end within
        a range, or no range has brought more. What a person has passed over between two ranges is no part of it."""
        columns = (RANGES.c.incarnation, RANGES.c.begin_offset, RANGES.c.pins, RANGES.c.emitted)
        mine = (RANGES.c.uid == uid, RANGES.c.stream == stream, RANGES.c.partition_id == partition.id)
        settled = sa.select(*columns, RANGES.c.delivered_where).where(*mine, RANGES.c.state == "settled")
        reached = 0
        with self._read() as connection:
            for row in connection.execute(settled.order_by(RANGES.c.id)):
                if row.pins["target"].get("target") != target:
                    continue
                if reached == count and row.emitted != 0:
                    return Position(row.incarnation, row.begin_offset)
                reached = max(reached, _end_of(row, target))
                if reached > count:
                    return None
        return None

    def placed(self, uid: str, stream: str, partitions: Sequence[Partition]) -> dict[Partition, Position]:
        """Where those of these partitions are that a person has ever placed, as an import of offsets does."""
        table = OFFSET_CHANGES
        query = sa.select(table.c.partition_id).where(table.c.uid == uid, table.c.stream == stream).distinct()
        with self._read() as connection:
            by_hand = set(connection.scalars(query))
            mine = [one for one in partitions if one.id in by_hand]
            return {one: at for one, at in committed(connection, uid, stream, mine).items() if at}

    def keep_floors(self, leases: Sequence[Lease], uid: str, stream: str, floors: Sequence[Floor]) -> None:
        """Of targets that have none yet. Raises Fenced when a lease is lost."""
        with self._write() as connection:
            fence(connection, leases)
            moment = now()
            insert_missing(connection, FLOORS, FLOOR_KEY, [floor_row(uid, stream, one, moment) for one in floors])


def _end_of(row: Any, target: str) -> int:
    """How many rows of its partition the target had behind a settled range, if that has written any."""
    return max((int(end) for _, end in (row.delivered_where or {}).get(target, ())), default=0)
