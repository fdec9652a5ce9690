"""The systems of the pages for authors, and the example with transactions, keep the contracts of their kits."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from connect_core.sdk.kits.log_source import LogSource
from connect_core.sdk.sink import Sink
from connect_core.sdk.testing.commits import CommitContract
from connect_core.sdk.testing.kits import SimpleContract, TransactionContract
from connect_core.sdk.testing.log_sinks import LogSinkContract
from connect_core.sdk.testing.log_sources import LogSourceCase, LogSourceContract
from connect_core.sdk.testing.sinks import SimpleCase

DOCS = Path(__file__).parents[3] / "docs"
SINKS, SOURCES = DOCS / "write-a-sink.md", DOCS / "write-a-source.md"
REFUSED = b"refused"
_CHECKED = "(at INTEGER PRIMARY KEY AUTOINCREMENT, mark TEXT, value BLOB CHECK (value <> CAST('refused' AS BLOB)))"


def _module(name: str, page: Path = SINKS) -> Any:
    """The code of the page whose plug-in has this name."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    (code,) = (block for block in blocks if f'Plugin("{name}"' in block)
    module = ModuleType(name)
    exec(compile(code, f"{page.name}: {name}", "exec", dont_inherit=True), module.__dict__)
    return module


def _example(name: str) -> Any:
    """The module of a package under examples/."""
    path = DOCS.parent / "examples" / name / f"waybill_{name}.py"
    module = ModuleType(f"waybill_{name}")
    sys.modules[module.__name__] = module  # where pydantic looks for what an option's type means
    exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), module.__dict__)
    return module


JOURNAL, FOLDER, SPOOL = _module("journal"), _module("folder"), _module("spool")
SQLITE, EVENTS = _example("sqlite"), _module("events", SOURCES)


