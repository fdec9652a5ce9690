"""Who did what: a row for each change that a person made. Written by the other modules inside their transactions."""

from __future__ import annotations

from sqlalchemy import Connection

from connect_core.ledger.database import now
from connect_core.ledger.tables import AUDIT
from connect_core.sdk.values import Json

CREATED = "create"


def note(
    connection: Connection, uid: str | None, action: str, who: str, why: str = "", detail: Json | None = None
) -> None:
    connection.execute(
        AUDIT.insert().values(uid=uid, action=action, who=who, why=why, detail=detail or {}, done_at=now())
    )
