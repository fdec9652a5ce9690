"""Systems in memory for the kits, to test with and to read; logs and tables with commits are beside this module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from connect_core.sdk.kits.keyed import AGAIN, STORED, Answer, KeyedSink
from connect_core.sdk.kits.polled import Polled, PolledSource
from connect_core.sdk.kits.refused import RowsRefused
from connect_core.sdk.kits.simple import SimpleSink
from connect_core.sdk.kits.transactions import TransactionSink
from connect_core.sdk.records import Record
from connect_core.sdk.values import Json

HATED = b"hated"
"""The value that tables and indexes in memory refuse."""


class MemoryBox(SimpleSink):
    """What was written stands in `rows`."""

    def __init__(self, rows: list[bytes]) -> None:
        super().__init__("memory")
        self.rows = rows

    @contextmanager
    def connect(self) -> Iterator[MemoryBox]:
        yield self

    def write(self, records: pa.RecordBatch) -> None:
        self.rows += values_of(records)


@dataclass
class Database:
    """Rows and markers, as they were committed."""

    rows: list[bytes] = field(default_factory=list)
    markers: dict[str, str] = field(default_factory=dict)


class MemoryTable(TransactionSink):
    def __init__(self, database: Database) -> None:
        super().__init__("memory")
        self._database = database

    @contextmanager
    def connect(self) -> Iterator[_Transaction]:
        yield _Transaction(self._database)


class _Transaction:
    """Nobody else writes between `begin` and the end, because the caller has one thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows: list[bytes] = []

    def begin(self, name: str) -> str | None:
        self._rows = []
        return self._database.markers.get(name)

    def write(self, records: pa.RecordBatch) -> None:
        values = values_of(records)
        if HATED in values:
            raise RowsRefused("Hated", "A value is hated")
        self._rows += values

    def commit(self, name: str, marker: str) -> None:
        self._database.rows += self._rows
        self._database.markers[name] = marker
        self._rows = []

    def rollback(self) -> None:
        self._rows = []


@dataclass
class Index:
    """Values and versions by id."""

    rows: dict[str, tuple[int, bytes]] = field(default_factory=dict)


class MemoryIndex(KeyedSink):
    """Of each put every third row is not taken, as by an index that is busy."""

    def __init__(self, index: Index) -> None:
        super().__init__("memory")
        self._index = index

    @contextmanager
    def connect(self) -> Iterator[MemoryIndex]:
        yield self

    def put(self, ids: Sequence[str], versions: Sequence[int], records: pa.RecordBatch) -> list[Answer]:
        rows = zip(ids, versions, values_of(records), strict=True)
        return [AGAIN if number % 3 == 0 else self._put(*row) for number, row in enumerate(rows, 1)]

    def _put(self, id_: str, version: int, value: bytes) -> Answer:
        if value == HATED:
            return Answer(False, "Hated", "The value is hated")
        if version >= self._index.rows.get(id_, (-1, b""))[0]:
            self._index.rows[id_] = (version, value)
        return STORED


class MemoryPages(PolledSource):
    """A list that grows; a page has at most `page` records."""

    every_s = 0.01

    def __init__(self, values: list[bytes], page: int = 17) -> None:
        super().__init__()
        self._values, self._page = values, page

    def poll(self, name: str, checkpoint: Json) -> Polled:
        first = int(checkpoint.get("next", 0))
        values = self._values[first : first + self._page]
        return Polled([Record(value) for value in values], {"next": first + len(values)})


def values_of(records: pa.RecordBatch) -> list[bytes]:
    """Of each row; a null is empty."""
    return [value or b"" for value in records.column("value").to_pylist()]
