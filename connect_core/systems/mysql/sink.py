"""A table as a target: rows and how far they have come, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Literal

import pyarrow as pa
from pymysql.connections import Connection

from connect_core.errors import Unreachable
from connect_core.rows.types import Type, struct_of
from connect_core.sdk.kits.transactions import TransactionSink
from connect_core.systems.mysql.catalog import MysqlTable, quoted, read_table
from connect_core.systems.mysql.connecting import connected, server_of
from connect_core.systems.mysql.failures import understood
from connect_core.systems.mysql.fitting import columns_of, key_of
from connect_core.systems.mysql.making import make_markers, make_room
from connect_core.systems.mysql.options import MysqlSinkOptions
from connect_core.systems.mysql.table_writing import MysqlWriter
from connect_core.systems.tables.keyless import without_key

_MISSING_STEP = "Create it, or name another one; the next attempt looks again"


class MysqlSink(TransactionSink):
    takes_rows: Literal[True] = True

    def __init__(self, options: MysqlSinkOptions) -> None:
        super().__init__(target=f"{options.host}:{options.port}/{'.'.join(options.split(options.table))}")
        self._options = options
        self.takes_late = options.mode == "insert"
        self._rows: Type = struct_of(options.row_fields)

    def prepare(self) -> None:
        with self._database() as database:
            make_room(database, self._options, self._rows, self.target)
            self._writer(database)
            make_markers(database, self._options, self.target)

    def invalid_rows(self, records: pa.RecordBatch) -> list[tuple[int, str, str]]:
        return without_key(records, self._options.key)

    @contextmanager
    def connect(self) -> Iterator[MysqlConnection]:
        with self._database() as database:
            yield MysqlConnection(database, self._writer(database), self._options, self.target)

    @contextmanager
    def _database(self) -> Iterator[Connection[Any]]:
        database = connected(self._options, self.target)
        try:
            yield database
        finally:
            if database.open:
                database.close()

    def _writer(self, database: Connection[Any]) -> MysqlWriter:
        """The table may have changed since somebody looked last."""
        with understood(self.target), database.cursor() as asking:
            table = read_table(asking, self._options.split(self._options.table))
            max_packet = server_of(database).max_packet
        if table is None:
            raise Unreachable("There is no such table", where=self.target, next_step=_MISSING_STEP)
        columns = columns_of(table, self._rows, self.target)
        return MysqlWriter(table, columns, self._key(table), max_packet)

    def _key(self, table: MysqlTable) -> tuple[str, ...]:
        if self._options.mode == "insert":
            return ()
        return key_of(table, self._options.key, self._rows, self.target)


class MysqlConnection:
    """A `sdk.kits.transactions.TransactionConnection`. It does not know which table has the name: nothing that lasts
    tells one that was altered from another one."""

    def __init__(self, database: Connection[Any], table: MysqlWriter, options: MysqlSinkOptions, where: str) -> None:
        self._database, self._table, self._where = database, table, where
        self._markers = quoted(options.split(options.markers))

    def begin(self, name: str) -> str | None:
        """An empty marker locks the name where there is none yet: whoever begins with it waits."""
        with understood(self._where), self._database.cursor() as cursor:
            cursor.execute("BEGIN")
            taken = f"INSERT INTO {self._markers} VALUES (%s, '') ON DUPLICATE KEY UPDATE name = name"
            cursor.execute(taken, (name.encode(),))
            cursor.execute(f"SELECT marker FROM {self._markers} WHERE name = %s FOR UPDATE", (name.encode(),))
            [marker] = cursor.fetchone() or ("",)
        return str(marker) or None

    def write(self, records: pa.RecordBatch) -> None:
        with understood(self._where), self._database.cursor() as cursor:
            self._table.write(cursor, records)

    def commit(self, name: str, marker: str) -> None:
        with understood(self._where), self._database.cursor() as cursor:
            cursor.execute(f"UPDATE {self._markers} SET marker = %s WHERE name = %s", (marker, name.encode()))
            cursor.execute("COMMIT")

    def rollback(self) -> None:
        if self._database.open:
            with understood(self._where), closing(self._database.cursor()) as cursor:
                cursor.execute("ROLLBACK")
