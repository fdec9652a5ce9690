"""Connections: found beside the document and in the home's folder, merged under the document's own options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from connect_core.config import Resolved, Settings, check, check_paths, load_document, read_text, resolve
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
        ("rocketmq: {a: 1, a: 2}", 'line 1, column 18: the key "a" appears twice'),
        ("file: {path: x}", 'the connection "east" is for file, not for rocketmq'),
        ("rocketmq: {name_servrs: x}", 'source.rocketmq.name_servrs: line 3: unknown key "name_servrs"; did you mean'),
    ],
)
def test_a_broken_connection_is_told(text: str, words: str, home: Path, settings: Settings) -> None:
    _write(home.parent / "conf" / "connections" / "east.yaml", text)
    with pytest.raises(ConfigError) as raised:
        check(read_text(DOCUMENT, where="x")[0], home, settings)
    assert words in str(raised.value)


EAST = "rocketmq: {name_servers: ['e:9876'], user: u, password: '${env:OLD}', tls: true, tls_ca: /old.pem}"


def _resolved(home: Path, settings: Settings, connection: str, pinned: dict[str, Any] | None = None) -> Resolved:
    file = _write(home.parent / "conf" / "connections" / "east.yaml", connection)
    if not connection:
        file.unlink()
    document = load_document({**yaml.safe_load(DOCUMENT), "sink": {"file": {"path": "out.txt"}}})
    return resolve(document, home, settings, "u", pinned)


def test_what_a_connection_said_is_known_without_its_secrets(home: Path, settings: Settings) -> None:
    said = _resolved(home, settings, EAST).connections
    assert said == {"source": yaml.safe_load(EAST)["rocketmq"]}
    assert said["source"]["password"] == "${env:OLD}"


def test_what_was_planned_elsewhere_keeps_its_connection(home: Path, settings: Settings) -> None:
    pinned = _resolved(home, settings, EAST).connections
    west = EAST.replace("e:9876", "w:9876").replace("OLD", "NEW")
    assert _resolved(home, settings, west).source.options["name_servers"] == ["w:9876"]
    for now in (west, "", "file: {path: x}", EAST.replace("user: u", "user: u, group: other")):
        kept = _resolved(home, settings, now, pinned)
        assert kept.connections == pinned
        assert (kept.source.options["name_servers"], kept.source.options["password"]) == (["e:9876"], "${env:OLD}")
        assert "group" not in kept.source.options


def test_another_password_or_certificate_counts_at_once(home: Path, settings: Settings) -> None:
    pinned = _resolved(home, settings, EAST).connections
    now = _resolved(home, settings, EAST.replace("OLD", "NEW").replace("/old.pem", "/new.pem"), pinned)
    assert (now.source.options["password"], now.source.options["tls_ca"]) == ("${env:NEW}", "/new.pem")
