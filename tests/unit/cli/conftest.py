"""What the tests of commands share: a folder to work in, the command as typed, and a document."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer import testing
from typer.testing import CliRunner

from connect_core.cli.app import app

DOCUMENT = """\
version: 1
name: {name}
source: {{file: {{path: logs/*.log}}}}
sink: {{file: {{path: out/{name}.txt}}}}
"""


@dataclass(frozen=True)
class Typed:
    """What a command answered. `json` fails when stdout is not exactly one JSON document."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Waybill = Callable[..., Typed]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, without a home; logs and the folder of the sink are there."""
    for name in ("WAYBILL_HOME", "WAYBILL_DATABASE_URL", "WAYBILL_ENGINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WAYBILL_USER", "ann")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "logs" / "a.log").write_text("one\ntwo\nthree\n")
    return tmp_path


built = cache(testing._get_command)
"""The runner makes all commands from their signatures at each call: two thirds of what a test of them takes."""


@pytest.fixture
def waybill(folder: Path, monkeypatch: pytest.MonkeyPatch, warm_lanes: None) -> Waybill:
    monkeypatch.setattr(testing, "_get_command", built)

    def typed(*words: str, answer: str | None = None) -> Typed:
        result = CliRunner().invoke(app, [str(word) for word in words], input=answer)
        return Typed(result.exit_code, result.stdout, result.stderr)

    return typed


@pytest.fixture
def applied(folder: Path, waybill: Waybill, empty_ledger: Path) -> Path:
    """The folder with a connector `copy` in its ledger."""
    (folder / ".waybill").mkdir()
    shutil.copy(empty_ledger, folder / ".waybill" / "ledger.db")
    (folder / "copy.yaml").write_text(DOCUMENT.format(name="copy"))
    assert waybill("apply", "copy.yaml").code == 0
    return folder
