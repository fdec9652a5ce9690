"""Who this ledger is (delivery rule 12): a random id, a counter that every lease raises when it is taken or renewed,
and the server that it is on.

A driver remembers the counter outside the database; a ledger that comes back with a lower one was restored from a
backup and knows less than its targets. So was one that is on another server than it was, or on another timeline of it.
Called by the driver at the start of a run, and by `waybill db restored`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, ProgrammingError

from connect_core.ledger.auditing import CREATED, note
from connect_core.ledger.database import Transactions, now, pgcode
from connect_core.ledger.tables import AUDIT, FLOORS, LEASES, LEDGER

RESTORED, SERVED = "restored", "served"
_LIFT = 1_000_000
"""Added to every epoch: more than a ledger gives out between two backups."""

# The timeline is the first part of the name of the write-ahead log's file; a restore to a point in time begins a new
# one. https://www.postgresql.org/docs/current/continuous-archiving.html#BACKUP-TIMELINES
_POSTGRESQL_SERVER = sa.text(
    "SELECT system_identifier || ':' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) FROM pg_control_system()"
)
_NOT_SUPPORTED, _NOT_IN_THIS_STATE = "0A000", "55000"
_LAST_DEED = (
    sa.select(AUDIT.c.detail, AUDIT.c.done_at).where(AUDIT.c.uid.is_(None)).order_by(AUDIT.c.id.desc()).limit(1)
)
_KNOWN_SERVER = _LAST_DEED.where(AUDIT.c.action.in_((RESTORED, SERVED)))
_LAST_RESTORED = _LAST_DEED.with_only_columns(AUDIT.c.done_at).where(AUDIT.c.action == RESTORED)


@dataclass(frozen=True)
class LedgerIdentity:
    """`id` was made with the tables; `counter` is how often leases were taken and renewed. `server` is where it
    is now, and `known_server` where it was when somebody looked last; both are empty where that cannot be told."""

    id: str
    counter: int
    server: str = ""
    known_server: str = ""

    @property
    def moved(self) -> bool:
        return bool(self.server and self.known_server) and self.server != self.known_server


class Identity(Transactions):
    """The part of the ledger that knows itself."""

    def identity(self) -> LedgerIdentity:
        with self._read() as connection:
            row = connection.execute(sa.select(LEDGER)).one()
            known = connection.execute(_KNOWN_SERVER).one_or_none()
        return LedgerIdentity(row.id, row.counter, self._server(), known.detail.get("server", "") if known else "")

    def note_server(self, server: str) -> None:
        """Where this ledger is, for the next one who looks."""
        with self._write() as connection:
            note(connection, None, SERVED, "waybill", detail={"server": server})

    def mark_restored(self, *, counter: int, who: str, why: str = "") -> int:
        """This ledger was restored from a backup: nothing it says of the targets is new enough to write on.

        Marks every floor `ahead`, so that each connector looks before it writes; takes every lease from whoever held it
        and lifts its epoch above all that were given out since; lifts the counter to at least `counter`, the highest
        one seen outside. Returns the number of floors.
        """
        server = self._server()
        with self._write() as connection:
            connection.execute(LEASES.update().values(epoch=LEASES.c.epoch + _LIFT, holder=RESTORED))
            connection.execute(LEDGER.update().where(LEDGER.c.counter < counter).values(counter=counter))
            marked = connection.execute(FLOORS.update().values(ahead=True, changed_at=now())).rowcount
            note(connection, None, RESTORED, who, why, {"counter": counter, "floors": marked, "server": server})
        return marked

    def restored_at(self) -> datetime | None:
        """When this ledger was marked as restored last; None: never."""
        with self._read() as connection:
            return last_restored(connection)

    def restored_since(self, uid: str) -> bool:
        """Whether this ledger was restored after it had got to know this connector: then it may have forgotten targets
        of its, and whatever was written there. By the order of what was noted: clocks are set back."""
        created, restored = (
            sa.select(sa.func.max(AUDIT.c.id)).where(AUDIT.c.action == it) for it in (CREATED, RESTORED)
        )
        with self._read() as connection:
            first = connection.scalar(created.where(AUDIT.c.uid == uid))
            last = connection.scalar(restored)
        return last is not None and (first is None or first < last)

    def _server(self) -> str:
        """Empty for SQLite, and where the server does not say who it is."""
        if self._engine.dialect.name != "postgresql":
            return ""
        with self._read() as connection:
            try:
                return str(connection.scalar(_POSTGRESQL_SERVER))
            except DBAPIError as error:
                if not _cannot_be_asked(error):
                    raise
        return ""


def last_restored(connection: Connection) -> datetime | None:
    """None: never."""
    found: datetime | None = connection.scalar(_LAST_RESTORED)
    return found


def _cannot_be_asked(error: DBAPIError) -> bool:
    """This user may not ask, or, as on Amazon Aurora, the server has no such functions or no write-ahead log of its
    own. One that is in recovery has the code of the last, too, and is none to go on with."""
    code = pgcode(error.orig)
    no_log = code == _NOT_IN_THIS_STATE and "wal_level" in str(error.orig)
    return isinstance(error, ProgrammingError) or code == _NOT_SUPPORTED or no_log
