"""Tables as a target: rows and how far they have come, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, Literal

import pyarrow as pa
from pymysql.connections import Connection

from connect_core.errors import Missing
from connect_core.rows.types import struct_of
from connect_core.sdk.kits.identity import TargetIdentity
from connect_core.sdk.kits.transactions import TransactionSink
from connect_core.systems.mysql.catalog import quoted, read_table
from connect_core.systems.mysql.connecting import connected, server_of
from connect_core.systems.mysql.failures import understood
from connect_core.systems.mysql.fitting import columns_of, key_of
from connect_core.systems.mysql.making import make_markers, make_room
from connect_core.systems.mysql.options import MysqlSinkOptions
from connect_core.systems.mysql.rights import check_rights
from connect_core.systems.mysql.table_writing import MysqlWriter
from connect_core.systems.tables.named_targets import naming
from connect_core.systems.tables.routing import Routing, TableShape

_MISSING_STEP = (
    "Create it, or name another one; the next attempt looks again. A range that was begun in a table that is gone for"
    " good is given up by: waybill offsets set NAME PARTITION OFFSET --abandon"
)
_NAMED = TargetIdentity("named", "")


class MysqlSink(TransactionSink):
    takes_rows: Literal[True] = True

    def __init__(self, options: MysqlSinkOptions) -> None:
        super().__init__(target=f"{options.host}:{options.port}/{options.whole_name(options.table)}")
        self._options = options
        self.takes_late = options.mode == "insert"
        self._tables = {options.whole_name(one.table): one for one in options.each()}
        shapes = {name: TableShape([*one.row_fields], one.key) for name, one in self._tables.items()}
        self._routing = Routing(shapes, options.whole_name)

    def prepare(self) -> None:
        with self._database() as database:
            for name, one in self._tables.items():
                beside = "" if one.table == self._options.table else name
                make_room(database, one, struct_of(one.row_fields), self._where(name), beside)
            self._writers(database)
            if len(self._tables) > 1:
                self._check_rights(database)
            make_markers(database, self._options, self.target)

    def invalid_rows(self, records: pa.RecordBatch) -> list[tuple[int, str, str]]:
        return self._routing.invalid_rows(records)

    @contextmanager
    def connect(self) -> Iterator[MysqlConnection]:
        with self._database() as database:
            yield MysqlConnection(database, self._writers(database), self._routing, self._options, self.target)

    @contextmanager
    def _database(self) -> Iterator[Connection[Any]]:
        database = connected(self._options, self.target)
        try:
            yield database
        finally:
            if database.open:
                database.close()

    def _where(self, name: str) -> str:
        return f"{self._options.host}:{self._options.port}/{name}"

    def _writers(self, database: Connection[Any]) -> dict[str, MysqlWriter]:
        """By whole name. The tables may have changed since somebody looked last."""
        return {name: _writer(database, one, self._where(name)) for name, one in self._tables.items()}

    def _check_rights(self, database: Connection[Any]) -> None:
        """Of several tables: what one lacks would show when others have rows already."""
        for name, one in self._tables.items():
            with understood(self._where(name)), database.cursor() as asking:
                if table := read_table(asking, one.split(one.table)):
                    check_rights(asking, one, table, self._where(name))


def _writer(database: Connection[Any], options: MysqlSinkOptions, where: str) -> MysqlWriter:
    with understood(where), database.cursor() as asking:
        table = read_table(asking, options.split(options.table))
        server = server_of(database)
    if table is None:
        raise Missing("There is no such table", where=where, next_step=_MISSING_STEP)
    rows = struct_of(options.row_fields)
    columns = columns_of(table, rows, where)
    key = () if options.mode == "insert" else key_of(table, options.key, rows, where)
    return MysqlWriter(table, columns, key, server)


class MysqlConnection:
    """A `sdk.kits.transactions.TransactionConnection`. `tables` are by whole name, the sink's own first."""

    def __init__(
        self,
        database: Connection[Any],
        tables: Mapping[str, MysqlWriter],
        routing: Routing,
        options: MysqlSinkOptions,
        where: str,
    ) -> None:
        self._database, self._tables, self._routing, self._where = database, tables, routing, where
        self._with_rows = set[str]()
        self._server = f"{options.host}:{options.port}"
        self._markers = quoted(options.split(options.markers))

    def identity(self) -> TargetIdentity:
        """Nothing that lasts tells a table that was altered from another one of its name. But which tables there are
        beside the sink's own one is in the marker: none of these is made again when it is gone."""
        beside = {name: _NAMED._replace(has_rows=name in self._with_rows) for name in [*self._tables][1:]}
        return TargetIdentity("", "", beside=beside)

    def begin(self, name: str) -> str | None:
        """An empty marker locks the name where there is none yet: whoever begins with it waits."""
        with understood(self._where), self._database.cursor() as cursor:
            cursor.execute("BEGIN")
            taken = f"INSERT INTO {self._markers} VALUES (%s, '') ON DUPLICATE KEY UPDATE name = name"
            cursor.execute(taken, (name.encode(),))
            cursor.execute(f"SELECT marker FROM {self._markers} WHERE name = %s FOR UPDATE", (name.encode(),))
            [marker] = cursor.fetchone() or ("",)
        return str(marker) or None

    def markers(self, names: Sequence[str]) -> Mapping[str, str]:
        asked = f"SELECT name, marker FROM {self._markers} WHERE marker <> '' AND name IN %s"
        try:
            with understood(self._where), self._database.cursor() as cursor:
                cursor.execute(asked, ([name.encode() for name in names],))
                found = cursor.fetchall()
        except Missing:
            return {}
        return {name.decode() if isinstance(name, bytes) else name: marker for name, marker in found}

    def write(self, records: pa.RecordBatch) -> None:
        """Of several tables, what is said of rows says which one it is."""
        with self._database.cursor() as cursor:
            for part in self._routing.parts(records):
                named = naming(part.table if len(self._tables) > 1 else "")
                with named, understood(f"{self._server}/{part.table}"):
                    self._tables[part.table].write(cursor, part.records)
                self._with_rows.add(part.table)

    def commit(self, name: str, marker: str) -> None:
        with understood(self._where), self._database.cursor() as cursor:
            cursor.execute(f"UPDATE {self._markers} SET marker = %s WHERE name = %s", (marker, name.encode()))
            cursor.execute("COMMIT")

    def rollback(self) -> None:
        if self._database.open:
            with understood(self._where), closing(self._database.cursor()) as cursor:
                cursor.execute("ROLLBACK")
