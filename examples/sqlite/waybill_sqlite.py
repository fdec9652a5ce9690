"""A sink that inserts records into a table of an SQLite database: transactions, exactly once."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Annotated

import pyarrow as pa
from pydantic import BaseModel, Field, StringConstraints

from connect_core.errors import ConfigError, Unreachable
from connect_core.sdk.kits.refused import RowsRefused
from connect_core.sdk.kits.transactions import TransactionSink
from connect_core.sdk.plugin import Plugin
from connect_core.sdk.records import decode_headers

MARKERS = "waybill_markers"
COLUMNS = "(key TEXT, value BLOB, headers TEXT, stored_at TEXT)"


class Options(BaseModel):
    """Records go into the columns `key`, `value` (their bytes), `headers` (a JSON object) and `stored_at` of a table,
    which is made if it is missing. What a record lacks is NULL. Its topic and its tags are not kept, nor a header that
    another one of the same name follows."""

    path: Path = Field(json_schema_extra={"kind": "path"})
    table: Annotated[str, StringConstraints(pattern=r"[A-Za-z_][A-Za-z0-9_]*")]
    busy_s: float = 10


class Table(TransactionSink):
    def __init__(self, options: Options, resources: ExitStack | None = None) -> None:
        super().__init__(target=f"{options.path.absolute()}/{options.table}")
        self._options = options

    def prepare(self) -> None:
        if not self._options.path.parent.is_dir():
            raise ConfigError(f"There is no folder {self._options.path.parent}", next_step="Make it, or name another")
        with self.connect() as connection:
            connection.run("PRAGMA journal_mode = WAL")
            connection.run(f"CREATE TABLE IF NOT EXISTS {MARKERS} (name TEXT PRIMARY KEY, marker TEXT NOT NULL)")
            connection.run(f"CREATE TABLE IF NOT EXISTS {self._options.table} {COLUMNS}")

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        options = self._options
        with reached(self.target):
            database = sqlite3.connect(options.path, timeout=options.busy_s, isolation_level=None)
        with closing(database):  # which rolls back
            yield Connection(database, options.table, self.target)


class Connection:
    def __init__(self, database: sqlite3.Connection, table: str, where: str) -> None:
        self._database, self._table, self._where = database, table, where

    def run(self, statement: str, *values: object) -> sqlite3.Cursor:
        with reached(self._where):
            return self._database.execute(statement, values)

    def begin(self, name: str) -> str | None:
        self.run("BEGIN IMMEDIATE")  # one writer at a time: the second one waits here
        row = self.run(f"SELECT marker FROM {MARKERS} WHERE name = ?", name).fetchone()
        return row[0] if row else None

    def write(self, records: pa.RecordBatch) -> None:
        keys, values, headers, times = (
            records.column(name).to_pylist() for name in ("key", "value", "headers", "timestamp")
        )
        rows = zip(keys, values, map(as_json, headers), [time and str(time) for time in times], strict=True)
        try:
            with reached(self._where):
                into = f"INSERT INTO {self._table} (key, value, headers, stored_at) VALUES (?, ?, ?, ?)"
                self._database.executemany(into, rows)
        except sqlite3.IntegrityError as error:
            raise RowsRefused(error.sqlite_errorname, "The table's constraints forbid this row") from None

    def commit(self, name: str, marker: str) -> None:
        self.run(
            f"INSERT INTO {MARKERS} VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET marker = excluded.marker",
            name,
            marker,
        )
        self.run("COMMIT")

    def rollback(self) -> None:
        if self._database.in_transaction:
            self.run("ROLLBACK")


def as_json(headers: bytes | None) -> str | None:
    return json.dumps(decode_headers(headers)) if headers else None


@contextmanager
def reached(where: str) -> Iterator[None]:
    """What a locked, missing or full database means to a run."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise Unreachable(f"The database does not answer: {error}", where=where) from None


PLUGIN = Plugin(
    "sqlite", "SQLite table", sink_options=Options, open_sink=Table, guarantee=lambda role, options: Table.guarantee
)
