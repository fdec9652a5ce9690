"""A database with a server of which nothing is known: one of PostgreSQL under another name."""

from __future__ import annotations

import uuid
from functools import cached_property
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.psycopg2 import PGDialect_psycopg2
from sqlalchemy.pool import NullPool

URL = "elsewhere://db.example.com/shop"


class _Elsewhere(PGDialect_psycopg2):
    name = "elsewhere"
    supports_statement_cache = True


class Elsewhere:
    """A schema of its own, which `sql` reaches as `URL`."""

    def __init__(self, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._url, self._schema = postgres_url, f"s{uuid.uuid4().hex[:9]}"
        self.away = False
        self.run(f"CREATE SCHEMA {self._schema}")
        monkeypatch.setattr("connect_core.systems.sql.connecting.engine_of", self._engine)

    def run(self, *statements: str) -> list[Any]:
        """The rows of the last one."""
        engine = self.made()
        with engine.begin() as connection:
            for statement in statements:
                done = connection.exec_driver_sql(statement)
            return [tuple(row) for row in done.all()] if done.returns_rows else []

    def _engine(self, options: Any, where: str, opens: str) -> sa.Engine:
        assert options.url == URL
        return self._no_server if self.away else self._server

    @cached_property
    def _server(self) -> sa.Engine:
        return self._elsewhere()

    @cached_property
    def _no_server(self) -> sa.Engine:
        return self._elsewhere(port=1)

    def _elsewhere(self, **more: Any) -> sa.Engine:
        engine = self.made(connect_timeout=1, **more)
        engine.dialect.__class__ = _Elsewhere
        return engine

    def made(self, **more: Any) -> sa.Engine:
        given = {"options": f"-c search_path={self._schema}", **more}
        return sa.create_engine(self._url, connect_args=given, poolclass=NullPool, hide_parameters=True)
