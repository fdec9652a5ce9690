"""The systems of the pages for authors, and those of the examples, keep the contracts of their kits."""

from __future__ import annotations

import base64
import importlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from connect_core import systems
from connect_core.config.endpoints import Surroundings, read_end
from connect_core.config.written import Written
from connect_core.sdk.batches import record_batch
from connect_core.sdk.kits.keyed import STORED
from connect_core.sdk.plugin import Plugin
from connect_core.sdk.records import Record
from connect_core.sdk.sink import Sink
from connect_core.sdk.testing.commits import CommitContract
from connect_core.sdk.testing.driving import records
from connect_core.sdk.testing.keyed_sinks import KeyedContract
from connect_core.sdk.testing.kits import SimpleContract, TransactionContract
from connect_core.sdk.testing.log_sinks import LogSinkContract
from connect_core.sdk.testing.sinks import SimpleCase
from tests.page_code import DOCS, EXAMPLES, FOR_AUTHORS, blocks, example, module_of

REFUSED = b"refused"
_CHECK = "CHECK (value <> CAST('refused' AS BLOB))"
_CHECKED = f"(at INTEGER PRIMARY KEY AUTOINCREMENT, mark TEXT, value BLOB {_CHECK})"
ANY_BYTES = [b"a\nb", None, b"", b"\xff\xfe", b"\xfe\xff"]


SPOOL, JOURNAL, FOLDER, LATEST = map(module_of, ("spool", "journal", "folder", "latest"))
SQLITE = example("sqlite")
JOURNAL.PAGE = 7


def _decoded(line: str | None) -> bytes | None:
    return None if line is None else base64.b64decode(line)


class SpoolCase(SimpleCase):
    repeats = "unsettled"

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "spool"
        self.folder.mkdir()
        self.files: list[Path] = []

    def sink(self) -> Sink:
        return SPOOL.PLUGIN.open_sink(SPOOL.Options(folder=self.folder), None)  # type: ignore[no-any-return]

    def content(self, behind: int = 0) -> list[Any]:
        """File by file, as they came."""
        new = {*self.folder.glob("[!.]*")} - {*self.files}
        self.files += sorted(new, key=lambda path: path.stat().st_mtime_ns)
        lines = [json.loads(line) for path in self.files for line in path.read_text().splitlines()]
        return [_decoded(line) for line in lines][behind:]

    def break_(self) -> None:
        self.folder.rename(self.folder.with_name("elsewhere"))


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


class LatestCase(SimpleCase):
    refused = REFUSED

    def __init__(self, folder: Path, *, by_key: bool) -> None:
        self.path, self._by_key = folder / "latest.db", by_key
        with closing(sqlite3.connect(self.path)) as database:
            database.execute(
                f"CREATE TABLE latest (id TEXT PRIMARY KEY, version INTEGER NOT NULL, value BLOB {_CHECK})"
            )

    def sink(self) -> Sink:
        options = LATEST.Options(path=self.path, by_key=self._by_key)
        return LATEST.PLUGIN.open_sink(options, None)  # type: ignore[no-any-return]

    def content(self, behind: int = 0) -> list[bytes]:
        with closing(sqlite3.connect(self.path)) as database:
            rows = database.execute("SELECT value FROM latest WHERE value IS NOT NULL ORDER BY rowid")
            return [value for (value,) in rows][behind:]


class TableCase(SimpleCase):
    """Of the example with transactions: its table refuses the value that a person has forbidden."""

    refused = REFUSED

    def __init__(self, folder: Path) -> None:
        self.path = folder / "rows.db"
        self._run(f"CREATE TABLE rows (key TEXT, value BLOB {_CHECK}, headers TEXT, stored_at TEXT)")

    def sink(self) -> Sink:
        options = SQLITE.Options(path=self.path, table="rows")
        return SQLITE.PLUGIN.open_sink(options, None)  # type: ignore[no-any-return]

    def content(self, behind: int = 0) -> list[bytes | None]:
        return [value for (value,) in self._run("SELECT value FROM rows ORDER BY rowid")][behind:]

    def break_(self) -> None:
        for path in self.path.parent.glob("rows.db*"):
            path.unlink()
        self.path.mkdir()

    def _run(self, statement: str) -> list[Any]:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as database:
            return database.execute(statement).fetchall()


class TestTheTableOfTheExample(TransactionContract):
    @pytest.fixture
    def target(self, tmp_path: Path) -> TableCase:
        return TableCase(tmp_path)


class TestTheSpoolOfThePage(SimpleContract):
    @pytest.fixture
    def target(self, tmp_path: Path) -> SpoolCase:
        return SpoolCase(tmp_path)


class TestTheRowsOfThePage(KeyedContract):
    steps = 40

    @pytest.fixture(params=[False, True], ids=["by-coordinates", "by-key"])
    def target(self, request: pytest.FixtureRequest, tmp_path: Path) -> LatestCase:
        return LatestCase(tmp_path, by_key=request.param)


class TestTheJournalOfThePage(LogSinkContract):
    @pytest.fixture
    def target(self, tmp_path: Path) -> JournalCase:
        return JournalCase(tmp_path)


