"""A package that broke: connectors that need it say so, with its version and its error; all others are as before.

Each command is a process of its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import warm
from tests.installing import install
from tests.page_code import EXAMPLES

Typed = Callable[..., tuple[int, str]]
ENTRIES = {"waybill.systems": "sqlite = waybill_sqlite:PLUGIN"}
SOUND = (EXAMPLES / "sqlite" / "waybill_sqlite.py").read_text()


@pytest.fixture
def typed(tmp_path: Path) -> Typed:
    """A command, in the folder: its exit code, and what it says on both of its outputs."""
    (tmp_path / ".waybill").mkdir()
    (tmp_path / "in.log").write_text("a\nb\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WAYBILL_")}
    environment = {**kept, "PYTHONPATH": str(tmp_path / "packages")}

    def type_(*words: str) -> tuple[int, str]:
        command = warm.session().start(["waybill", *words], tmp_path, environment)
        said, errors = command.communicate(timeout=120)
        return command.returncode, said + errors

    return type_


def apply(typed: Typed, folder: Path, name: str, sink: object) -> tuple[int, str]:
    document = {"version": 1, "name": name, "source": {"file": {"path": "in.log"}}, "sink": sink}
    (folder / f"{name}.yaml").write_text(json.dumps(document))
    return typed("apply", f"{name}.yaml")


@pytest.mark.parametrize("code", ["import nothing_there", "def broken(:", "PLUGIN = 1"])
def test_a_package_that_broke_harms_only_connectors_that_need_it(typed: Typed, tmp_path: Path, code: str) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    install(packages, "waybill-sqlite", ENTRIES, SOUND)
    table = {"sqlite": {"path": str(tmp_path / "rows.db"), "table": "rows"}}
    assert apply(typed, tmp_path, "needs", table)[0] == 0
    assert apply(typed, tmp_path, "other", {"file": {"path": "out.log"}})[0] == 0
    install(packages, "waybill-sqlite", ENTRIES, code, "2.0")

    assert typed("run", "other", "--engine", "inline")[0] == 0
    assert (tmp_path / "out.log").read_text() == "a\nb\n"
    assert apply(typed, tmp_path, "third", {"file": {"path": "third.log"}})[0] == 0
    for words in (("connectors", "list"), ("status",), ("runs", "needs"), ("offsets", "show", "needs"), ("plugins",)):
        said = typed(*words)
        assert said[0] == 0, said
    findings = json.loads(typed("doctor", "--json")[1])["findings"]
    (found,) = (one for one in findings if one["subject"] == "system sqlite")
    assert (found["state"], "waybill-sqlite 2.0" in found["what"]) == ("warning", True)
    told = json.loads(typed("plugins", "sqlite", "--json")[1])["plugins"]
    assert [(one["package"], one["version"], bool(one["error"])) for one in told] == [("waybill-sqlite", "2.0", True)]

    for words in (("run", "needs", "--engine", "inline"), ("check", "needs.yaml"), ("lag", "needs")):
        code_, said_ = typed(*words)
        assert code_ != 0
        assert "The package waybill-sqlite 2.0, which brings the system sqlite, is broken: " in said_, words
    install(packages, "waybill-sqlite", ENTRIES, SOUND, "2.1")
    assert typed("run", "needs", "--engine", "inline")[0] == 0
