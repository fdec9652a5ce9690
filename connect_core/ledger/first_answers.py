"""What requests with a key of their caller's were answered first, so that the same request again is answered the same.

A key belongs to a caller. It is taken before the request is worked on, and its answer is kept for a day.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from connect_core.ledger.database import Transactions, insert_missing, now
from connect_core.ledger.tables import FIRST_ANSWERS
from connect_core.sdk.values import Json

KEPT = timedelta(hours=24)


@dataclass(frozen=True)
class FirstAnswer:
    """`status` is None as long as the request is worked on, by one `attempt` of one `server`. `digest` is that of the
    request."""

    digest: str
    server: str
    attempt: str
    status: int | None
    headers: Json | None
    body: str | None


class FirstAnswers(Transactions):
    """The part of the ledger that knows them."""

    def take_key(self, caller: str, key: str, *, digest: str, server: str, attempt: str) -> FirstAnswer:
        """What is kept for this key: where nothing was, the request of this `attempt` is worked on from now on. What is
        older than a day is forgotten."""
        begun_at = now()
        row = {"caller": caller, "request_key": key, "digest": digest, "server": server, "attempt": attempt}
        with self._write() as connection:
            connection.execute(FIRST_ANSWERS.delete().where(FIRST_ANSWERS.c.begun_at < begun_at - KEPT))
            insert_missing(connection, FIRST_ANSWERS, ("caller", "request_key"), [row | {"begun_at": begun_at}])
            columns = [FIRST_ANSWERS.c[name] for name in FirstAnswer.__dataclass_fields__]
            found = connection.execute(sa.select(*columns).where(_of(caller, key))).one()
        return FirstAnswer(*found)

    def take_over_key(self, caller: str, key: str, former: FirstAnswer, *, server: str, attempt: str) -> bool:
        """From an attempt that nobody works on any more. False where somebody was faster."""
        mine = {"server": server, "attempt": attempt, "begun_at": now()}
        return self._answer_changed(caller, key, former.attempt, mine)

    def keep_answer(self, caller: str, key: str, attempt: str, *, status: int, headers: Json, body: str) -> bool:
        """False where another attempt has taken over."""
        return self._answer_changed(caller, key, attempt, {"status": status, "headers": headers, "body": body})

    def forget_key(self, caller: str, key: str, attempt: str) -> None:
        """Of a request that may be made again."""
        mine = sa.and_(_of(caller, key), FIRST_ANSWERS.c.attempt == attempt)
        with self._write() as connection:
            connection.execute(FIRST_ANSWERS.delete().where(mine))

    def _answer_changed(self, caller: str, key: str, attempt: str, values: dict[str, Any]) -> bool:
        mine = sa.and_(_of(caller, key), FIRST_ANSWERS.c.attempt == attempt, FIRST_ANSWERS.c.status.is_(None))
        with self._write() as connection:
            return bool(connection.execute(FIRST_ANSWERS.update().where(mine).values(values)).rowcount)


def _of(caller: str, key: str) -> sa.ColumnElement[bool]:
    return sa.and_(FIRST_ANSWERS.c.caller == caller, FIRST_ANSWERS.c.request_key == key)
