"""Connections: found beside the document and in the home's folder, merged under the document's own options."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect_core.config import Settings, check, check_paths, load_document, read_text, resolve
from connect_core.errors import ConfigError

DOCUMENT = """\
version: 1
name: x
source: {rocketmq: {connection: east, topics: [a]}}
sink: {file: {path: out.txt}}
"""


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_homes_connection_is_kept_by_name(home: Path, settings: Settings) -> None:
    _write(home.parent / "conf" / "connections" / "east.yaml", "rocketmq: {name_servers: ['e:9876'], group: g}")
    document = _write(home.parent / "conf" / "connectors" / "x.yaml", DOCUMENT.replace("topics", "group: own, topics"))
    (checked,) = check_paths([document], home, settings)
    assert checked.data["source"]["rocketmq"]["connection"] == "east"
    resolved = resolve(load_document(checked.data), home, settings, "u")
    assert resolved.source.options["name_servers"] == ["e:9876"]
    assert resolved.source.options["group"] == "own", "the document's own option wins"


def test_a_connection_beside_the_document_is_kept_by_path(home: Path, settings: Settings) -> None:
    file = _write(home.parent / "team" / "connections" / "east.yaml", "rocketmq: {name_servers: ['t:9876']}")
    document = _write(home.parent / "team" / "connectors" / "x.yaml", DOCUMENT)
    (checked,) = check_paths([document], home, settings)
    assert checked.data["source"]["rocketmq"]["connection"] == str(file)
    resolved = resolve(load_document(checked.data), home, settings, "u")
    assert resolved.source.options["name_servers"] == ["t:9876"]


def test_main_is_built_in_until_a_file_says_otherwise(home: Path, settings: Settings) -> None:
    text = DOCUMENT.replace("east", "main")
    check(read_text(text, where="x")[0], home, settings)
    _write(home.parent / "conf" / "connections" / "main.yaml", "rocketmq: {name_servers: ['m:9876']}")
    checked = check(read_text(text, where="x")[0], home, settings)
    assert resolve(checked.document, home, settings, "u").source.options["name_servers"] == ["m:9876"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1, 2]", "must hold one system with its options"),
        ("rocketmq: 5", "must hold one system with its options"),
        ("a: {}\nb: {}", "must hold one system with its options"),
        ("rocketmq: {a: 1, a: 2}", 'line 1, column 18: the key "a" stands twice'),
        ("file: {path: x}", 'the connection "east" is for file, not for rocketmq'),
        ("rocketmq: {name_servrs: x}", 'source.rocketmq.name_servrs: line 3: unknown key "name_servrs"; did you mean'),
    ],
)
def test_a_broken_connection_is_told(text: str, words: str, home: Path, settings: Settings) -> None:
    _write(home.parent / "conf" / "connections" / "east.yaml", text)
    with pytest.raises(ConfigError) as raised:
        check(read_text(DOCUMENT, where="x")[0], home, settings)
    assert words in str(raised.value)
