"""Who this ledger is (rule 12): a random id, and a counter that every taken lease raises.

A driver remembers both outside the database; a ledger that comes back with a lower counter was restored from a backup
and knows less than its targets. Called by the driver at its start and by `waybill db restored`.
"""

from __future__ import annotations

import sqlalchemy as sa

from connect_core.ledger.auditing import note
from connect_core.ledger.database import Transactions, now
from connect_core.ledger.tables import FLOORS, LEDGER


class Identity(Transactions):
    """The part of the ledger that knows itself."""

    def identity(self) -> tuple[str, int]:
        """Its random id, made with its tables, and the number of leases that it has given out."""
        with self._read() as connection:
            row = connection.execute(sa.select(LEDGER)).one()
            return row.id, row.counter

    def mark_restored(self, *, counter: int, who: str) -> int:
        """This ledger was restored from a backup: nothing it says of the targets is new enough to write on.

        Marks every floor `ahead`, so that each connector looks before it writes, and lifts the counter to at least
        `counter`, the highest one seen outside. Returns the number of floors.
        """
        with self._write() as connection:
            connection.execute(LEDGER.update().where(LEDGER.c.counter < counter).values(counter=counter))
            marked = connection.execute(FLOORS.update().values(ahead=True, changed_at=now())).rowcount
            note(connection, None, "restored", who, detail={"counter": counter, "floors": marked})
        return marked