class JournalCase(SimpleCase):
    refused = REFUSED

    def __init__(self, folder: Path) -> None:
        self.path = folder / "journal.db"
        self._run(f"CREATE TABLE journal {_CHECKED}")

    def sink(self) -> Sink:
        return JOURNAL.PLUGIN.open_sink(JOURNAL.Options(path=self.path), None)  # type: ignore[no-any-return]

    def content(self, behind: int = 0) -> list[bytes]:
        with closing(sqlite3.connect(self.path)) as database:
            return [value for (value,) in database.execute("SELECT value FROM journal ORDER BY at")][behind:]

    def expire(self, records: int) -> None:
        self._run(f"DELETE FROM journal WHERE at IN (SELECT at FROM journal ORDER BY at LIMIT {records})")

    def recreate(self) -> None:
        self._run("DROP TABLE journal", f"CREATE TABLE journal {_CHECKED}")

    def _run(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as database:
            for statement in statements:
                database.execute(statement)


class FolderCase(SimpleCase):
    refused = b"two\nlines"
    unkept = frozenset({"null", "every byte", "line feed", "carriage return"})
    """A record is a line: one without a value is an empty one, and a value with a line feed is refused."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def sink(self) -> Sink:
        return FOLDER.PLUGIN.open_sink(FOLDER.Options(folder=self.folder), None)  # type: ignore[no-any-return]

    def content(self, behind: int = 0) -> list[bytes]:
        commits = [json.loads(path.read_text()) for path in sorted((self.folder / "_commits").glob("*.json"))]
        names = [name for commit in commits for name in commit["files"]]
        return [line for name in names for line in (self.folder / name).read_bytes().split(b"\n")[:-1]][behind:]

    def commit_as_others(self) -> None:
        sink: Any = self.sink()
        sink.prepare()
        sink.commit([], "others", "", sink.last("others").commit)


class SpoolCase(SimpleCase):
    repeats = "unsettled"
    unkept = frozenset({"null", "every byte", "line feed", "carriage return"})
    """A record is a line of a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "spool"
        self.folder.mkdir()
        self.files: list[Path] = []

    def sink(self) -> Sink:
        return SPOOL.PLUGIN.open_sink(SPOOL.Options(folder=self.folder), None)  # type: ignore[no-any-return]

    def content(self, behind: int = 0) -> list[bytes]:
        """File by file, as they came."""
        new = {*self.folder.iterdir()} - {*self.files}
        self.files += sorted(new, key=lambda path: path.stat().st_mtime_ns)
        return [line for path in self.files for line in path.read_bytes().split(b"\n")[:-1]][behind:]

    def break_(self) -> None:
        self.folder.rename(self.folder.with_name("elsewhere"))


class TableCase(SimpleCase):
    """Of the example with transactions: its table refuses the value that a person has forbidden."""

    refused = REFUSED
    unkept = frozenset({"every byte", "not text"})
    """Values become text: what is none is stored with replacement characters."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "rows.db"
        self._run("CREATE TABLE rows (key TEXT, value TEXT CHECK (value <> 'refused'), stored_at TEXT)")

    def sink(self) -> Sink:
        options = SQLITE.Options(path=self.path, table="rows")
        return SQLITE.PLUGIN.open_sink(options, None)  # type: ignore[no-any-return]

    def content(self, behind: int = 0) -> list[bytes | None]:
        values = (value for (value,) in self._run("SELECT value FROM rows ORDER BY rowid"))
        return [None if value is None else value.encode() for value in values][behind:]

    def break_(self) -> None:
        for path in self.path.parent.glob("rows.db*"):
            path.unlink()
        self.path.mkdir()

    def _run(self, statement: str) -> list[Any]:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as database:
            return database.execute(statement).fetchall()


class EventsCase(LogSourceCase):
    unkept = frozenset({"null", "every byte", "not text"})
    """A row of the table is text."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "events.db"
        self._make()

    def source(self) -> LogSource:
        source: LogSource = EVENTS.PLUGIN.open_source(EVENTS.Options(path=self.path), None)
        source.every_s = 0.01
        return source

    def append(self, values: Sequence[bytes | None]) -> None:
        self._run("INSERT INTO events (body) VALUES (?)", *[((value or b"").decode(),) for value in values])

    def expire(self, records: int) -> None:
        self._run("DELETE FROM events WHERE id IN (SELECT id FROM events ORDER BY id LIMIT ?)", (records,))

    def renew(self) -> None:
        self._run("DROP TABLE events", ())
        self._make()

    def break_(self) -> None:
        self.path.unlink()

    def _make(self) -> None:
        self._run("CREATE TABLE events (id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT)", ())

    def _run(self, statement: str, *rows: tuple[Any, ...]) -> None:
        with closing(sqlite3.connect(self.path)) as database:
            for row in rows:
                database.execute(statement, row)
            database.commit()


class TestTheLogOfThePage(LogSourceContract):
    @pytest.fixture
    def system(self, tmp_path: Path) -> EventsCase:
        return EventsCase(tmp_path)


class TestTheSpoolOfThePage(SimpleContract):
    @pytest.fixture
    def target(self, tmp_path: Path) -> SpoolCase:
        return SpoolCase(tmp_path)


class TestTheTableOfTheExample(TransactionContract):
    @pytest.fixture
    def target(self, tmp_path: Path) -> TableCase:
        return TableCase(tmp_path)


class TestTheJournalOfThePage(LogSinkContract):
    @pytest.fixture
    def target(self, tmp_path: Path) -> JournalCase:
        return JournalCase(tmp_path)


class TestTheFolderOfThePage(CommitContract):
    @pytest.fixture
    def target(self, tmp_path: Path) -> FolderCase:
        return FolderCase(tmp_path)


def test_the_code_of_the_page_is_short() -> None:
    blocks = re.findall(r"```python\n(.*?)```", SINKS.read_text(), re.DOTALL)
    assert max(len(block.splitlines()) for block in blocks) <= 90
