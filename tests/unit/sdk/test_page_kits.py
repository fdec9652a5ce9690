"""The log and the folder with commits of the page "Write a sink" keep the contracts of their kits."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from connect_core.sdk.sink import Sink
from connect_core.sdk.testing.commits import CommitContract
from connect_core.sdk.testing.log_sinks import LogSinkContract
from connect_core.sdk.testing.sinks import SimpleCase

PAGE = Path(__file__).parents[3] / "docs" / "write-a-sink.md"
REFUSED = b"refused"
_CHECKED = "(at INTEGER PRIMARY KEY AUTOINCREMENT, mark TEXT, value BLOB CHECK (value <> CAST('refused' AS BLOB)))"


def _module(name: str) -> Any:
    """The code of the page whose plug-in has this name."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (code,) = (block for block in blocks if f'Plugin("{name}"' in block)
    module = ModuleType(name)
    exec(compile(code, f"{PAGE.name}: {name}", "exec", dont_inherit=True), module.__dict__)
    return module


JOURNAL, FOLDER = _module("journal"), _module("folder")


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

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def sink(self) -> Sink:
        return FOLDER.PLUGIN.open_sink(FOLDER.Options(folder=self.folder), None)  # type: ignore[no-any-return]

    def content(self, behind: int = 0) -> list[bytes]:
        commits = [json.loads(path.read_text()) for path in sorted((self.folder / "_commits").glob("*.json"))]
        names = [name for commit in commits for name in commit["files"]]
        return [line for name in names for line in (self.folder / name).read_bytes().splitlines()][behind:]

    def commit_as_others(self) -> None:
        sink: Any = self.sink()
        sink.prepare()
        sink.commit([], "others", "", sink.last("others").commit)


class TestTheJournalOfThePage(LogSinkContract):
    @pytest.fixture
    def target(self, tmp_path: Path) -> JournalCase:
        return JournalCase(tmp_path)


class TestTheFolderOfThePage(CommitContract):
    @pytest.fixture
    def target(self, tmp_path: Path) -> FolderCase:
        return FolderCase(tmp_path)


def test_the_code_of_the_page_is_short() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert max(len(block.splitlines()) for block in blocks) <= 90
