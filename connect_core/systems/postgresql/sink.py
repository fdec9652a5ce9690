"""A table as a target: rows and how far they have come, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Literal

import pyarrow as pa
from psycopg2.extensions import TRANSACTION_STATUS_IDLE, connection

from connect_core.errors import Unreachable
from connect_core.rows.types import Type, struct_of
from connect_core.sdk.kits.identity import TargetIdentity
from connect_core.sdk.kits.transactions import TransactionSink
from connect_core.systems.postgresql.catalog import Table, quoted, read_table
from connect_core.systems.postgresql.connecting import connected
from connect_core.systems.postgresql.failures import understood
from connect_core.systems.postgresql.fitting import columns_of, key_of
from connect_core.systems.postgresql.making import LOCK, make_room
from connect_core.systems.postgresql.options import PostgresSinkOptions, split_table
from connect_core.systems.postgresql.table_writing import TableWriter
from connect_core.systems.tables.keyless import without_key

_MISSING_STEP = "Create it, or name another one; the next attempt looks again"


class PostgresSink(TransactionSink):
    takes_rows: Literal[True] = True

    def __init__(self, options: PostgresSinkOptions) -> None:
        super().__init__(target=f"{options.address}/{'.'.join(split_table(options.table))}")
        self._options = options
        self.takes_late = options.mode == "insert"
        self._rows: Type = struct_of(options.row_fields)

    def prepare(self) -> None:
        with self._database() as database:
            make_room(database, self._options, self._rows, self.target)
            self._writer(database)
            make_markers(database, self._options.markers, self.target)

    def invalid_rows(self, records: pa.RecordBatch) -> list[tuple[int, str, str]]:
        return without_key(records, self._options.key)

    @contextmanager
    def connect(self) -> Iterator[PostgresConnection]:
        with self._database() as database:
            yield PostgresConnection(database, self._writer(database), self._options, self.target)

    @contextmanager
    def _database(self) -> Iterator[connection]:
        with closing(connected(self._options, self.target)) as database:
            yield database

    def _writer(self, database: connection) -> TableWriter:
        """The table may have changed since somebody looked last."""
        with understood(self.target):
            table = read_table(database, self._options.table)
        if table is None:
            raise Unreachable("There is no such table", where=self.target, next_step=_MISSING_STEP)
        columns = columns_of(table, self._rows, self.target)
        return TableWriter(self._options.table, table, columns, self._key(table))

    def _key(self, table: Table) -> tuple[str, ...]:
        if self._options.mode == "insert":
            return ()
        return key_of(table, self._options.key, self._rows, self.target)


def make_markers(database: connection, markers: str, where: str) -> None:
    """Makes the table of markers where it is missing: a user who may not make tables may have it made by another."""
    with understood(where):
        if read_table(database, markers) is None:
            with database.cursor() as cursor:
                # Of two tasks that make it at once, the server refuses one, IF NOT EXISTS or not.
                columns = "(name text PRIMARY KEY, marker text NOT NULL)"
                cursor.execute("BEGIN")
                cursor.execute(LOCK, (quoted(markers),))
                cursor.execute(f"CREATE TABLE IF NOT EXISTS {quoted(markers)} {columns}")
                cursor.execute("COMMIT")


class PostgresConnection:
    """A `sdk.kits.transactions.TransactionConnection`, and `sdk.kits.identity.Identified`."""

    def __init__(self, database: connection, table: TableWriter, options: PostgresSinkOptions, where: str) -> None:
        self._database, self._table, self._options, self._where = database, table, options, where
        self._markers = quoted(options.markers)

    def identity(self) -> TargetIdentity:
        """By oids. A table that was written in this transaction is locked: nobody can give its name to another one."""
        names = (quoted(self._options.table), self._markers)
        with understood(self._where), self._database.cursor() as cursor:
            cursor.execute("SELECT to_regclass(%s)::oid, to_regclass(%s)::oid", names)
            table, markers = cursor.fetchone() or (None, None)
        if table is None or markers is None:
            raise Unreachable("There is no such table", where=self._where, next_step=_MISSING_STEP)
        accepting = f"write accepts_table: {table} in the document's sink"
        return TargetIdentity(f"oid {table}", f"oid {markers}", table == self._options.accepts_table, accepting)

    def begin(self, name: str) -> str | None:
        """Whether there is a marker or not, whoever begins with its name waits for the lock of the name."""
        with understood(self._where), self._database.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(LOCK, (name,))
            cursor.execute(f"SELECT marker FROM {self._markers} WHERE name = %s", (name,))
            row = cursor.fetchone()
        return str(row[0]) if row else None

    def write(self, records: pa.RecordBatch) -> None:
        with understood(self._where), self._database.cursor() as cursor:
            self._table.write(cursor, records)

    def commit(self, name: str, marker: str) -> None:
        with understood(self._where), self._database.cursor() as cursor:
            kept = "ON CONFLICT (name) DO UPDATE SET marker = EXCLUDED.marker"
            cursor.execute(f"INSERT INTO {self._markers} VALUES (%s, %s) {kept}", (name, marker))
            cursor.execute("COMMIT")

    def rollback(self) -> None:
        if not self._database.closed and self._database.get_transaction_status() != TRANSACTION_STATUS_IDLE:
            with understood(self._where), self._database.cursor() as cursor:
                cursor.execute("ROLLBACK")
