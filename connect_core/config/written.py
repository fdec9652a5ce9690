"""Files to plain data with line numbers: YAML (several documents a file), JSON, and Java properties for flat documents.

Reads the YAML that people expect: `true` and `false` are the only booleans, `no`, `on`, `12:30` and `2024-01-01` are
text, a key stands once, and anchors are refused (a document is to be read and compared by people). Judges syntax only;
what the keys mean is the business of `checking`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from connect_core.config.java_properties import pairs
from connect_core.errors import ConfigError, Fault

MAX_FILE_BYTES = 1024 * 1024
MAX_DEPTH = 50
SUFFIXES = (".yaml", ".yml", ".json", ".properties")

Place = tuple[str | int, ...]


@dataclass(frozen=True)
class Written:
    """One document as it was written. `lines` maps the place of a value (keys and list indexes) to its line, from 1."""

    data: Any
    where: str
    lines: dict[Place, int] = field(default_factory=dict)
    file: Path | None = None

    def line(self, place: Place) -> int | None:
        """The line of the value at `place`, or of the nearest value around it."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place)


class WrittenDocuments(NamedTuple):
    """Documents as they were written, and a fault for each file that cannot be read."""

    documents: Sequence[Written]
    faults: Sequence[Fault] = ()


def read_paths(paths: Sequence[Path]) -> WrittenDocuments:
    """Of the files, and of the files in the folders, in the order given, folders sorted by name. Raises ConfigError
    where there is nothing to read."""
    documents: list[Written] = []
    faults: list[Fault] = []
    for path in [file for given in paths for file in _files(given)]:
        try:
            documents += read_file(path)
        except ConfigError as error:
            faults += [Fault(error.where, f"{fault}") for fault in error.faults] or [Fault(error.where, error.what)]
    if not documents and not faults:
        raise ConfigError(
            "There is no document",
            where=", ".join(map(str, paths)),
            next_step="Name a document, or a folder that holds some",
        )
    return WrittenDocuments(documents, faults)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.iterdir() if file.suffix in SUFFIXES and file.is_file())


def read_file(path: Path) -> list[Written]:
    """The documents of one file; its suffix says the format. Empty documents are left out."""
    try:
        size = path.stat().st_size
        text = path.read_text(encoding="utf-8") if size <= MAX_FILE_BYTES else ""
    except OSError as error:
        raise ConfigError(f"The file cannot be read: {error.strerror}", where=str(path)) from None
    except UnicodeDecodeError:
        raise ConfigError("The file is not UTF-8 text", where=str(path)) from None
    if size > MAX_FILE_BYTES:
        raise ConfigError(f"The file is larger than {MAX_FILE_BYTES} bytes: not a document", where=str(path))
    return read_text(text, where=str(path), suffix=path.suffix, file=path)


def read_text(text: str, *, where: str, suffix: str = ".yaml", file: Path | None = None) -> list[Written]:
    """The documents in `text`. Raises ConfigError with line and column of the first thing that is not the format."""
    try:
        if suffix == ".json":
            return [Written(_json(text), where, _lines_of_json(text), file)]
        if suffix == ".properties":
            return [_properties(text, where, file)]
        return list(_yaml(text, where, file))
    except RecursionError:
        raise ConfigError("The document is nested too deeply", where=where) from None
    except _Broken as error:
        raise ConfigError("The document cannot be read", where=where, faults=(Fault("", str(error)),)) from None


class _Broken(Exception):
    """Not the format; the message begins with line and column where they are known."""


# --------------------------------------------------------------------------------------------------------------- YAML


class _Loader(yaml.SafeLoader):
    """SafeLoader with the scalars of YAML 1.2 and without aliases."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  yaml's own attribute

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="anchors and aliases are not accepted here", problem_mark=mark)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise RecursionError
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


_SCALARS = [
    ("bool", r"true|false|True|False|TRUE|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
]
for _tag, _pattern, _first in _SCALARS:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})\\Z"), [*_first, ""])


def _yaml(text: str, where: str, file: Path | None) -> Iterator[Written]:
    try:
        loader = _Loader(text)
        nodes = [node for node in iter(lambda: _next_node(loader), _END) if not _is_empty(node)]
        for number, node in enumerate(nodes, 1):
            lines: dict[Place, int] = {}
            name = where if len(nodes) == 1 else f"{where} (document {number})"
            yield Written(_plain(loader, node, (), lines), name, lines, file)
    except yaml.MarkedYAMLError as error:
        raise _Broken(_marked(error)) from None
    except yaml.YAMLError as error:
        raise _Broken(" ".join(str(error).split())) from None


_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("map", "seq", "str", "bool", "int", "float", "null")}
_END = object()


def _next_node(loader: _Loader) -> Any:
    return loader.get_node() if loader.check_node() else _END


def _is_empty(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")


def _marked(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return place + ", ".join(part for part in (error.problem, error.context) if part)


def _plain(loader: _Loader, node: yaml.Node, place: Place, lines: dict[Place, int]) -> Any:
    lines[place] = node.start_mark.line + 1
    if node.tag not in _TAGS:
        problem = f"the tag {node.tag} is not accepted here"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
    if isinstance(node, yaml.MappingNode):
        return _mapping(loader, node, place, lines)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(loader, child, (*place, i), lines) for i, child in enumerate(node.value)]
    return loader.construct_object(node)


def _mapping(loader: _Loader, node: yaml.MappingNode, place: Place, lines: dict[Place, int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise yaml.MarkedYAMLError(problem="a key must be plain text", problem_mark=key_node.start_mark)
        key = str(key_node.value)
        if key in found:
            first = lines[(*place, key)]
            problem = f'the key "{key}" appears twice (first in line {first})'
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=key_node.start_mark)
        found[key] = _plain(loader, value_node, (*place, key), lines)
        lines[(*place, key)] = key_node.start_mark.line + 1
    return found


# --------------------------------------------------------------------------------------------------- JSON, properties


def _json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_without_twins)
    except json.JSONDecodeError as error:
        raise _Broken(f"line {error.lineno}, column {error.colno}: {error.msg}") from None


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Broken(f'the key "{key}" appears twice')
        found[key] = value
    return found


def _lines_of_json(text: str) -> dict[Place, int]:
    """JSON is nearly YAML: where it is not (tabs), there are no line numbers."""
    try:
        return next(iter(_yaml(text, "", None))).lines
    except (_Broken, StopIteration):
        return {}


def _properties(text: str, where: str, file: Path | None) -> Written:
    data: dict[str, str] = {}
    lines: dict[Place, int] = {}
    try:
        for number, key, value in pairs(text):
            if key in data:
                raise _Broken(f'line {number}: the key "{key}" appears twice (first in line {lines[(key,)]})')
            data[key], lines[(key,)] = value, number
    except ValueError as error:
        raise _Broken(str(error)) from None
    return Written(data, where, lines, file)
