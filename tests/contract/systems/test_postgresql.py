"""A table of PostgreSQL in the suite of sinks that write rows and a marker in one transaction."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg2
import pyarrow as pa
import pytest

from connect_core.errors import ConfigError, Retriable
from connect_core.sdk.batches import ROW
from connect_core.sdk.sink import Sink
from connect_core.sdk.testing import driving
from connect_core.sdk.testing.kits import TransactionContract
from connect_core.sdk.testing.sinks import SimpleCase
from connect_core.sdk.values import Json
from connect_core.stack import processes
from connect_core.systems import sink
from connect_core.systems.postgresql.connecting import connected
from connect_core.systems.postgresql.options import PostgresSinkOptions
from connect_core.work import Side
from tests.contract.systems.rows import of_rows
from tests.postgres_pooler import pooled

pytestmark = pytest.mark.server


def options_of(url: str) -> Json:
    """How the sink reaches the database of an SQLAlchemy URL."""
    parts = urlsplit(url)
    host = parts.hostname or parse_qs(parts.query)["host"][0]
    given = {"host": host, "database": parts.path.removeprefix("/"), "user": parts.username, "password": parts.password}
    return {name: value for name, value in given.items() if value} | ({"port": parts.port} if parts.port else {})


class PostgresCase(SimpleCase):
    refused = b"refused"

    def __init__(self, options: Json) -> None:
        self._options = options
        self._table = f"rows_{uuid.uuid4().hex[:12]}"
        check = "CHECK (value <> 'refused'::bytea)"
        self.run(f"CREATE TABLE {self._table} (number bigserial PRIMARY KEY, key text, value bytea {check})")

    def sink(self) -> Sink:
        fields = {"key": "text", "value": "bytes"}
        table = {"table": self._table, "markers": f"{self._table}_markers", "lock_timeout_s": 2}
        made: Any = sink(Side("postgresql", {**self._options, **table, "row_fields": fields}))
        made.connect = of_rows(made.connect, "key", "value")
        return made  # type: ignore[no-any-return]

    def content(self, behind: int = 0) -> Sequence[bytes | None]:
        rows = self.run(f"SELECT value FROM {self._table} ORDER BY number OFFSET {behind}")
        return [None if value is None else bytes(value) for (value,) in rows]

    def break_(self) -> None:
        self.run(f"ALTER TABLE {self._table} RENAME TO {self._table}_elsewhere")

    def run(self, statement: str) -> list[tuple[memoryview | None, ...]]:
        arguments = {"dbname" if name == "database" else name: value for name, value in self._options.items()}
        with closing(psycopg2.connect(**arguments)) as database:
            database.autocommit = True
            with database.cursor() as cursor:
                cursor.execute(statement)
                return cursor.fetchall() if cursor.description else []


@pytest.mark.parametrize(
    "altered", ["ALTER value TYPE numeric(10,0)", "SET UNLOGGED", "ADD COLUMN more text NOT NULL DEFAULT ''"]
)
@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_a_table_that_was_altered_since_it_was_looked_at_is_not_written(
    postgres_url: str, altered: str, mode: str
) -> None:
    """A column of another type rounds, and says nothing."""
    case, table = PostgresCase(options_of(postgres_url)), f"prices_{uuid.uuid4().hex[:12]}"
    case.run(f"CREATE TABLE {table} (id bigint PRIMARY KEY, value numeric(10,2))")
    fields = {"id": "int64", "value": "decimal(10,2)"}
    options = {**options_of(postgres_url), "table": table, "mode": mode, "row_fields": fields}
    columns = [pa.array([1]), pa.array([Decimal("1.25")], pa.decimal128(10, 2))]
    records = driving.records([b"x"]).append_column(ROW, pa.StructArray.from_arrays(columns, [*fields]))
    made: Any = sink(Side("postgresql", options))
    made.prepare()
    with made.connect() as connection:
        connection.begin("a")
        connection.write(records)
        connection.rollback()
        case.run(f"ALTER TABLE {table} {altered}")
        connection.begin("a")
        with pytest.raises(Retriable, match="altered while it was written"):
            connection.write(records)
        connection.rollback()
    assert case.run(f"SELECT * FROM {table}") == []


class TestTheTable(TransactionContract):
    steps, deaths = 30, 8

    @pytest.fixture
    def target(self, postgres_url: str) -> Iterator[PostgresCase]:
        return PostgresCase(options_of(postgres_url))


def test_a_column_that_a_key_includes_is_none_of_it(postgres_url: str) -> None:
    case, table = PostgresCase(options_of(postgres_url)), f"prices_{uuid.uuid4().hex[:12]}"
    case.run(f"CREATE TABLE {table} (id bigint, value text, PRIMARY KEY (id) INCLUDE (value))")
    options = {**options_of(postgres_url), "table": table, "mode": "upsert"}
    made: Any = sink(Side("postgresql", {**options, "row_fields": {"id": "int64", "value": "text"}}))
    made.prepare()
    with made.connect() as connection:
        for value in ("first", "second"):
            rows = pa.StructArray.from_arrays([pa.array([1]), pa.array([value])], ["id", "value"])
            connection.begin("a")
            connection.write(driving.records([b"x"]).append_column(ROW, rows))
            connection.commit("a", "")
    assert case.run(f"SELECT * FROM {table}") == [(1, "second")]


def test_a_session_without_its_settings_is_left(postgres_url: str) -> None:
    """Times would come in the server's zone, and floats with fewer digits."""
    options = {**options_of(postgres_url), "table": "t"}
    with pooled(options) as through, pytest.raises(ConfigError, match=r"statement_timeout.*a connection pooler"):
        connected(PostgresSinkOptions.model_validate(through), "here")
    connected(PostgresSinkOptions.model_validate(options), "here").close()


_WAITS = """
import json, sys
from connect_core.systems.postgresql.connecting import connected
from connect_core.systems.postgresql.options import PostgresSinkOptions
options = PostgresSinkOptions.model_validate(json.loads(sys.argv[1]))
with connected(options, "here").cursor() as asking:
    asking.execute("SELECT pg_sleep(300), " + sys.argv[2])
"""


def test_a_statement_ends_with_the_process_that_waits_for_it(postgres_url: str) -> None:
    """Else it would hold its locks, and rows that others may not pass, long after its lane was ended."""
    case, mark = PostgresCase(options_of(postgres_url)), uuid.uuid4().hex
    options = {**options_of(postgres_url), "table": "t", "statement_timeout_s": 600}
    running = f"SELECT pid FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(300), %' || '{mark}' || '%'"
    with subprocess.Popen([sys.executable, "-c", _WAITS, json.dumps(options), f"'{mark}'"]) as waits:
        try:
            assert processes.wait_until(lambda: case.run(f"{running} AND pid <> pg_backend_pid()") != [], 60)
        finally:
            waits.kill()
    assert processes.wait_until(lambda: case.run(f"{running} AND pid <> pg_backend_pid()") == [], 60)
