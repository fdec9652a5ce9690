"""Tables as a target: rows and how far they have come, in one transaction."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy import exc

from connect_core.errors import Retriable, Unreachable
from connect_core.rows.types import struct_of
from connect_core.sdk.kits.identity import TargetIdentity
from connect_core.sdk.kits.transactions import TransactionSink
from connect_core.sdk.sink import Targets
from connect_core.sdk.values import Floor
from connect_core.systems.sql.catalog import read_table, relation, require_table
from connect_core.systems.sql.connecting import Opens, connected, schema_version
from connect_core.systems.sql.failures import understood
from connect_core.systems.sql.fitting import columns_of, key_of
from connect_core.systems.sql.making import NO_MARKER, make_markers, make_room
from connect_core.systems.sql.options import SqlSinkOptions
from connect_core.systems.sql.table_writing import SqlWriter
from connect_core.systems.tables.named_targets import naming
from connect_core.systems.tables.routing import Routing, TableShape

_NAMED = TargetIdentity("named", "")


class SqlSink(TransactionSink):
    takes_rows: Literal[True] = True

    def __init__(self, options: SqlSinkOptions) -> None:
        super().__init__(target=f"{options.url}/{options.table}")
        self._options = options
        self.takes_late = options.mode == "insert"
        self._tables = {options.whole_name(one.table): one for one in options.each()}
        shapes = {name: TableShape([*one.row_fields], one.key) for name, one in self._tables.items()}
        self._routing = Routing(shapes, options.whole_name)
        self._has_rows = False
        """Whether the ledger knows of some."""

    def targets(self, task: int, floors: Sequence[Floor], topics: Mapping[str, int]) -> Targets:
        self._has_rows = any(one.target == self.target and one.position for one in floors)
        return super().targets(task, floors, topics)

    def prepare(self) -> None:
        """In one transaction where the database makes tables in one: of two tasks the second one finds them."""
        opens: Opens = "makes" if self._may_make_the_file else "writes"
        with connected(self._options, self.target, opens) as database, understood(self.target):
            database.begin()
            for name, one in self._tables.items():
                beside = "" if one.table == self._options.table else name
                make_room(database, one, struct_of(one.row_fields), self._where(name), beside)
            self._writers(database)
            make_markers(database, self._options, self.target)
            database.commit()

    @property
    def _may_make_the_file(self) -> bool:
        """Not where one with rows is gone: it may come back."""
        return self._options.create_table and not self._has_rows and not os.path.exists(self._options.file)

    def invalid_rows(self, records: pa.RecordBatch) -> list[tuple[int, str, str]]:
        return self._routing.invalid_rows(records)

    @contextmanager
    def connect(self) -> Iterator[SqlConnection]:
        with connected(self._options, self.target, "writes") as database:
            with understood(self.target), database.begin():
                version, writers = schema_version(database), self._writers(database)
            yield SqlConnection(database, writers, self._routing, self._options, self.target, version)

    def _where(self, name: str) -> str:
        return f"{self._options.url}/{name}"

    def _writers(self, database: sa.Connection) -> dict[str, SqlWriter]:
        """By whole name. The tables may have changed since somebody looked last."""
        return {name: _writer(database, one, self._where(name)) for name, one in self._tables.items()}


def _writer(database: sa.Connection, options: SqlSinkOptions, where: str) -> SqlWriter:
    table = require_table(database, options.table, where)
    rows = struct_of(options.row_fields)
    columns = columns_of(table, rows, where)
    key = () if options.mode == "insert" else key_of(table, options.key, rows, where)
    return SqlWriter(table, columns, key)


class SqlConnection:
    """A `sdk.kits.transactions.TransactionConnection` and `Listing`. `tables` are by whole name, the sink's own first;
    `version` is what `schema_version` said when they were looked at."""

    def __init__(
        self,
        database: sa.Connection,
        tables: Mapping[str, SqlWriter],
        routing: Routing,
        options: SqlSinkOptions,
        where: str,
        version: Any,
    ) -> None:
        self._database, self._tables, self._routing, self._where = database, tables, routing, where
        self._options, self._of_file, self._version = options, bool(options.file), version
        self._with_rows = set[str]()
        self._name, self._marker = sa.column("name", sa.String), sa.column("marker", sa.String)
        self._markers = relation(options.markers, self._name, self._marker)

    def identity(self) -> TargetIdentity:
        """Nothing that lasts tells a table from another one of its name. But which tables there are beside the sink's
        own one is in the marker: none of these is made again when it is gone."""
        beside = {name: _NAMED._replace(has_rows=name in self._with_rows) for name in [*self._tables][1:]}
        return TargetIdentity("", "", beside=beside)

    def markers(self, names: Sequence[str]) -> Mapping[str, str]:
        """A database that no one knows does not say in words that are known what it lacks: it is asked."""
        asked = sa.select(self._name, self._marker).select_from(self._markers).where(self._name.in_(names))
        try:
            with understood(self._where), self._database.begin():
                return {name: text for name, text in self._database.execute(asked) if text not in (None, NO_MARKER)}
        except Unreachable:
            with understood(self._where), self._database.begin():
                if read_table(self._database, self._options.markers) is None:
                    return {}
            raise

    def begin(self, name: str) -> str | None:
        """Of SQLite whoever begins has the whole file; else the marker is locked, and made where there is none."""
        with understood(self._where):
            self._database.begin()
            if not self._of_file:
                self._lock(name)
            mine = sa.select(self._marker).select_from(self._markers).where(self._name == name)
            marker = self._database.execute(mine).scalar()
        return None if marker in (None, NO_MARKER) else str(marker)

    def _lock(self, name: str) -> None:
        if self._moved(name, self._name, name):
            return
        try:
            self._database.execute(sa.insert(self._markers).values(name=name, marker=NO_MARKER))
        except exc.IntegrityError:  # another attempt has made it, and has ended
            self._database.rollback()
            self._database.begin()
            if not self._moved(name, self._name, name):
                raise Unreachable("The table of markers does not take a marker", where=self._where) from None

    def _moved(self, name: str, column: sa.ColumnClause[str], value: str) -> bool:
        """Whether there is such a marker. It is locked then."""
        change = sa.update(self._markers).where(self._name == name).values({column: value})
        return self._database.execute(change).rowcount > 0

    def write(self, records: pa.RecordBatch) -> None:
        """Of several tables, what is said of rows says which one it is."""
        with understood(self._where):
            if schema_version(self._database) != self._version:
                step = "Nothing of it is committed; the next attempt looks at the columns again"
                raise Retriable("A table was altered while it was written", where=self._where, next_step=step)
        for part in self._routing.parts(records):
            with naming(part.table if len(self._tables) > 1 else ""), understood(f"{self._options.url}/{part.table}"):
                self._tables[part.table].write(self._database, part.records)
            self._with_rows.add(part.table)

    def commit(self, name: str, marker: str) -> None:
        """Raises RowsRefused for a row that a deferred constraint forbids: nothing is committed then."""
        with understood(self._where):
            if not self._moved(name, self._marker, marker):
                self._database.execute(sa.insert(self._markers).values(name=name, marker=marker))
            self._database.commit()

    def rollback(self) -> None:
        """Behind a COMMIT that failed SQLAlchemy knows of no transaction, and the database may have one: the connection
        is given up, and the next transaction has another one."""
        is_known = self._database.in_transaction()
        with understood(self._where):
            self._database.rollback()
        if not is_known:
            self._database.invalidate()
