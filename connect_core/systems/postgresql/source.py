"""Rows of a table of PostgreSQL, or of a query, as records: each once, whenever it has changed, or all in each run."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack

from psycopg2.extensions import connection, cursor

from connect_core.errors import DataError
from connect_core.systems.postgresql.connecting import connected
from connect_core.systems.postgresql.failures import understood
from connect_core.systems.postgresql.inheritance import parents_there
from connect_core.systems.postgresql.options import split_table
from connect_core.systems.postgresql.source_catalog import SourceTable, tables_there
from connect_core.systems.postgresql.source_options import PostgresSourceOptions
from connect_core.systems.postgresql.source_query import query_understood
from connect_core.systems.postgresql.standing import (
    are_apart,
    database_now,
    extent,
    key_stretch,
    query_extent,
    sequence_stands_at,
    writers,
)
from connect_core.systems.postgresql.table_reading import as_it_is, page, read_source
from connect_core.systems.tables.changed import ChangedRows
from connect_core.systems.tables.connections import KeptConnection
from connect_core.systems.tables.finality import OpenTransaction
from connect_core.systems.tables.named_tables import Parents
from connect_core.systems.tables.pages import Page
from connect_core.systems.tables.passes import Among, TimeWindow
from connect_core.systems.tables.queries import PARTITION
from connect_core.systems.tables.reading import TableRows
from connect_core.systems.tables.several import SeveralTables
from connect_core.systems.tables.snapshots import Key
from connect_core.systems.tables.source import NumberedRows
from connect_core.systems.tables.stretches import PassStretch
from connect_core.systems.tables.whole import WholeTable


class _Rows(TableRows[SourceTable]):
    def __init__(
        self,
        options: PostgresSourceOptions,
        resources: ExitStack | None = None,
        database: KeptConnection | None = None,
    ) -> None:
        name = PARTITION if options.query else ".".join(split_table(options.table))
        super().__init__(options, name, f"{options.address}/{name}", resources, database)
        self._options = options

    def connect(self) -> connection:
        return connected(self._options, self._where)

    def understood(self) -> AbstractContextManager[None]:
        return query_understood(self._where) if self._options.query else understood(self._where)

    def table(self, asking: cursor) -> SourceTable:
        return read_source(asking, self._options)

    def as_it_is(self, asking: cursor) -> AbstractContextManager[SourceTable]:
        return as_it_is(asking, self._options)

    def extent(
        self, asking: cursor, table: SourceTable, window: TimeWindow | None = None
    ) -> tuple[int | None, int | None]:
        if table.is_query:
            return query_extent(asking, self._options, window)
        return extent(asking, table, window)

    def key_stretch(
        self, asking: cursor, table: SourceTable, window: TimeWindow | None, after: Key | None, most: int
    ) -> PassStretch | None:
        return key_stretch(asking, table, window, after, most)

    def are_apart(self, asking: cursor, table: SourceTable, among: Among) -> bool:
        return are_apart(asking, table, among)

    def writers(self, asking: cursor, table: SourceTable) -> list[OpenTransaction]:
        return writers(asking, table)

    def page(
        self,
        asking: cursor,
        table: SourceTable,
        begin: int,
        end: int,
        most: int,
        most_bytes: int,
        among: Among,
    ) -> Page:
        return page(asking, table, begin, end, most, most_bytes, among)


class PostgresSource(_Rows, NumberedRows[SourceTable]):
    def stands_at(self, asking: cursor, table: SourceTable) -> int | None:
        return sequence_stands_at(asking, table)

    def set_back(self, table: SourceTable, stands_at: int, end: int) -> DataError:
        return DataError(
            f"The sequence of column {table.id} is at {stands_at}, and rows before {end} were read, or are there: the"
            " next rows would come below them",
            where=self._where,
            next_step="Set it to the highest number of a row (setval). If no row gets its number from it, detach it"
            " (ALTER TABLE … DROP DEFAULT, ALTER SEQUENCE … OWNED BY NONE). If it was restarted for an emptied table,"
            " move the position with `waybill offsets set`",
        )


class PostgresChangedRows(_Rows, ChangedRows[SourceTable]):
    def now(self, asking: cursor, table: SourceTable) -> float:
        return database_now(asking)


class PostgresWholeTable(_Rows, WholeTable[SourceTable]):
    """All that it needs is said above."""


class PostgresTables(SeveralTables):
    def __init__(self, options: PostgresSourceOptions, resources: ExitStack | None = None) -> None:
        super().__init__(options, options.named_tables, resources)
        self._options = options

    def connect(self) -> connection:
        return connected(self._options, self._options.address)

    def understood(self) -> AbstractContextManager[None]:
        return understood(self._options.address)

    def there(self, asking: cursor) -> list[str]:
        return tables_there(asking)

    def answer(self, asking: cursor) -> None:
        asking.execute("SELECT 1")

    def parents(self, asking: cursor) -> Parents:
        return parents_there(asking)

    def opened(self, table: str, database: KeptConnection) -> TableRows[SourceTable]:
        return rows_of(self._options.of_table(table), database=database)


def rows_of(
    options: PostgresSourceOptions, resources: ExitStack | None = None, database: KeptConnection | None = None
) -> TableRows[SourceTable]:
    """Of one table, or of a query."""
    if options.bulk:
        return PostgresWholeTable(options, resources, database)
    return (PostgresChangedRows if options.timestamp else PostgresSource)(options, resources, database)
