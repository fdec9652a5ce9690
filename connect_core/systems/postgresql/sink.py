"""Tables as a target: rows and how far they have come, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Literal

import pyarrow as pa
from psycopg2.extensions import TRANSACTION_STATUS_IDLE, connection

from connect_core.errors import Missing
from connect_core.rows.types import struct_of
from connect_core.sdk.kits.identity import TargetIdentity
from connect_core.sdk.kits.transactions import TransactionSink
from connect_core.systems.postgresql.catalog import quoted, read_table
from connect_core.systems.postgresql.connecting import connected
from connect_core.systems.postgresql.failures import understood
from connect_core.systems.postgresql.fitting import columns_of, key_of
from connect_core.systems.postgresql.making import LOCK, make_room
from connect_core.systems.postgresql.options import PostgresSinkOptions
from connect_core.systems.postgresql.relations import check_apart
from connect_core.systems.postgresql.rights import check_rights
from connect_core.systems.postgresql.table_writing import TableWriter
from connect_core.systems.tables.named_targets import naming
from connect_core.systems.tables.routing import Routing, TableShape

_MISSING_STEP = (
    "Create it, or name another one; the next attempt looks again. A range that was begun in a table that is gone for"
    " good is given up by: waybill offsets set NAME PARTITION OFFSET --abandon"
)


class PostgresSink(TransactionSink):
    takes_rows: Literal[True] = True

    def __init__(self, options: PostgresSinkOptions) -> None:
        super().__init__(target=f"{options.address}/{options.whole_name(options.table)}")
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
                self._check_several(database)
            make_markers(database, self._options.markers, self.target)

    def invalid_rows(self, records: pa.RecordBatch) -> list[tuple[int, str, str]]:
        return self._routing.invalid_rows(records)

    @contextmanager
    def connect(self) -> Iterator[PostgresConnection]:
        with self._database() as database:
            yield PostgresConnection(database, self._writers(database), self._routing, self._options, self.target)

    @contextmanager
    def _database(self) -> Iterator[connection]:
        with closing(connected(self._options, self.target)) as database:
            yield database

    def _where(self, name: str) -> str:
        return f"{self._options.address}/{name}"

    def _writers(self, database: connection) -> dict[str, TableWriter]:
        """By whole name. The tables may have changed since somebody looked last."""
        tables = enumerate(self._tables.items())
        return {name: _writer(database, one, self._where(name), number) for number, (name, one) in tables}

    def _check_several(self, database: connection) -> None:
        """What one of them lacks would show when others have rows already."""
        with understood(self.target), database.cursor() as asking:
            check_apart(asking, [*self._tables], self._options.address)
        for name, one in self._tables.items():
            with understood(self._where(name)), database.cursor() as asking:
                check_rights(asking, one, self._where(name))


def _writer(database: connection, options: PostgresSinkOptions, where: str, number: int) -> TableWriter:
    with understood(where):
        table = read_table(database, options.table)
    if table is None:
        raise Missing("There is no such table", where=where, next_step=_MISSING_STEP)
    rows = struct_of(options.row_fields)
    columns = columns_of(table, rows, where)
    key = () if options.mode == "insert" else key_of(table, options.key, rows, where)
    return TableWriter(options.table, table, columns, key, number)


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
    """A `sdk.kits.transactions.TransactionConnection` and `Listing`, and `sdk.kits.identity.Identified`. `tables` are
    by whole name, the sink's own first."""

    def __init__(
        self,
        database: connection,
        tables: Mapping[str, TableWriter],
        routing: Routing,
        options: PostgresSinkOptions,
        where: str,
    ) -> None:
        self._database, self._tables, self._routing = database, tables, routing
        self._options, self._where = options, where
        self._markers = quoted(options.markers)
        self._with_rows = set[str]()

    def identity(self) -> TargetIdentity:
        """By oids. A table that was written in this transaction is locked: nobody can give its name to another one."""
        markers, *oids = self._oids([self._options.markers, *self._tables])
        own, *others = (self._identified(oid, markers) for oid in oids)
        beside = {
            name: one._replace(has_rows=name in self._with_rows)
            for name, one in zip([*self._tables][1:], others, strict=True)
        }
        return own._replace(beside=beside)

    def _oids(self, names: Sequence[str]) -> Sequence[int]:
        with understood(self._where), self._database.cursor() as cursor:
            asked = ", ".join(["to_regclass(%s)::oid"] * len(names))
            cursor.execute(f"SELECT {asked}", [quoted(name) for name in names])
            found = cursor.fetchone() or ()
        for name, oid in zip(names, found, strict=True):
            if oid is None:
                where = f"{self._options.address}/{name}" if len(self._tables) > 1 else self._where
                raise Missing("There is no such table", where=where, next_step=_MISSING_STEP)
        return found

    def _identified(self, oid: int, markers: int) -> TargetIdentity:
        accepted = self._options.accepted_tables
        accepting = f"write accepts_table: {oid} in the document's sink"
        return TargetIdentity(f"oid {oid}", f"oid {markers}", oid in accepted, accepting)

    def begin(self, name: str) -> str | None:
        """Whether there is a marker or not, whoever begins with its name waits for the lock of the name."""
        with understood(self._where), self._database.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(LOCK, (name,))
            cursor.execute(f"SELECT marker FROM {self._markers} WHERE name = %s", (name,))
            row = cursor.fetchone()
        return str(row[0]) if row else None

    def markers(self, names: Sequence[str]) -> Mapping[str, str]:
        try:
            with understood(self._where), self._database.cursor() as cursor:
                cursor.execute(f"SELECT name, marker FROM {self._markers} WHERE name = ANY(%s)", ([*names],))
                return dict(cursor.fetchall())
        except Missing:
            return {}

    def write(self, records: pa.RecordBatch) -> None:
        """What tables check at the end of a transaction they check here, while it can be said which row is at fault,
        and behind the rows of all of them: a row may need one of another table."""
        with understood(self._where), self._database.cursor() as cursor:
            parts = self._routing.parts(records)
            for part in parts:
                with self._named(part.table):
                    self._tables[part.table].put(cursor, part.records)
                self._with_rows.add(part.table)
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            for part in parts:
                self._tables[part.table].check(cursor)

    @contextmanager
    def _named(self, table: str) -> Iterator[None]:
        """Of several tables: what is said of rows says which one it is."""
        with naming(table if len(self._tables) > 1 else ""), understood(f"{self._options.address}/{table}"):
            yield

    def commit(self, name: str, marker: str) -> None:
        with understood(self._where), self._database.cursor() as cursor:
            kept = "ON CONFLICT (name) DO UPDATE SET marker = EXCLUDED.marker"
            cursor.execute(f"INSERT INTO {self._markers} VALUES (%s, %s) {kept}", (name, marker))
            cursor.execute("COMMIT")

    def rollback(self) -> None:
        if not self._database.closed and self._database.get_transaction_status() != TRANSACTION_STATUS_IDLE:
            with understood(self._where), self._database.cursor() as cursor:
                cursor.execute("ROLLBACK")
