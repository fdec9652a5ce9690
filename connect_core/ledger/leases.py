"""Leases: the right to work on a task or to write a target (delivery rules 3, 5, 11, 12). Called by the driver of a
run.

When a lease may be taken is the driver's business (a clean release, a silent time to live, or proof); here it is only
made sure that exactly one of those who try gets it, and that whoever lost it can change nothing any more. Every fenced
transaction starts with `fence`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from connect_core.errors import Fenced, LeaseHeld
from connect_core.ledger.connectors import locked
from connect_core.ledger.database import Transactions, now
from connect_core.ledger.tables import LEASES, LEDGER
from connect_core.sdk.values import LIVE

_SHOWN_KEY = 60


@dataclass(frozen=True)
class LeaseState:
    """A lease as it stands. `deadline_ns` is the last moment up to which a lane may write under it, on the
    CLOCK_BOOTTIME of boot `boot_id`; `ttl_s` is the time to live that the holder works with, 0 where that is unknown. A
    new holder inherits both until it renews, so that it can be waited for. `version` is the assignment's, for the lease
    of a task."""

    id: str
    epoch: int
    seq: int
    holder: str
    released: bool
    boot_id: str
    deadline_ns: int
    version: int | None = None
    ttl_s: float = 0.0


@dataclass(frozen=True)
class Lease:
    """A lease that was taken. `counter` is how often leases of the ledger of that id had been taken and renewed by then
    (delivery rule 12)."""

    id: str
    epoch: int
    holder: str
    counter: int
    ledger: str = ""


def task_lease_id(uid: str, stream: str, version: int, task: int) -> str:
    return f"{_task_prefix(uid, stream, version)}{task}"


def _task_prefix(uid: str, stream: str, version: int) -> str:
    return f"task:{uid}:{stream}:{version}:"


def target_lease_id(key: str) -> str:
    """The lease of whoever writes the target named `key`; readable at its end, unique by its hash."""
    return f"target:{hashlib.blake2b(key.encode(), digest_size=8).hexdigest()}:{key[-_SHOWN_KEY:]}"


def fence(connection: Connection, leases: Sequence[Lease]) -> None:
    """The first statement of every transaction of a run: raises Fenced unless all of `leases` are still held.

    Locks their rows until the transaction ends, in the order of their ids, so that no two runs wait for each other.
    """
    if not leases:
        raise ValueError("a fenced transaction needs a lease")
    for lease in sorted(leases, key=lambda lease: lease.id):
        _touch(connection, lease)


_BY_ID = sa.select(LEASES).where(LEASES.c.id == sa.bindparam("lease_id"))
_TOUCH = (
    LEASES.update()
    .where(
        LEASES.c.id == sa.bindparam("lease_id"),
        LEASES.c.epoch == sa.bindparam("held_epoch"),
        LEASES.c.holder == sa.bindparam("held_by"),
        LEASES.c.released.is_(False),
    )
    .values(seq=LEASES.c.seq + 1)
)


def _touch(connection: Connection, lease: Lease, **values: object) -> None:
    held = {"lease_id": lease.id, "held_epoch": lease.epoch, "held_by": lease.holder}
    if connection.execute(_TOUCH, held | values).rowcount != 1:
        raise Fenced(
            f"Epoch {lease.epoch} of the lease is over: it was taken over or released",
            where=lease.id,
            next_step="Nothing was changed; the newer holder continues",
        )


class Leases(Transactions):
    """The leases' part of the ledger."""

    def lease(self, lease_id: str) -> LeaseState | None:
        """The lease as it stands; None when nobody ever took it."""
        with self._read() as connection:
            row = connection.execute(_BY_ID, {"lease_id": lease_id}).one_or_none()
        return None if row is None else lease_state_of(row)

    def live_leases(self, uid: str, stream: str = LIVE) -> list[LeaseState]:
        """The leases of a connector's tasks that are not released, of every assignment version, oldest first."""
        query = _live_of(uid, stream).order_by(LEASES.c.version, LEASES.c.id)
        with self._read() as connection:
            return [lease_state_of(row) for row in connection.execute(query)]

    def take(
        self,
        lease_id: str,
        seen: LeaseState | None,
        holder: str,
        *,
        uid: str | None = None,
        stream: str = LIVE,
        version: int | None = None,
    ) -> Lease:
        """Takes the lease if it still is exactly as `seen` (None: never taken), with the next epoch.

        `holder` is a nonce that no other holder uses. The lease of a task must be given its `uid`, `stream` and
        assignment `version`: it is refused while a lease of another version of the same stream is not released.
        Raises LeaseHeld when somebody was faster; what somebody else holds stays as it is.
        """
        with self._write() as connection:
            if version is not None:
                _require_only_version(connection, lease_id, uid or "", stream, version)
            if seen is None:
                epoch = _insert_first(connection, lease_id, holder, uid, stream, version)
            else:
                epoch = _replace(connection, lease_id, seen, holder)
            return Lease(lease_id, epoch, holder, *_raised_counter(connection))

    def renew(self, lease: Lease, *, boot_id: str, deadline_ns: int, ttl_s: float) -> Lease:
        """Shows that the holder lives, and keeps the last deadline that it gave to a lane and its time to live. Gives
        the lease with the counter of now. Raises Fenced."""
        with self._write() as connection:
            _touch(connection, lease, boot_id=boot_id, deadline_ns=deadline_ns, ttl_s=ttl_s)
            return replace(lease, counter=_raised_counter(connection)[0])

    def release(self, lease: Lease) -> None:
        """Gives the lease back: anyone may take it at once. Raises Fenced when it was not held any more."""
        with self._write() as connection:
            _touch(connection, lease, released=True)


