"""A table of either database whose rows have the time of their last change, for the tests of what reads it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pyarrow as pa

from connect_core.sdk.records import Partition
from connect_core.sdk.values import Bounds, Position, Range, SourceBatch
from connect_core.systems.mysql.source import MysqlChangedRows
from connect_core.systems.mysql.source import rows_of as mysql_rows
from connect_core.systems.mysql.source_options import MysqlSourceOptions
from connect_core.systems.postgresql.source import PostgresChangedRows
from connect_core.systems.postgresql.source import rows_of as postgres_rows
from connect_core.systems.postgresql.source_options import PostgresSourceOptions
from connect_core.systems.tables.reading import TableRows
from tests import mariadb, postgres_tables

Database = mariadb.Database | postgres_tables.Database
DELAY_S = 0.1


def _bodies(found: SourceBatch) -> SourceBatch:
    records = found.records
    bodies = [json.loads(value)["body"].encode() for value in records.column("value").to_pylist()]
    place = records.schema.get_field_index("value")
    return replace(found, records=records.set_column(place, "value", pa.array(bodies, pa.binary())))


class _OfPostgres(PostgresChangedRows):
    """The suite compares values: those of the column `body` alone."""

    def _page(self, wanted: Range, begin: int, end: int, most: int, most_bytes: int) -> SourceBatch:
        return _bodies(super()._page(wanted, begin, end, most, most_bytes))


class _OfMysql(MysqlChangedRows):
    def _page(self, wanted: Range, begin: int, end: int, most: int, most_bytes: int) -> SourceBatch:
        return _bodies(super()._page(wanted, begin, end, most, most_bytes))


class ChangedCase:
    """Rows of a table `t`. Its statements are the same in both databases, but for what `now` and `columns` say."""

    unkept = frozenset({"null", "every byte", "not text", "NUL"})
    columns = "id bigint PRIMARY KEY, body text, at timestamptz NOT NULL"
    now = "now()"

    def __init__(self, database: Database) -> None:
        self.database = database
        mine = {"table": "t", "timestamp": "at", "delay_s": DELAY_S, "every_s": 0.02, "open_transactions_s": 0.2}
        self.options: dict[str, Any] = {**database.options, **mine}
        self.partition = Partition("public.t")
        self.number = 0
        self.make()

    def make(self, columns: str = "") -> None:
        self.database.run("DROP TABLE IF EXISTS t", f"CREATE TABLE t ({columns or self.columns})")

    def whole(self, **more: Any) -> TableRows[Any]:
        """All of its rows in each run."""
        return postgres_rows(PostgresSourceOptions.model_validate({**self._untimed, "bulk": True, **more}))

    @property
    def _untimed(self) -> dict[str, Any]:
        return {name: value for name, value in self.options.items() if name not in ("timestamp", "delay_s")}

    def source(self, **more: Any) -> TableRows[Any]:
        return _OfPostgres(PostgresSourceOptions.model_validate({**self.options, **more}))

    def append(self, values: Sequence[bytes | None]) -> None:
        with closing(self.database.connected()) as connection, connection.cursor() as writing:
            writing.execute("BEGIN")
            for value in values:
                self.number += 1
                self.insert(writing, self.number, (value or b"").decode())
            writing.execute("COMMIT")

    def insert(self, writing: Any, number: int, body: str) -> None:
        writing.execute(f"INSERT INTO t VALUES (%s, %s, {self.now})", (number, body))

    def update(self, number: int, body: str) -> None:
        self.database.run(f"UPDATE t SET body = '{body}', at = {self.now} WHERE id = {number}")

    def break_(self) -> None:
        self.options = {**self.options, "host": "127.0.0.1", "port": 1}

    def bounds(self, at: Position | None = None) -> Bounds:
        return self.source().available_offsets({self.partition: at})[self.partition]


class ChangedCaseOfMysql(ChangedCase):
    columns = "id bigint PRIMARY KEY, body longtext, at timestamp(6) NOT NULL"
    now = "NOW(6)"
    database: mariadb.Database

    def __init__(self, database: mariadb.Database) -> None:
        super().__init__(database)
        self.partition = Partition(f"{database.name}.t")

    def whole(self, **more: Any) -> TableRows[Any]:
        return mysql_rows(MysqlSourceOptions.model_validate({**self._untimed, "bulk": True, **more}))

    def source(self, **more: Any) -> TableRows[Any]:
        return _OfMysql(MysqlSourceOptions.model_validate({**self.options, **more}))


def let_seconds_pass(seconds: float = 1 + DELAY_S) -> None:
    """What was written before has a time then that is settled."""
    time.sleep(seconds)
