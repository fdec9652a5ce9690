"""Systems in memory for the kits, to test with and to read; logs and tables with commits are beside this module."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from connect_core.errors import Unreachable
from connect_core.sdk.kits.identity import TargetIdentity
from connect_core.sdk.kits.keyed import AGAIN, STORED, Answer, KeyedSink
from connect_core.sdk.kits.polled import Polled, PolledSource
from connect_core.sdk.kits.refused import RowsRefused
from connect_core.sdk.kits.simple import SimpleSink
from connect_core.sdk.kits.transactions import TransactionSink
from connect_core.sdk.records import Record
from connect_core.sdk.testing.content import records_of
from connect_core.sdk.values import Json

HATED = b"hated"
"""The value that tables and indexes in memory refuse."""


class MemoryBox(SimpleSink):
    """What was written stands in `rows`."""

    def __init__(self, rows: list[bytes | None]) -> None:
        super().__init__("memory")
        self.rows = rows

    @contextmanager
    def connect(self) -> Iterator[MemoryBox]:
        yield self

    def write(self, records: pa.RecordBatch) -> None:
        self.rows += values_of(records)


@dataclass
class Database:
    """Rows and markers, as they were committed. A marker's name has one transaction at a time, its owner: the next one
    waits for `patience_s`."""

    rows: list[Record] = field(default_factory=list)
    markers: dict[str, str] = field(default_factory=dict)
    patience_s: float = 5.0
    hated: set[bytes | None] = field(default_factory=lambda: {HATED})
    owners: dict[str, _Transaction] = field(default_factory=dict)
    identity: TargetIdentity = field(default_factory=lambda: TargetIdentity("rows 1", "markers 1"))

    def values(self) -> list[bytes | None]:
        return [row.value for row in self.rows]

    def lock(self, name: str, transaction: _Transaction) -> None:
        until = time.monotonic() + self.patience_s
        while self.owners.setdefault(name, transaction) is not transaction:
            if time.monotonic() > until:
                raise Unreachable("Another transaction does not end", where="memory")
            time.sleep(0.002)

    def unlock(self, transaction: _Transaction) -> None:
        for name in [name for name, owner in [*self.owners.items()] if owner is transaction]:
            del self.owners[name]


class MemoryTable(TransactionSink):
    def __init__(self, database: Database) -> None:
        super().__init__("memory")
        self._database = database

    @contextmanager
    def connect(self) -> Iterator[_Transaction]:
        transaction = _Transaction(self._database)
        try:
            yield transaction
        finally:
            transaction.rollback()


class _Transaction:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows: list[Record] = []

    def identity(self) -> TargetIdentity:
        return self._database.identity

    def begin(self, name: str) -> str | None:
        self._database.lock(name, self)
        self._rows = []
        return self._database.markers.get(name)

    def write(self, records: pa.RecordBatch) -> None:
        if not self._database.hated.isdisjoint(values_of(records)):
            raise RowsRefused("Hated", "A value is hated")
        self._rows += records_of(records)

    def commit(self, name: str, marker: str) -> None:
        self._database.rows += self._rows
        self._database.markers[name] = marker
        self.rollback()

    def rollback(self) -> None:
        self._rows = []
        self._database.unlock(self)


@dataclass
class Index:
    """Values and versions by id. A row that was deleted keeps its version."""

    rows: dict[str, tuple[int, bytes | None]] = field(default_factory=dict)

    def values(self) -> list[bytes]:
        return [value for _, value in self.rows.values() if value is not None]


class MemoryIndex(KeyedSink):
    """Of each put every third row is not taken, as by an index that is busy."""

    def __init__(self, index: Index, *, by_key: bool = False) -> None:
        super().__init__("memory")
        self._index, self.by_key = index, by_key

    @contextmanager
    def connect(self) -> Iterator[MemoryIndex]:
        yield self

    def put(self, ids: Sequence[str], versions: Sequence[int], records: pa.RecordBatch) -> list[Answer]:
        rows = zip(ids, versions, values_of(records), strict=True)
        return [AGAIN if number % 3 == 0 else self._put(*row) for number, row in enumerate(rows, 1)]

    def _put(self, id_: str, version: int, value: bytes | None) -> Answer:
        if value == HATED:
            return Answer(False, "Hated", "The value is hated")
        if version >= self._index.rows.get(id_, (-1, b""))[0]:
            self._index.rows[id_] = (version, value)
        return STORED


class MemoryPages(PolledSource):
    """A list that grows; a page has at most `page` records. Before each page with records come so many that are
    `empty`, as of an API that leaves out what a filter does not want."""

    every_s = 0.01

    def __init__(self, values: Sequence[bytes | None], page: int = 17, *, empty: int = 0) -> None:
        super().__init__()
        self._values, self._page, self._empty = values, page, empty

    def poll(self, name: str, checkpoint: Json) -> Polled:
        first, passed = int(checkpoint.get("next", 0)), int(checkpoint.get("passed", 0))
        if passed < self._empty and first < len(self._values):
            return Polled([], {"next": first, "passed": passed + 1})
        values = self._values[first : first + self._page]
        return Polled([Record(value) for value in values], {"next": first + len(values)})


def values_of(records: pa.RecordBatch) -> list[bytes | None]:
    values: list[bytes | None] = records.column("value").to_pylist()
    return values