def lease_state_of(row: Any) -> LeaseState:
    held = (row.id, row.epoch, row.seq, row.holder, row.released)
    return LeaseState(*held, row.boot_id, row.deadline_ns, row.version, row.ttl_s)


def _live_of(uid: str, stream: str) -> sa.Select[Any]:
    return sa.select(LEASES).where(LEASES.c.uid == uid, LEASES.c.stream == stream, LEASES.c.released.is_(False))


def _require_only_version(connection: Connection, lease_id: str, uid: str, stream: str, version: int) -> None:
    """Older versions because their tasks still work; newer ones because theirs have begun (delivery rule 11).

    The connector's row is locked, not the version's: it is the one row that all versions have in common.
    """
    if not lease_id.startswith(_task_prefix(uid, stream, version)):
        raise ValueError(f"{lease_id} is not a lease of version {version} of {uid}, stream {stream}")
    locked(connection, uid)
    query = _live_of(uid, stream).where(LEASES.c.version != version).order_by(LEASES.c.version, LEASES.c.id)
    other = connection.execute(query).first()
    if other is not None:
        raise LeaseHeld(
            f"Version {version} of the assignment cannot start: {other.id} of version {other.version} is not released",
            where=lease_id,
            next_step="Wait until its holder ends, or take that lease over and release it",
        )


def _insert_first(
    connection: Connection, lease_id: str, holder: str, uid: str | None, stream: str, version: int | None
) -> int:
    row = {"id": lease_id, "epoch": 1, "seq": 1, "holder": holder, "released": False, "boot_id": "", "deadline_ns": 0}
    row |= {"uid": uid, "stream": stream, "version": version, "taken_at": now()}
    try:
        connection.execute(LEASES.insert().values(row))
    except IntegrityError as taken:
        raise _taken(lease_id) from taken
    return 1


def _replace(connection: Connection, lease_id: str, seen: LeaseState, holder: str) -> int:
    as_seen = LEASES.update().where(
        LEASES.c.id == lease_id,
        LEASES.c.epoch == seen.epoch,
        LEASES.c.seq == seen.seq,
        LEASES.c.released.is_(seen.released),
    )
    ours = as_seen.values(epoch=seen.epoch + 1, seq=seen.seq + 1, holder=holder, released=False, taken_at=now())
    if connection.execute(ours).rowcount != 1:
        raise _taken(lease_id)
    return seen.epoch + 1


def _taken(lease_id: str) -> LeaseHeld:
    advice = "Try again when it has ended; `waybill runs` shows what is at work"
    return LeaseHeld("Another run or command began to work on this meanwhile", where=lease_id, next_step=advice)


def _raised_counter(connection: Connection) -> tuple[int, str]:
    """The counter, and the id of the ledger that counts."""
    connection.execute(LEDGER.update().values(counter=LEDGER.c.counter + 1))
    row = connection.execute(sa.select(LEDGER.c.counter, LEDGER.c.id)).one()
    return int(row.counter), str(row.id)