class TestTheFolderOfThePage(CommitContract):
    @pytest.fixture
    def target(self, tmp_path: Path) -> FolderCase:
        return FolderCase(tmp_path)


def test_the_spool_of_the_page_keeps_any_bytes_and_what_is_missing(tmp_path: Path) -> None:
    case = SpoolCase(tmp_path)
    with case.sink().connect() as connection:  # type: ignore[attr-defined]
        connection.write(records(ANY_BYTES))
    assert case.content() == ANY_BYTES


@pytest.mark.parametrize("newer", [b"new", None])
def test_a_late_row_of_the_page_brings_nothing_old_back(tmp_path: Path, newer: bytes | None) -> None:
    """Also where the newer one was a deletion."""
    sink = LATEST.PLUGIN.open_sink(LATEST.Options(path=tmp_path / "latest.db"), None)
    sink.prepare()
    with sink.connect() as connection:
        for version, value in ((5, b"old"), (6, newer), (5, b"old")):
            assert connection.put(["k"], [version], records([value])) == [STORED]
    with closing(sqlite3.connect(tmp_path / "latest.db")) as database:
        assert database.execute("SELECT id, version, value FROM latest").fetchall() == [("k", 6, newer)]


def test_the_rows_of_the_page_are_stored_by_key_and_promise_what_their_kit_does(tmp_path: Path) -> None:
    sink = LATEST.PLUGIN.open_sink(LATEST.Options(path=tmp_path / "latest.db"), None)
    assert sink.by_key
    assert sink.invalid_rows(records([b"a"])) != []
    assert LATEST.PLUGIN.guarantee("sink", {}) == LATEST.Latest.guarantee


def test_the_table_of_the_examples_keeps_bytes_keys_and_headers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(EXAMPLES / "sqlite")
    module = importlib.import_module("waybill_sqlite")
    sink = module.Table(module.Options(path=tmp_path / "t.db", table="t"))
    sink.prepare()
    rows = [Record(value) for value in ANY_BYTES] + [Record(b"v", "k", (("a", "1"), ("b", "\u00fc")))]
    with sink.connect() as connection:
        connection.begin("one")
        connection.write(record_batch(rows, range(len(rows))))
        connection.commit("one", "marker")
    with closing(sqlite3.connect(tmp_path / "t.db")) as database:
        kept = database.execute("SELECT key, value, headers FROM t").fetchall()
    assert kept[:-1] == [(None, value, None) for value in ANY_BYTES]
    assert kept[-1][:2] == ("k", b"v")
    assert json.loads(kept[-1][2]) == {"a": "1", "b": "\u00fc"}


def _faults_and_options(monkeypatch: pytest.MonkeyPatch, folder: Path, given: dict[str, str]) -> tuple[list[str], Any]:
    """What `check` finds in these options of the model under "Paths and secrets", and what it stores."""
    (code,) = (block for block in blocks("write-a-sink.md") if "SPOOL_PASSWORD" in block)
    module = ModuleType("secrets_of_the_page")
    imports = "from pathlib import Path\nfrom pydantic import BaseModel, Field\n"
    exec(compile(imports + code, "page: secrets", "exec", dont_inherit=True), module.__dict__)
    monkeypatch.setattr(systems, "SYSTEMS", {"kept": Plugin("kept", "Kept", sink_options=module.Options)})
    end = read_end("sink", "kept", given, Surroundings(None, (folder,)), {}, Written({}, "a test"))
    return list(map(str, end.faults)), end.own


def test_a_secret_of_the_page_is_refused_in_plain_text(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain, _ = _faults_and_options(monkeypatch, tmp_path, {"folder": "f", "password": "hunter2"})
    assert ["plain text" in fault for fault in plain] == [True]
    assert "hunter2" not in plain[0]
    assert _faults_and_options(monkeypatch, tmp_path, {"folder": "f", "password": "${env:X}"})[0] == []


def test_a_relative_path_of_the_page_becomes_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert _faults_and_options(monkeypatch, tmp_path, {"folder": "f"})[1] == {"folder": str(tmp_path / "f")}
    assert _faults_and_options(monkeypatch, tmp_path, {"folder": "/elsewhere"})[0] != []


@pytest.mark.parametrize("plugin", ["spool", "journal", "folder", "latest", "events", "tray"])
def test_a_path_of_the_pages_is_declared_as_one(plugin: str) -> None:
    model = next(one for one in (module_of(plugin).PLUGIN.options(role) for role in ("sink", "source")) if one)
    field = model.model_fields.get("path") or model.model_fields["folder"]
    assert field.json_schema_extra == {"kind": "path"}


def test_the_code_of_the_pages_is_short() -> None:
    assert max(len(block.splitlines()) for page in FOR_AUTHORS for block in blocks(page)) <= 90


@pytest.mark.parametrize("name", ["sqlite", "webhook", "pages"])
def test_a_page_says_how_long_an_example_is(name: str) -> None:
    lines = len((EXAMPLES / name / f"waybill_{name}.py").read_text().splitlines())
    there = "".join((DOCS / page).read_text() for page in FOR_AUTHORS)
    assert f"waybill_{name}.py), {lines} lines" in there
