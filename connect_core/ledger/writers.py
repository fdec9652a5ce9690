"""What documents and backfills there were when one more was checked beside them: a file has one writer, and no
transaction of the database can see that. So who stores one says what it was checked beside, and is refused where more
have come since. It checks again then."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from connect_core.errors import Retriable
from connect_core.ledger.database import Transactions
from connect_core.ledger.tables import BACKFILLS, CONNECTOR_REVISIONS

_LOCK = 0x5741594C
"""Of PostgreSQL: one at a time compares and stores, so that none is seen too late. SQLite has one writer anyway."""


class WritersSeen(NamedTuple):
    """How many revisions of documents, and backfills, were ever stored. Both only grow."""

    revisions: int = 0
    backfills: int = 0


class WritersChanged(Retriable):
    """Nothing was stored: check again beside what is there now."""


class Writers(Transactions):
    """Part of `Ledger`."""

    def writers_seen(self) -> WritersSeen:
        """To be asked before what one checks beside is read."""
        with self._read() as connection:
            return _seen(connection)


def require_seen(connection: Connection, seen: WritersSeen | None) -> None:
    """The first thing in a transaction that stores a document or a backfill, before it locks anything else. Raises
    WritersChanged. None: it was checked beside nothing."""
    if seen is None:
        return
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    if _seen(connection) != seen:
        raise WritersChanged(
            "Another command has stored a document or begun a backfill at the same moment", next_step="Try again"
        )


def _seen(connection: Connection) -> WritersSeen:
    counts = [sa.select(sa.func.count()).select_from(table) for table in (CONNECTOR_REVISIONS, BACKFILLS)]
    return WritersSeen(*(connection.scalar(count) or 0 for count in counts))
