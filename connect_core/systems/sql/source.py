"""Rows of a table as records: each once, or all of them again.

SQLite has one writer at a time, and a number is given out by the statement that inserts its row: when a row is seen, no
transaction is open that could bring one with a lower number. Of other databases nobody knows what is open. There a
number counts when it has been there for longer than any transaction takes, as the document states (`settle_s`): each
look stands for the transactions that were open then, and has ended after that time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager

import sqlalchemy as sa

from connect_core import clock
from connect_core.errors import DataError, Failure, Unreachable
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Bounds, Position
from connect_core.systems.sql.connecting import schema_version
from connect_core.systems.sql.failures import understood
from connect_core.systems.sql.file_writers import writers_of_file
from connect_core.systems.sql.source_catalog import (
    SqlSourceTable,
    check_times,
    extent,
    host_now,
    page,
    read_source_table,
    stands_at,
)
from connect_core.systems.sql.source_listing import tables_there
from connect_core.systems.sql.source_options import SqlSourceOptions
from connect_core.systems.sql.source_query import check_numbers, read_query, reading, reading_understood
from connect_core.systems.tables.changed import ChangedRows
from connect_core.systems.tables.connections import KeptConnection
from connect_core.systems.tables.finality import OpenTransaction
from connect_core.systems.tables.pages import Page
from connect_core.systems.tables.passes import Among, TimeWindow
from connect_core.systems.tables.queries import PARTITION
from connect_core.systems.tables.reading import TableRows
from connect_core.systems.tables.several import SeveralTables
from connect_core.systems.tables.source import NumberedRows
from connect_core.systems.tables.whole import WholeTable

_LOOKED_AT_S = 5.0
"""For so long a table of a server is taken to have the columns that it had; each page looks anew."""

_STEP = 0.01
"""Of `settle_s`: looks that are as near to each other are one, which lasts so much longer."""


class _Session:
    """A connection as `KeptConnection` wants it: what is asked at once sees the database at one moment, if that has
    such moments."""

    def __init__(self, connection: sa.Connection, close: Callable[[], None]) -> None:
        self._connection, self.close = connection, close

    @contextmanager
    def cursor(self) -> Iterator[sa.Connection]:
        yield self._connection
        self._connection.rollback()


def _session(options: SqlSourceOptions, where: str) -> _Session:
    with ExitStack() as opened:
        connection = opened.enter_context(reading(options, where))
        return _Session(connection, opened.pop_all().close)


class _Rows(TableRows[SqlSourceTable]):
    def __init__(
        self,
        options: SqlSourceOptions,
        resources: ExitStack | None = None,
        database: KeptConnection | None = None,
    ) -> None:
        name = PARTITION if options.query else options.table
        super().__init__(options, name, f"{options.url}/{name}", resources, database)
        self._options = options
        self._known: tuple[object, float, SqlSourceTable] | None = None
        """What `schema_version` said, until when it holds of a server, and the table."""
        self._looks_before = list[float]()

    def connect(self) -> _Session:
        return _session(self._options, self._where)

    def understood(self) -> AbstractContextManager[None]:
        return reading_understood(self._options, self._where)

    def table(self, asking: sa.Connection) -> SqlSourceTable:
        """To look at all columns takes a while, and one looks often."""
        version, now = schema_version(asking), clock.monotonic()
        if self._known and self._known[0] == version and (version is not None or now < self._known[1]):
            return self._known[2]
        table = (read_query if self._options.query else read_source_table)(asking, self._options)
        self._known = version, now + _LOOKED_AT_S, table
        return table

    @contextmanager
    def as_it_is(self, asking: sa.Connection) -> Iterator[SqlSourceTable]:
        yield self.table(asking) if self._options.file else read_source_table(asking, self._options)

    def extent(
        self, asking: sa.Connection, table: SqlSourceTable, window: TimeWindow | None = None
    ) -> tuple[int | None, int | None]:
        if table.is_query:
            check_numbers(asking, table, self._where)
        return extent(asking, table, self._where, window)

    def writers(self, asking: sa.Connection, table: SqlSourceTable) -> list[OpenTransaction]:
        if self._options.timestamp:
            asking.rollback()  # with a rollback journal a writer would wait for us to end, and we for that
            return writers_of_file(self._options.file, self._where)
        if self._options.file or self._options.settle_s is None:
            return []
        now, step = clock.monotonic(), self._options.settle_s * _STEP
        self._looks_before = [at for at in self._looks_before if now - at <= self._options.settle_s + step]
        if not self._looks_before or now - self._looks_before[-1] > step:
            self._looks_before.append(now)
        return [OpenTransaction(f"look {at}", prepared=False) for at in self._looks_before]

    def page(
        self,
        asking: sa.Connection,
        table: SqlSourceTable,
        begin: int,
        end: int,
        most: int,
        most_bytes: int,
        among: Among,
    ) -> Page:
        return page(asking, table, begin, end, most, most_bytes, self._where, among.window)


class SqlSource(_Rows, NumberedRows[SqlSourceTable]):
    def stands_at(self, asking: sa.Connection, table: SqlSourceTable) -> int | None:
        return stands_at(asking, table, self._where)

    def set_back(self, table: SqlSourceTable, stands_at: int, end: int) -> DataError:
        cure = "" if table.counts else ". A column with AUTOINCREMENT gives out no number twice"
        return DataError(
            f"Rows before {end} were read, and the highest number of the table is {stands_at}: the newest rows were"
            " deleted, or the table or the file is another one, and the next rows would come with numbers that were"
            " read",
            where=self._where,
            next_step="Move the position with `waybill offsets set`: to the lowest number of the table, if it was made"
            f" again or is of another file; to {stands_at + 1}, if its newest rows were deleted{cure}",
        )


class SqlChangedRows(_Rows, ChangedRows[SqlSourceTable]):
    """Of a file. A statement has it as the one writer before it asks for the time. So who takes it behind a look at the
    clock sees all rows with times from before, but for those that a program took long before it began to write."""

    _checked: tuple[object, object] = (None, None)
    """The connection, and what it said of the file when all times had a form that counts."""

    def now(self, asking: sa.Connection, table: SqlSourceTable) -> float:
        said = asking, asking.exec_driver_sql("PRAGMA data_version").scalar()
        if said != self._checked or table.is_query:
            check_times(asking, table, self._where)
            self._checked = said
        return host_now(asking)


class SqlWholeTable(_Rows, WholeTable[SqlSourceTable]):
    """All that it needs is said above."""


class SqlTables(SeveralTables):
    def __init__(self, options: SqlSourceOptions, resources: ExitStack | None = None) -> None:
        super().__init__(options, options.named_tables, resources)
        self._options = options
        self._there = frozenset[str]()
        """What the database listed last."""

    def connect(self) -> _Session:
        return _session(self._options, self._options.url)

    def understood(self) -> AbstractContextManager[None]:
        return understood(self._options.url)

    def there(self, asking: sa.Connection) -> list[str]:
        found = tables_there(asking, self._named)
        self._there = frozenset(found)
        return found

    def answer(self, asking: sa.Connection) -> None:
        asking.execute(sa.select(1))
        schema_version(asking)  # SQLite opens the file no sooner

    def opened(self, table: str, database: KeptConnection) -> TableRows[SqlSourceTable]:
        return rows_of(self._options.of_table(table), database=database)

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        """On a server each table is looked at before one is waited for: what is there at the first look counts behind
        `settle_s`, and no run waits for that more than once."""
        with self._database.asking() as asking:
            self.there(asking)
        if self._options.settle_s:
            for one in filter(self._is_there, known):
                self._of(one).may_have_moved(Bounds.unread(known[one]))
        return super().available_offsets(known)

    def _bounds(self, one: Partition, at: Position | None, until: float) -> Bounds:
        """A server may find a table under other names than the one that it lists: its rows would come for each."""
        if self._means(one.key) and not self._is_there(one):
            step = "Create it, name it as the database lists it, or exclude it; the next attempt looks again"
            gone = Unreachable("There is no such table", where=f"{self._options.url}/{one.key}", next_step=step)
            return Bounds.unread(at, Failure.of(gone))
        return super()._bounds(one, at, until)

    def _is_there(self, one: Partition) -> bool:
        return self._means(one.key) and one.key in self._there


def rows_of(
    options: SqlSourceOptions, resources: ExitStack | None = None, database: KeptConnection | None = None
) -> TableRows[SqlSourceTable]:
    """Of one table, or of a query."""
    if options.bulk:
        return SqlWholeTable(options, resources, database)
    return (SqlChangedRows if options.timestamp else SqlSource)(options, resources, database)
