"""The contract suites kill processes, and not only raise exceptions: they notice what an exception cleans up."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest

from connect_core.errors import Unreachable
from connect_core.sdk.kits.transactions import TransactionSink
from connect_core.sdk.testing import deaths
from connect_core.sdk.testing.kits import TransactionContract
from connect_core.sdk.testing.sinks import SettledState, SimpleCase
from connect_core.sdk.testing.steps import leaving_files_open
from tests.contract.systems.test_kits import Table

RAISED = "test_a_process_that_dies_between_any_two_steps_loses_nothing"
KILLED = "test_a_process_that_is_killed_loses_nothing"


class Shelves(TransactionSink):
    """Rows are lines of files; `state.json` names the files that count, and has the markers. It is replaced at once."""

    flushes_first = True

    def __init__(self, folder: Path) -> None:
        super().__init__(target=str(folder))
        self._folder = folder

    @contextmanager
    def connect(self) -> Iterator[Shelves.Line]:
        line = Shelves.Line(self._folder, flushes_first=self.flushes_first)
        try:
            yield line
        finally:
            line.rollback()

    class Line:
        def __init__(self, folder: Path, *, flushes_first: bool) -> None:
            self._folder, self._flushes_first = folder, flushes_first
            self._file: Any = None

        def begin(self, name: str) -> str | None:
            self._file = (self._folder / f"{uuid.uuid4().hex}.txt").open("xb")
            marker: str | None = state(self._folder)["markers"].get(name)
            return marker

        def write(self, records: pa.RecordBatch) -> None:
            self._file.writelines(value + b"\n" for value in records.column("value").to_pylist())

        def commit(self, name: str, marker: str) -> None:
            if self._flushes_first:
                self._file.flush()
            before = state(self._folder)
            new = {"files": [*before["files"], self._file.name], "markers": {**before["markers"], name: marker}}
            draft = self._folder / "draft.json"
            draft.write_text(json.dumps(new))
            draft.replace(self._folder / "state.json")
            self._file.close()

        def rollback(self) -> None:
            if self._file:
                self._file.close()


class MarkerFirst(Shelves):
    flushes_first = False


def state(folder: Path) -> Any:
    path = folder / "state.json"
    return json.loads(path.read_text()) if path.exists() else {"files": [], "markers": {}}


class Case(SimpleCase):
    def __init__(self, folder: Path, sink: type[Shelves] = Shelves) -> None:
        self.folder, self._sink = folder, sink

    def sink(self) -> Shelves:
        return self._sink(self.folder)

    def content(self, behind: int = 0) -> list[bytes]:
        return [line for name in state(self.folder)["files"] for line in Path(name).read_bytes().splitlines()][behind:]


class Suite(TransactionContract):
    steps = 60


def tried(test: str, case: SimpleCase) -> None:
    getattr(Suite(), test)(case)


@leaving_files_open
def test_a_sink_that_keeps_what_it_has_committed_passes(tmp_path: Path) -> None:
    tried(RAISED, Case(tmp_path))
    tried(KILLED, Case(tmp_path))


@leaving_files_open
def test_a_marker_that_is_stored_before_its_rows_are_flushed(tmp_path: Path) -> None:
    """An exception ends the connection, which flushes them: only a death does not."""
    tried(RAISED, Case(tmp_path, MarkerFirst))
    with pytest.raises(AssertionError) as failed:
        tried(KILLED, Case(tmp_path, MarkerFirst))
    assert "killed with its process" in failed.value.__notes__[0]


def test_a_target_in_the_memory_of_the_tests_is_no_place_to_die_in() -> None:
    with pytest.raises(pytest.skip.Exception, match="in the memory of this process"):
        tried(KILLED, Table())


def test_whatever_fails_after_a_death_says_where_the_process_died(tmp_path: Path) -> None:
    class Torn(Case):
        def content(self, behind: int = 0) -> list[bytes]:
            if any(path.suffix == ".txt" for path in self.folder.iterdir()):
                raise ValueError("The file cannot be read")
            return []

    with pytest.raises(ValueError, match="cannot be read") as failed:
        TransactionContract()._dies(Torn(tmp_path))  # type: ignore[arg-type]
    assert failed.value.__notes__ == ["killed at no step"]


def _left(life: Any) -> Any:
    return deaths.left_by_a_dead_process(life, lambda: "what was left")


def test_a_process_may_end_by_itself() -> None:
    assert _left(lambda dies: None) == "what was left"


def test_nothing_runs_on_behind_a_death(tmp_path: Path) -> None:
    def life(dies: Any) -> NoReturn:
        try:
            dies()
        finally:
            (tmp_path / "ran on").touch()

    assert _left(life) == "what was left"
    assert [*tmp_path.iterdir()] == []


def test_an_attempt_that_waits_for_what_a_dead_one_held_is_no_endless_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deaths, "LIMIT_S", 0.1)
    with pytest.raises(pytest.fail.Exception, match="a lock that the death of a process does not free"):
        _left(lambda dies: time.sleep(60))


def test_an_error_in_the_process_is_one_of_the_test() -> None:
    def life(dies: Any) -> None:
        raise Unreachable("The folder is not there")

    with pytest.raises(pytest.fail.Exception, match="The folder is not there"):
        _left(life)
    with pytest.raises(pytest.fail.Exception, match="ended itself"):
        _left(lambda dies: os._exit(9))


def test_what_is_known_of_a_target_goes_from_process_to_process(tmp_path: Path) -> None:
    ledger, other = SettledState(Case(tmp_path)), SettledState(Case(tmp_path))
    ledger.attempt(5, settle_at=5)
    ledger.attempt(9, settle_at=None)
    other.take(_kept(ledger))
    other.attempt(9, settle_at=9)
    assert Case(tmp_path).content() == [b"%d" % number for number in range(9)]


def _kept(ledger: SettledState) -> dict[str, Any]:
    kept: dict[str, Any] = deaths.left_by_a_dead_process(lambda dies: None, ledger.kept)
    return kept
