"""A plug-in says its token wherever it can speak, and nobody hears it; and what its author got wrong is said to be his.

Each command is a process of its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import warm

CANARY = Path(__file__).parent / "canary"
TOKEN = 'kanarien/vogel "ä" 1'
HEARD = "kanarien"
"""Stands in the token however it is quoted."""

Typed = Callable[..., tuple[int, str]]


@pytest.fixture
def typed(tmp_path: Path) -> Typed:
    """A command, in the folder: its exit code, and what it says on both of its outputs."""
    (tmp_path / ".waybill").mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WAYBILL_")}
    environment = {**kept, "PYTHONPATH": str(CANARY), "TOK": TOKEN}

    def type_(*words: str) -> tuple[int, str]:
        command = warm.session().start(["waybill", *words], tmp_path, environment)
        said, errors = command.communicate(timeout=120)
        return command.returncode, said + errors

    return type_


def apply(typed: Typed, folder: Path, says: str) -> None:
    end = {"canary": {"token": "${env:TOK}", "says": says}}
    document = {"version": 1, "name": "c", "source": end, "sink": end, "errors": {"dead_letter": "ledger"}}
    (folder / "c.yaml").write_text(json.dumps(document))
    code, told = typed("apply", "c.yaml")
    assert code == 0, told


def nowhere(folder: Path) -> bool:
    """No file of the folder has the token: the ledger, logs, metrics."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name == "ledger.db" for path in files)
    return not any(HEARD.encode() in path.read_bytes() for path in files)


@pytest.mark.parametrize(
    ("says", "code"),
    [
        ("names", 6),
        ("target", 6),
        ("checkpoint", 6),
        ("poll raises", 3),
        ("poll fails", 6),
        ("invalid row", 5),
        ("write raises DataError", 5),
        ("write fails", 1),
        ("write exits", 1),
    ],
)
def test_a_token_is_neither_shown_nor_stored(typed: Typed, tmp_path: Path, says: str, code: int) -> None:
    apply(typed, tmp_path, says)
    ended, told = typed("--debug", "run", "c", "--engine", "inline", "--json")
    assert (ended, HEARD in told) == (code, False), told
    assert "Traceback" in told
    assert '"exit_code"' in told
    assert nowhere(tmp_path)


def test_a_thread_of_a_client_shows_no_token(typed: Typed, tmp_path: Path) -> None:
    apply(typed, tmp_path, "a thread of poll fails")
    ended, told = typed("run", "c", "--engine", "inline")
    assert (ended, HEARD in told) == (0, False), told
    assert "Exception in thread of ***:" in told
    assert "ValueError: ***" in told


def test_a_sink_that_names_its_target_with_a_secret_is_named(typed: Typed, tmp_path: Path) -> None:
    apply(typed, tmp_path, "target")
    _, told = typed("run", "c", "--engine", "inline")
    assert "The sink canary names a target with a secret" in told


def test_a_probe_may_say_what_it_likes(typed: Typed, tmp_path: Path) -> None:
    apply(typed, tmp_path, "")
    _, told = typed("check", "c.yaml", "--probe", "--json")
    assert "no answer for ***" in told
    assert HEARD not in told


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ("poll gives None", "The answer of Source.poll must be a Polled, and is None"),
        ("checkpoint is no JSON", "The checkpoint of Source.poll cannot be stored as JSON"),
        ("checkpoint stays", "The checkpoint of Source.poll must move, and 10 records came"),
    ],
)
def test_what_an_author_must_not_return_is_told_by_its_method(
    typed: Typed, tmp_path: Path, says: str, words: str
) -> None:
    apply(typed, tmp_path, says)
    code, told = typed("run", "c", "--engine", "inline")
    assert (code, words in told, "report it" in told) == (6, True, False), told


@pytest.mark.parametrize(
    ("says", "code"), [("poll fails", 6), ("poll exits", 6), ("write fails", 1), ("write exits", 1)]
)
def test_an_unexpected_error_in_a_package_is_its_own(typed: Typed, tmp_path: Path, says: str, code: int) -> None:
    apply(typed, tmp_path, says)
    ended, told = typed("run", "c", "--engine", "inline")
    assert ended == code, told
    assert "system canary, waybill_canary.py:" in told
    assert "The package waybill_canary brings system canary: its authors can correct this" in told
    assert "report it" not in told
