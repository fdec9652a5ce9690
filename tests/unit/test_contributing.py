"""What CONTRIBUTING.md and the checks before a commit say is so."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import yaml

from connect_core.sdk.plugin import Plugin

ROOT = Path(__file__).parents[2]


def test_every_make_target_that_it_names_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z]+)", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE))
    assert named - targets == set()


def test_every_part_of_a_plugin_is_named() -> None:
    (table,) = re.findall(r"^\| it says \|.*?\n\n", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE | re.DOTALL)
    named = {word for row in table.splitlines() for word in re.findall(r"`(\w+)`", row.split(" | ")[0])}
    assert named == {field.name for field in dataclasses.fields(Plugin)} - {"name", "title"}


def test_a_commit_is_checked_by_the_tools_of_make_lint() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    commands = [hook["entry"].removeprefix(".venv/bin/python -m ") for hook in repository["hooks"]]
    lint = re.findall(r"\$\(RUN\) -m ((?:ruff|mypy)[^\n]*)", (ROOT / "Makefile").read_text())
    # pre-commit names the files to ruff; make leaves out a folder that an unpacked package does not have.
    assert [re.sub(r"\$\(wildcard (\w+)\)", r"\1", one.removesuffix(" .")) for one in lint] == commands
