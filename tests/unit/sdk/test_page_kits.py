"""The systems of the pages for authors, and those of the examples, keep the contracts of their kits."""

from __future__ import annotations

import importlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from textwrap import indent
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
from connect_core.sdk.testing.driving import records
from tests.page_code import DOCS, EXAMPLES, FOR_AUTHORS, blocks, module_of, suite_of

ANY_BYTES = [b"a\nb", None, b"", b"\xff\xfe", b"\xfe\xff"]
SPOOL, LATEST = map(module_of, ("spool", "latest"))
SpoolCase = suite_of("spool").SpoolCase


class TestTheTableOfTheExample(suite_of("sqlite").TestTheTable):  # type: ignore[misc]
    pass


class TestTheRowsOfThePage(suite_of("latest").TestTheRows):  # type: ignore[misc]
    pass


class TestTheJournalOfThePage(suite_of("journal").TestTheJournal):  # type: ignore[misc]
    pass


class TestTheFolderOfThePage(suite_of("folder").TestTheFolder):  # type: ignore[misc]
    pass


def test_the_spool_of_the_page_keeps_any_bytes_and_what_is_missing(tmp_path: Path) -> None:
    case = SpoolCase(tmp_path)
    with case.sink().connect() as connection:
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


def test_the_transactions_of_the_page_are_those_of_the_example() -> None:
    (code,) = (block for block in blocks("write-a-sink.md") if block.startswith("def begin"))
    there = (EXAMPLES / "sqlite" / "waybill_sqlite.py").read_text()
    assert [method for method in code.split("\n\n") if indent(method, "    ").rstrip() not in there] == []


@pytest.mark.parametrize("name", ["sqlite", "webhook", "pages"])
def test_a_page_says_how_long_an_example_is(name: str) -> None:
    lines = len((EXAMPLES / name / f"waybill_{name}.py").read_text().splitlines())
    there = "".join((DOCS / page).read_text() for page in FOR_AUTHORS)
    assert f"waybill_{name}.py), {lines} lines" in there
