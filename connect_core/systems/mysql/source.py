"""Rows of a table of MySQL, or of a query, as records: each once, whenever it has changed, or all of them again."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import Any

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from connect_core.errors import DataError, Failure
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Bounds, Position
from connect_core.systems.mysql.connecting import connected, server_uid
from connect_core.systems.mysql.failures import understood
from connect_core.systems.mysql.source_catalog import MysqlSourceTable, tables_there
from connect_core.systems.mysql.source_options import MysqlSourceOptions
from connect_core.systems.mysql.source_query import query_understood
from connect_core.systems.mysql.standing import (
    are_apart,
    counter_stands_at,
    database_now,
    extent,
    key_stretch,
    query_extent,
    writers,
)
from connect_core.systems.mysql.table_reading import as_it_is, page, read_source
from connect_core.systems.mysql.table_spellings import named_twice
from connect_core.systems.tables.changed import ChangedRows
from connect_core.systems.tables.connections import KeptConnection
from connect_core.systems.tables.finality import OpenTransaction
from connect_core.systems.tables.pages import Page
from connect_core.systems.tables.passes import Among, TimeWindow
from connect_core.systems.tables.queries import PARTITION
from connect_core.systems.tables.reading import ServerNames, TableRows
from connect_core.systems.tables.several import SeveralTables
from connect_core.systems.tables.snapshots import Key
from connect_core.systems.tables.source import NumberedRows
from connect_core.systems.tables.stretches import PassStretch
from connect_core.systems.tables.whole import WholeTable


class _Rows(TableRows[MysqlSourceTable]):
    def __init__(
        self,
        options: MysqlSourceOptions,
        resources: ExitStack | None = None,
        database: KeptConnection | None = None,
    ) -> None:
        name = PARTITION if options.query else ".".join(options.split(options.table))
        super().__init__(options, name, f"{options.host}:{options.port}/{name}", resources, database)
        self._options = options
        self._names_of_server: ServerNames | None = None

    def connect(self) -> Connection[Any]:
        return connected(self._options, self._where)

    def understood(self) -> AbstractContextManager[None]:
        return query_understood(self._where) if self._options.query else understood(self._where)

    def server(self, asking: Cursor) -> ServerNames:
        if self._names_of_server is None:
            self._names_of_server = ServerNames(f"{self._options.host}:{self._options.port}", server_uid(asking))
        return self._names_of_server

    def table(self, asking: Cursor) -> MysqlSourceTable:
        return read_source(asking, self._options)

    def as_it_is(self, asking: Cursor) -> AbstractContextManager[MysqlSourceTable]:
        return as_it_is(asking, self._options)

    def extent(
        self, asking: Cursor, table: MysqlSourceTable, window: TimeWindow | None = None
    ) -> tuple[int | None, int | None]:
        if table.is_query:
            return query_extent(asking, self._options, window)
        return extent(asking, table, window)

    def key_stretch(
        self, asking: Cursor, table: MysqlSourceTable, window: TimeWindow | None, after: Key | None, most: int
    ) -> PassStretch | None:
        return key_stretch(asking, table, window, after, most)

    def are_apart(self, asking: Cursor, table: MysqlSourceTable, among: Among) -> bool:
        return are_apart(asking, table, among)

    def writers(self, asking: Cursor, table: MysqlSourceTable) -> list[OpenTransaction]:
        return writers(asking, table, self._where)

    def page(
        self,
        asking: Cursor,
        table: MysqlSourceTable,
        begin: int,
        end: int,
        most: int,
        most_bytes: int,
        among: Among,
    ) -> Page:
        return page(asking, table, begin, end, most, most_bytes, among)


class MysqlSource(_Rows, NumberedRows[MysqlSourceTable]):
    def stands_at(self, asking: Cursor, table: MysqlSourceTable) -> int | None:
        return counter_stands_at(asking, table)

    def set_back(self, table: MysqlSourceTable, stands_at: int, end: int) -> DataError:
        return DataError(
            f"The counter of column {table.id} is at {stands_at}, and rows before {end} were read, or are there: the"
            " next rows would come below them",
            where=self._where,
            next_step=f"If the table was emptied (TRUNCATE), made again or is that of another server, move the position"
            f" with `waybill offsets set`, at most to its lowest new row. Else ALTER TABLE … AUTO_INCREMENT = {end}",
        )


class MysqlChangedRows(_Rows, ChangedRows[MysqlSourceTable]):
    def now(self, asking: Cursor, table: MysqlSourceTable) -> float:
        return database_now(asking, table)


class MysqlWholeTable(_Rows, WholeTable[MysqlSourceTable]):
    """All that it needs is said above."""


class MysqlTables(SeveralTables):
    def __init__(self, options: MysqlSourceOptions, resources: ExitStack | None = None) -> None:
        super().__init__(options, options.named_tables, resources)
        self._options = options
        self._there = frozenset[str]()
        """What the server listed last."""

    def connect(self) -> Connection[Any]:
        return connected(self._options, self._options.address)

    def understood(self) -> AbstractContextManager[None]:
        return understood(self._options.address)

    def there(self, asking: Cursor) -> list[str]:
        found = tables_there(asking)
        self._there = frozenset(found)
        return found

    def answer(self, asking: Cursor) -> None:
        asking.execute("SELECT 1")

    def opened(self, table: str, database: KeptConnection) -> TableRows[MysqlSourceTable]:
        return rows_of(self._options.of_table(table), database=database)

    def _bounds(self, one: Partition, at: Position | None, until: float) -> Bounds:
        if self._means(one.key) and one.key not in self._there:
            with self._database.asking() as asking:
                self.there(asking)
            if wrong := named_twice(self._named, self._there, one.key):
                return Bounds.unread(at, Failure.of(wrong))
        return super()._bounds(one, at, until)


def rows_of(
    options: MysqlSourceOptions, resources: ExitStack | None = None, database: KeptConnection | None = None
) -> TableRows[MysqlSourceTable]:
    """Of one table, or of a query."""
    if options.bulk:
        return MysqlWholeTable(options, resources, database)
    return (MysqlChangedRows if options.timestamp else MysqlSource)(options, resources, database)
