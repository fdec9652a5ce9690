"""The life cycle of partitions (delivery rule 25): which of them are not simply active, since when, and why.

Written by the driver of a run, fenced; read by whoever shows what moves and what does not. A partition without a row
has always been active.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy import Connection

from connect_core.ledger.database import Transactions, now, upsert
from connect_core.ledger.leases import Lease, fence
from connect_core.ledger.rows import Row, storable
from connect_core.ledger.tables import PARTITIONS
from connect_core.sdk.records import Partition
from connect_core.sdk.values import LIVE

Name = Literal["active", "retired", "ended", "quarantined"]

_KEY = ("uid", "stream", "partition_id")


@dataclass(frozen=True)
class PartitionState:
    """`active`: what comes is moved. `retired`: the document names it no more. `ended`: read completely and gone.
    `quarantined`: it failed while others went on; the next run tries it again.

    `reason` says why, with what to do next; `kind` and `exit_code` are those of the failure of a quarantined one.
    `since` and `changed_at` are set by the ledger: when it came into this state, and when that was last stored.
    """

    state: Name
    reason: str = ""
    kind: str = ""
    exit_code: int | None = None
    since: datetime | None = None
    changed_at: datetime | None = None


class PartitionStates(Transactions):
    """The part of the ledger that knows which partitions were put aside."""

    def partition_states(self, uid: str, stream: str = LIVE) -> dict[Partition, PartitionState]:
        """In order of their keys; none of a partition that was never put aside."""
        with self._read() as connection:
            rows = connection.execute(_STATES, {"connector": uid, "of_stream": stream}).all()
        return {Partition(row.partition_key): partition_state_of(row) for row in rows}

    def set_partition_states(
        self, leases: Sequence[Lease], uid: str, stream: str, states: Mapping[Partition, PartitionState]
    ) -> None:
        """Where a partition was in that state already, `since` stays. Raises Fenced when a lease is lost."""
        if not states:
            return
        with self._write() as connection:
            fence(connection, leases)
            before = _known(connection, uid, stream)
            moment = now()
            upsert(
                connection,
                PARTITIONS,
                _KEY,
                [_row(uid, stream, one, state, before.get(one.id), moment) for one, state in states.items()],
            )


# Built once: building a statement costs more than running it.
_STATES = (
    sa.select(PARTITIONS)
    .where(PARTITIONS.c.uid == sa.bindparam("connector"), PARTITIONS.c.stream == sa.bindparam("of_stream"))
    .order_by(PARTITIONS.c.partition_key)
)


def _known(connection: Connection, uid: str, stream: str) -> dict[str, Any]:
    return {row.partition_id: row for row in connection.execute(_STATES, {"connector": uid, "of_stream": stream})}


def _row(uid: str, stream: str, partition: Partition, state: PartitionState, before: Any, moment: datetime) -> Row:
    same = before is not None and before.state == state.state
    return {
        "uid": uid,
        "stream": stream,
        "partition_id": partition.id,
        "partition_key": partition.key,
        "state": state.state,
        "reason": storable(state.reason),
        "kind": state.kind[:255],
        "exit_code": state.exit_code,
        "since": before.since if same else moment,
        "changed_at": moment,
    }


def partition_state_of(row: Any) -> PartitionState:
    return PartitionState(row.state, row.reason, row.kind, row.exit_code, row.since, row.changed_at)
