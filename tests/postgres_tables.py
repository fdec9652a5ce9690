"""A database that a test writes tables into, looked at with its own driver and nothing of the product."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg2
import pytest
from psycopg2.extensions import connection

Row = tuple[Any, ...]
_made: list[Database] = []
"""Those of the tests of this file so far."""


class Database:
    """One of its own on the server of an SQLAlchemy URL."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        host = parts.hostname or query["host"][0]
        port = parts.port or int(query.get("port", ["5432"])[0])
        self.options: dict[str, Any] = {"host": host, "port": port, "user": parts.username or "postgres"}
        if parts.password:
            self.options["password"] = parts.password
        self.options["database"] = parts.path.removeprefix("/")
        self._server = dict(self.options)
        name = f"tables_{uuid.uuid4().hex[:12]}"
        self.run(f"CREATE DATABASE {name}")
        self.options["database"] = name
        _made.append(self)

    def drop(self) -> None:
        """Unless something holds it: a slot, or a transaction that is prepared."""
        name, self.options = self.options["database"], self._server
        with suppress(psycopg2.Error):
            self.run(f"DROP DATABASE {name} WITH (FORCE)")

    def run(self, *statements: str) -> list[Row]:
        """Rows of the last one."""
        with closing(self.connected(autocommit=True)) as database, database.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def connected(self, *, autocommit: bool = False) -> connection:
        """A session of another program."""
        options = dict(self.options)
        database = psycopg2.connect(dbname=options.pop("database"), **options)
        database.autocommit = autocommit
        return database

    def sink(self, table: str, **more: Any) -> dict[str, Any]:
        return {"postgresql": {**self.options, "table": table, **more}}

    def source(self, table: str, **more: Any) -> dict[str, Any]:
        return {"postgresql": {**self.options, "table": table, **more}}

    def changes(self, *tables: str, **more: Any) -> dict[str, Any]:
        """Without what makes events long, and many, unless it is asked for."""
        usual = {"tables": [*tables], "snapshot": "never", "schemas": False}
        return {"postgresql_changes": {**self.options, **usual, **more}}

    def drop_slots(self) -> None:
        """Else what they keep, and their number, grow from test to test."""
        self.run(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots"
            " WHERE database = current_database() AND active_pid IS NOT NULL"
        )
        for _ in range(50):
            with suppress(psycopg2.errors.ObjectInUse):
                self.run(
                    "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
                    " WHERE database = current_database()"
                )
                return
            time.sleep(0.1)


@pytest.fixture(scope="module", autouse=True)
def databases_end_with_their_file() -> Iterator[None]:
    """Servers keep their files in memory, and each database has 8 MB of them."""
    yield
    while _made:
        _made.pop().drop()
