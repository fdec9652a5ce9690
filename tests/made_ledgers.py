"""A new SQLite ledger of a test process gets its tables by the statements that all migrations came to, once: to migrate
each takes four times as long, and tests make thousands. Those of migrations themselves ask for `migrations`."""

from __future__ import annotations

import secrets
import sqlite3
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
import sqlalchemy as sa

from connect_core.ledger import schema
from connect_core.ledger.tables import LEDGER

_migrate = schema._migrate


@pytest.fixture(scope="session", autouse=True)
def ledgers_are_migrated_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "_migrate", migrate_or_copy)
        yield


@pytest.fixture
def migrations(monkeypatch: pytest.MonkeyPatch) -> None:
    """They run one by one, as for users."""
    monkeypatch.setattr(schema, "_migrate", _migrate)


def migrate_or_copy(connection: sa.Connection) -> None:
    if connection.dialect.name != "sqlite" or schema._version(connection) is not None:
        _migrate(connection)
        return
    for statement in _statements():
        connection.exec_driver_sql(statement)
    own = {"id": secrets.token_hex(8), "created_at": datetime.now(UTC)}
    connection.execute(sa.update(LEDGER).values(own))  # each is another one


@cache
def _statements() -> list[str]:
    """Of a ledger that was migrated."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "_migrate", _migrate)
        path = Path(folder) / "ledger.db"
        schema.upgrade(f"sqlite:///{path}")
        migrated = sqlite3.connect(path)
        try:
            return [one for one in migrated.iterdump() if one not in ("BEGIN TRANSACTION;", "COMMIT;")]
        finally:
            migrated.close()
