"""A system that is made with a kit keeps the contract of its end, whatever goes wrong in it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from connect_core.sdk.records import Record
from connect_core.sdk.testing.commits import CommitContract
from connect_core.sdk.testing.keyed_sinks import KeyedContract
from connect_core.sdk.testing.kits import SimpleContract, TransactionContract
from connect_core.sdk.testing.log_sinks import LogSinkContract
from connect_core.sdk.testing.memory import (
    HATED,
    Database,
    Index,
    MemoryBox,
    MemoryIndex,
    MemoryPages,
    MemoryTable,
)
from connect_core.sdk.testing.memory_lake import Lake, MemoryLake
from connect_core.sdk.testing.memory_log import Journal, MemoryLog
from connect_core.sdk.testing.sinks import SimpleCase
from connect_core.sdk.testing.sources import SourceContract


class Box(SimpleCase):
    in_memory = True
    repeats = "unsettled"

    def __init__(self) -> None:
        self.rows: list[bytes | None] = []

    def sink(self) -> MemoryBox:
        return MemoryBox(self.rows)

    def content(self, behind: int = 0) -> Sequence[bytes | None]:
        return self.rows[behind:]


class Table(SimpleCase):
    in_memory = True
    refused = HATED

    def __init__(self) -> None:
        self.database = Database()

    def sink(self) -> MemoryTable:
        return MemoryTable(self.database)

    def content(self, behind: int = 0) -> Sequence[bytes | None]:
        return self.database.values()[behind:]

    def records(self) -> Sequence[Record]:
        return self.database.rows


class Shelf(SimpleCase):
    in_memory = True
    refused = HATED

    def __init__(self, *, by_key: bool) -> None:
        self.index, self._by_key = Index(), by_key

    def sink(self) -> MemoryIndex:
        return MemoryIndex(self.index, by_key=self._by_key)

    def content(self, behind: int = 0) -> Sequence[bytes | None]:
        return self.index.values()[behind:]


class Records(SimpleCase):
    in_memory = True
    refused = HATED

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.expire, self.recreate = journal.expire, journal.recreate

    def sink(self) -> MemoryLog:
        return MemoryLog(self.journal)

    def content(self, behind: int = 0) -> Sequence[bytes | None]:
        return self.journal.values()[behind:]


class Files(SimpleCase):
    in_memory = True
    refused = HATED

    def __init__(self) -> None:
        self.lake = Lake()
        self.commit_as_others = self.lake.commit_as_others

    def sink(self) -> MemoryLake:
        return MemoryLake(self.lake)

    def content(self, behind: int = 0) -> Sequence[bytes | None]:
        return self.lake.rows()[behind:]


class Pages:
    def __init__(self, *, empty: int = 0) -> None:
        self.values: list[bytes | None] = []
        self._empty = empty

    def source(self) -> MemoryPages:
        return MemoryPages(self.values, empty=self._empty)

    def append(self, values: Sequence[bytes | None]) -> None:
        self.values += values


class TestASimpleSink(SimpleContract):
    @pytest.fixture
    def target(self) -> Box:
        return Box()


class TestATransactionSink(TransactionContract):
    @pytest.fixture
    def target(self) -> Table:
        return Table()


class TestAKeyedSink(KeyedContract):
    @pytest.fixture(params=[False, True], ids=["by-coordinates", "by-key"])
    def target(self, request: pytest.FixtureRequest) -> Shelf:
        return Shelf(by_key=request.param)


class TestALogSink(LogSinkContract):
    @pytest.fixture
    def target(self) -> Records:
        return Records(Journal())


class TestALogSinkWhosePositionsDoNotAdjoin(LogSinkContract):
    steps = 40

    @pytest.fixture
    def target(self) -> Records:
        return Records(Journal(step=10))


class TestALogSinkWhoseRecordsAppearLater(LogSinkContract):
    steps = 40

    @pytest.fixture
    def target(self) -> Records:
        return Records(Journal(lags=True))


class TestACommitSink(CommitContract):
    @pytest.fixture
    def target(self) -> Files:
        return Files()


class TestAPolledSource(SourceContract):
    idle_timeout_s = 0.05

    @pytest.fixture
    def system(self) -> Pages:
        return Pages()


class TestAPolledSourceWithEmptyPages(SourceContract):
    idle_timeout_s = 0.5  # several polls, also on a busy machine

    @pytest.fixture
    def system(self) -> Pages:
        return Pages(empty=2)
