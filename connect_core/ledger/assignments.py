"""Which task has which partition, in versions (rule 11). Called by the driver and by the makers of DAGs.

A partition keeps its slot for ever and its task for as long as the number of tasks stays. New partitions join the
current version: nobody had them before. Another number of tasks makes a new version, whose tasks may only start when
no lease of an older one is live (`leases.Leases.take`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from connect_core.ledger.connectors import locked
from connect_core.ledger.database import Transactions, now
from connect_core.ledger.tables import ASSIGNMENT_SHARES, ASSIGNMENTS
from connect_core.records import Partition


class Share(NamedTuple):
    """`slot` numbers the partitions of a connector in order of appearance; `task` is the one that has it."""

    slot: int
    task: int


@dataclass(frozen=True)
class Assignment:
    """One version: `version` 0 stands for "nothing was assigned yet"."""

    version: int
    tasks: int
    shares: dict[Partition, Share]


def assigned(current: Assignment, partitions: Iterable[Partition], tasks: int) -> Assignment:
    """The assignment that holds when these partitions are there and this many tasks share them. Pure.

    The same for any order of the input. Partitions that are gone keep their share: they may come back.
    """
    if tasks < 1:
        raise ValueError(f"{tasks} tasks cannot share partitions")
    if current.version and tasks == current.tasks:
        return Assignment(current.version, tasks, _joined(current.shares, partitions, tasks))
    slots = sorted((share.slot, partition) for partition, share in current.shares.items())
    evenly = {partition: Share(slot, place % tasks) for place, (slot, partition) in enumerate(slots)}
    return Assignment(current.version + 1, tasks, _joined(evenly, partitions, tasks))


def _joined(shares: Mapping[Partition, Share], partitions: Iterable[Partition], tasks: int) -> dict[Partition, Share]:
    joined = dict(shares)
    load = [0] * tasks
    for share in shares.values():
        load[share.task] += 1
    for partition in sorted(set(partitions) - shares.keys()):
        task = load.index(min(load))
        joined[partition] = Share(len(joined), task)
        load[task] += 1
    return joined


class Assignments(Transactions):
    """The assignments' part of the ledger."""

    def assign(self, uid: str, partitions: Sequence[Partition], tasks: int) -> Assignment:
        """Gives each new partition a slot and a task; makes a new version when the number of tasks has changed.

        Writes nothing when nothing is new. Raises ConfigError for an unknown uid.
        """
        with self._read() as connection:
            current = _newest(connection, uid)
        if assigned(current, partitions, tasks) == current:
            return current
        with self._write() as connection:
            locked(connection, uid)
            current = _newest(connection, uid)
            wanted = assigned(current, partitions, tasks)
            _store(connection, uid, current, wanted)
            return wanted

    def partitions(self, uid: str) -> dict[Partition, Share]:
        """The shares of the newest version; empty when nothing was assigned yet."""
        return self.assignment(uid).shares

    def assignment(self, uid: str, version: int | None = None) -> Assignment:
        """One version, the newest unless told; version 0 without shares when there is none."""
        with self._read() as connection:
            return _newest(connection, uid) if version is None else _stored(connection, uid, version)


# Built once: building a statement costs more than running it.
_NEWEST = sa.select(sa.func.max(ASSIGNMENTS.c.version)).where(ASSIGNMENTS.c.uid == sa.bindparam("connector"))
_TASKS = sa.select(ASSIGNMENTS.c.tasks).where(
    ASSIGNMENTS.c.uid == sa.bindparam("connector"), ASSIGNMENTS.c.version == sa.bindparam("wanted")
)
_SHARES = (
    sa.select(ASSIGNMENT_SHARES)
    .where(
        ASSIGNMENT_SHARES.c.uid == sa.bindparam("connector"),
        ASSIGNMENT_SHARES.c.version == sa.bindparam("wanted"),
    )
    .order_by(ASSIGNMENT_SHARES.c.slot)
)


def _newest(connection: Connection, uid: str) -> Assignment:
    newest = connection.scalar(_NEWEST, {"connector": uid})
    return _stored(connection, uid, newest or 0)


def _stored(connection: Connection, uid: str, version: int) -> Assignment:
    wanted = {"connector": uid, "wanted": version}
    tasks = connection.scalar(_TASKS, wanted)
    if tasks is None:
        return Assignment(0, 0, {})
    found = {Partition(row.partition_key): Share(row.slot, row.task) for row in connection.execute(_SHARES, wanted)}
    return Assignment(version, tasks, found)


def _store(connection: Connection, uid: str, current: Assignment, wanted: Assignment) -> None:
    same = wanted.version == current.version
    if not same:
        connection.execute(
            ASSIGNMENTS.insert().values(uid=uid, version=wanted.version, tasks=wanted.tasks, created_at=now())
        )
    rows = [
        {
            "uid": uid,
            "version": wanted.version,
            "partition_id": partition.id,
            "partition_key": partition.key,
            "slot": share.slot,
            "task": share.task,
        }
        for partition, share in wanted.shares.items()
        if not (same and partition in current.shares)
    ]
    if rows:
        connection.execute(ASSIGNMENT_SHARES.insert(), rows)
