"""Which task has which partition, in versions (delivery rule 11), as `planning.assigning` shares them out. Called by
the driver.

The tasks of a new version may only start when no lease of an older one is live (`leases.Leases.take`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sqlalchemy as sa
from sqlalchemy import Connection

from connect_core.ledger.connectors import locked
from connect_core.ledger.database import Transactions, now
from connect_core.ledger.tables import ASSIGNMENT_SHARES, ASSIGNMENTS
from connect_core.planning import Assignment, Share, assigned
from connect_core.sdk.records import Partition


class Assignments(Transactions):
    """The assignments' part of the ledger."""

    def assign(self, uid: str, partitions: Sequence[Partition], tasks: int, strategy: str = "even") -> Assignment:
        """Gives each new partition a slot and a task; makes a new version when number of tasks or strategy changed.

        Writes nothing when nothing is new. Raises ConfigError for an unknown uid.
        """
        assignment = self._assign(uid, partitions, tasks, strategy, known=None)
        assert assignment is not None
        return assignment

    def assign_beside(
        self, uid: str, partitions: Sequence[Partition], tasks: int, strategy: str, known: Collection[Partition]
    ) -> Assignment | None:
        """The same, for partitions that a source made knowing of these: None, and nothing is written, when there is
        something to write and others have been given since. What is theirs now may be what was found."""
        return self._assign(uid, partitions, tasks, strategy, known)

    def _assign(
        self,
        uid: str,
        partitions: Sequence[Partition],
        tasks: int,
        strategy: str,
        known: Collection[Partition] | None,
    ) -> Assignment | None:
        with self._read() as connection:
            current = _newest(connection, uid)
        if assigned(current, partitions, tasks, strategy) == current:
            return current
        with self._write() as connection:
            locked(connection, uid)
            current = _newest(connection, uid)
            if known is not None and current.shares.keys() != set(known):
                return None
            wanted = assigned(current, partitions, tasks, strategy)
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
_VERSION = sa.select(ASSIGNMENTS.c.tasks, ASSIGNMENTS.c.strategy).where(
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
    version_row = connection.execute(_VERSION, wanted).one_or_none()
    if version_row is None:
        return Assignment(0, 0, {})
    found = {Partition(row.partition_key): Share(row.slot, row.task) for row in connection.execute(_SHARES, wanted)}
    return Assignment(version, version_row.tasks, found, version_row.strategy)


def _store(connection: Connection, uid: str, current: Assignment, wanted: Assignment) -> None:
    same = wanted.version == current.version
    if not same:
        row = {"uid": uid, "version": wanted.version, "tasks": wanted.tasks, "strategy": wanted.strategy}
        connection.execute(ASSIGNMENTS.insert().values(**row, created_at=now()))
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
