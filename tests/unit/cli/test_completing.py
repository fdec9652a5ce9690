"""What a shell gets when somebody presses Tab: asked as bash asks, in a process of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import warm
from tests.unit.cli.crowd import BACKFILL, DOCUMENT, NAME, crowded
from tests.unit.cli.test_terminals import plant

__all__ = ["BACKFILL", "DOCUMENT", "crowded", "plant"]


def offered(folder: Path, *words: str) -> list[str]:
    typed = ["waybill", *words]
    asked = {"COMP_WORDS": " ".join(typed), "COMP_CWORD": str(len(typed) - 1), "_WAYBILL_COMPLETE": "complete_bash"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WAYBILL_")}
    said, errors = warm.session().start(["waybill"], folder, {**kept, **asked}).communicate(timeout=120)
    assert errors == ""
    return said.split()


@pytest.mark.parametrize("words", [("run", "pl"), ("connectors", "show", "plant-"), ("offsets", "set", "plant")])
def test_names_of_connectors(words: tuple[str, ...], plant: Path) -> None:
    assert offered(plant, *words) == [NAME]


def test_partitions_and_backfills_of_the_connector_before(plant: Path) -> None:
    assert len(offered(plant, "offsets", "undo", NAME, str(plant))) == 3
    assert offered(plant, "backfills", "show", NAME, "back") == [BACKFILL]


def test_for_a_server_nothing_is_offered_and_nobody_is_asked(plant: Path) -> None:
    assert offered(plant, "--server", "http://192.0.2.1:1", "run", "pl") == []
    assert offered(plant, "--server", "http://192.0.2.1:1", "offsets", "undo", NAME, str(plant)) == []
    assert "receipts" in offered(plant, "--server", "http://192.0.2.1:1", "rec")


def test_without_a_ledger_nothing_is_said(tmp_path: Path) -> None:
    assert offered(tmp_path, "run", "pl") == []
    assert not any(tmp_path.iterdir())
