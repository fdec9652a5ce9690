"""Every command and option of `waybill` that the README or a page in docs names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer.main
from typer.core import TyperGroup

from connect_core.cli.app import app

ROOT = Path(__file__).resolve().parents[3]
PAGES = [page for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")) if page.name != "CHANGELOG.md"]
WAYBILL = typer.main.get_command(app)
_COMMAND = re.compile(r"(?:`|^|bin/)waybill ([a-z][a-z-]*\b(?!,)[^`\n]*)", re.MULTILINE)
_OPTION = re.compile(r"(?<!\S)--[a-z-]+")


@pytest.mark.parametrize("page", sorted(PAGES), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_page_is_there(page: Path) -> None:
    assert [wrong for named in _COMMAND.findall(page.read_text()) if (wrong := _unknown(named))] == []


def test_a_wrong_command_is_noticed() -> None:
    assert _unknown("connectors pause NAME") == ""
    assert _unknown("connectors paws NAME") == "paws"
    assert _unknown("run NAME --windows 10s") == "--windows"


def _unknown(named: str) -> str:
    """The first word of a command line that Waybill does not know; empty when it knows all."""
    found = WAYBILL
    for word in named.split():
        if not isinstance(found, TyperGroup):
            break
        if word not in found.commands:
            return word
        found = found.commands[word]
    options = {option for one in found.params for option in (*one.opts, *one.secondary_opts)} | {"--help"}
    return next((option for option in _OPTION.findall(named) if option not in options), "")
