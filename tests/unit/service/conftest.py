"""What the tests of use cases share: a folder with logs, and a ledger in it with the connector `copy`; and the
connector in memory of the replication tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from connect_core.service import documents
from connect_core.service.opened import AtWork, working
from tests.unit.replication.conftest import world

__all__ = ["world"]

LEDGER = Path(".waybill", "ledger.db")
DOCUMENT = """\
version: 1
name: copy
source: {file: {path: logs/*.log}}
sink: {file: {path: out/copy.txt}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_ledger: Path) -> Path:
    """The working folder with logs, a document, and a home whose ledger is empty."""
    work_in(tmp_path, monkeypatch)
    for name in ("logs", "out", ".waybill"):
        (tmp_path / name).mkdir()
    shutil.copy(empty_ledger, tmp_path / LEDGER)
    (tmp_path / "logs" / "a.log").write_text("one\ntwo\nthree\n")
    (tmp_path / "copy.yaml").write_text(DOCUMENT)
    return tmp_path


def work_in(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """As Ann, with no setting but the usual ones."""
    for name in ("WAYBILL_HOME", "WAYBILL_DATABASE_URL", "WAYBILL_ENGINE"):
        patch.delenv(name, raising=False)
    patch.setenv("WAYBILL_USER", "ann")
    patch.chdir(folder)


@pytest.fixture
def said() -> list[str]:
    """What was said meanwhile: give `said.append`."""
    return []


@pytest.fixture
def opened(folder: Path) -> Iterator[AtWork]:
    """With the connector `copy`."""
    documents.apply([Path("copy.yaml")], say=lambda _: None)
    with working() as found:
        yield found
