"""Who may call `waybill serve`: tokens, of which the ledger has the digest alone.

A token is found by its digest, so that nothing is compared letter by letter, which a clock could tell. It is 32 random
bytes: nobody guesses one, and its digest needs no salt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from connect_core.errors import ConfigError
from connect_core.ledger.auditing import note
from connect_core.ledger.database import Transactions, insert_missing, now
from connect_core.ledger.tables import ACCESS_TOKENS


@dataclass(frozen=True)
class AccessToken:
    """`connectors` are patterns of the names that it is for. It never expires without `expires_at`."""

    name: str
    role: str
    connectors: tuple[str, ...]
    made_at: datetime
    made_by: str
    expires_at: datetime | None
    revoked_at: datetime | None


class AccessTokens(Transactions):
    """The part of the ledger that knows the tokens."""

    def add_token(
        self, name: str, digest: str, *, role: str, connectors: Sequence[str], expires_at: datetime | None, who: str
    ) -> AccessToken:
        """Raises ConfigError where one of this name is there, or was."""
        made = AccessToken(name, role, tuple(connectors), now(), who, expires_at, None)
        values = {**vars(made), "connectors": list(connectors), "sha256": digest}
        with self._write() as connection:
            insert_missing(connection, ACCESS_TOKENS, ("name",), [values])
            if connection.scalar(sa.select(ACCESS_TOKENS.c.sha256).where(ACCESS_TOKENS.c.name == name)) != digest:
                raise ConfigError(
                    f"There is a token {name} already, or was",
                    next_step="Take another name: what was done with a token is kept under its name",
                )
            until = expires_at.isoformat() if expires_at else None
            detail = {"token": name, "role": role, "connectors": list(connectors), "expires_at": until}
            note(connection, None, "create token", who, detail=detail)
        return made

    def revoke_token(self, name: str, *, who: str) -> AccessToken:
        """One that was revoked before stays as it is. Raises ConfigError for a name that is not there."""
        here = ACCESS_TOKENS.c.name == name
        with self._write() as connection:
            open_ = sa.and_(here, ACCESS_TOKENS.c.revoked_at.is_(None))
            if connection.execute(ACCESS_TOKENS.update().where(open_).values(revoked_at=now())).rowcount:
                note(connection, None, "revoke token", who, detail={"token": name})
            if (found := _one(connection, here)) is None:
                raise ConfigError(f"There is no token {name}", next_step="See which there are: waybill tokens list")
        return found

    def access_tokens(self) -> list[AccessToken]:
        """All that were ever made, by name."""
        with self._read() as connection:
            rows = connection.execute(sa.select(ACCESS_TOKENS).order_by(ACCESS_TOKENS.c.name))
            return [_token_of(row) for row in rows]

    def access_token(self, digest: str) -> AccessToken | None:
        """That with this digest, also when it is expired or revoked."""
        with self._read() as connection:
            return _one(connection, ACCESS_TOKENS.c.sha256 == digest)


def _one(connection: Connection, which: sa.ColumnElement[bool]) -> AccessToken | None:
    row = connection.execute(sa.select(ACCESS_TOKENS).where(which)).one_or_none()
    return None if row is None else _token_of(row)


def _token_of(row: Any) -> AccessToken:
    return AccessToken(
        row.name, row.role, tuple(row.connectors), row.made_at, row.made_by, row.expires_at, row.revoked_at
    )
