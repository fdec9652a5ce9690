"""A system's name stands in its own room alone: whatever others have to know of it, its plugin says."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import connect_core

ROOT = Path(connect_core.__file__).parent
SYSTEMS = sorted(path.parent.name for path in (ROOT / "systems").glob("*/plugin.py"))
FILES = sorted(ROOT.rglob("*.py"))

MAY_NAME_SYSTEMS = {
    "systems/registry.py": "has a row for each",
    "spark/": "is RocketMQ as a data source of people's own Spark jobs; no connector uses it",
    "stack/": "starts the servers of the local stack, RocketMQ and an MQTT broker among them",
    "ledger/": "is a database itself, of PostgreSQL or another one",
    "demo/": "writes documents for these servers",
    "config/references.py": "`file` is a form of references, ${file:PATH#KEY}, and no system",
    "sdk/templates.py": "`file` is what a name in templates begins with, `file:name`, and no system",
    "config/named_fields.py": "the same kind of name",
    "config/examples.py": "the same kind of name",
    "pipeline/fields.py": "the same kind of name",
    "pipeline/transforms/named.py": "the same kind of name",
    "systems/mqtt/sink_options.py": "the same kind of name",
    "config/peers/debezium.py": "`sql` is a transform, and no system",
    "pipeline/digest.py": "the same transform",
    "pipeline/shaping.py": "the same transform",
    "pipeline/transforms/steps.py": "the same transform",
    "systems/sql/options.py": "names the systems to which databases are left that have one of their own",
    "rows/envelope_schemas.py": "`rocketmq` is a product whose JsonConverter writes envelopes, and no system",
    "rows/event_headers.py": "`rocketmq` and `mqtt` are bindings of CloudEvents to protocols, and no systems",
    "replication/driver/set_aside.py": "`file` is a key of what is reported, and no system",
    "service/connectors.py": "`file` is a key of what is shown, and no system",
    "api/native_examples.py": "has examples of documents, for the page that describes the routes",
    "systems/mysql/binlog/change_writer.py": "`file` is a member of what Debezium says of a source, and no system",
    "cli/connectors.py": "the same key, where it is printed",
}
"""Files and folders outside of a system's room that name one, and why."""


@cache
def _named(path: Path) -> frozenset[str]:
    """The systems that a file names in a text of its own, or imports something of. Read once: each exception asks."""
    return frozenset(_names(ast.parse(path.read_text())))


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in SYSTEMS:
            yield str(node.value)
        elif isinstance(node, ast.Import):
            yield from _owners(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from _owners((node.module, *(f"{node.module}.{alias.name}" for alias in node.names)))


def _owners(modules: Iterator[str] | tuple[str, ...]) -> Iterator[str]:
    for module in modules:
        parts = module.split(".")
        if parts[:2] == ["connect_core", "systems"] and len(parts) > 2 and parts[2] in SYSTEMS:
            yield parts[2]


def _of_others(path: Path) -> set[str]:
    """Those in whose room the file does not stand."""
    where = path.relative_to(ROOT).parts
    own = {where[1]} if where[0] == "systems" else set()
    return {*_named(path)} - own


def _stands_in(path: Path, place: str) -> bool:
    name = path.relative_to(ROOT).as_posix()
    return name.startswith(place) if place.endswith("/") else name == place


def test_there_are_systems_to_look_for() -> None:
    assert len(SYSTEMS) > 2
    assert _named(ROOT / "systems" / "registry.py") == {*SYSTEMS}


def test_a_file_names_no_system_but_its_own() -> None:
    """Where one does: ask its plugin instead (connect_core/sdk/plugin.py)."""
    others = [path for path in FILES if not any(_stands_in(path, place) for place in MAY_NAME_SYSTEMS)]
    assert {str(path): named for path in others if (named := _of_others(path))} == {}


@pytest.mark.parametrize("place", MAY_NAME_SYSTEMS)
def test_no_exception_is_left_over(place: str) -> None:
    assert any(_of_others(path) for path in FILES if _stands_in(path, place))
