"""The recorded jars: the lists are whole, a wrong byte is named, both tools are told exactly the list."""

from __future__ import annotations

import hashlib
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from connect_core.errors import Refused, Unreachable
from connect_core.stack import jars
from connect_core.stack.jars import Jar

VERSIONS = ("5.5.0", "5.3.3", "5.2.0")


def jar(body: bytes, artifact: str = "a", classifier: str = "") -> Jar:
    return Jar("org.example", artifact, "1", classifier, hashlib.sha256(body).hexdigest(), len(body))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_list_names_every_server_and_no_file_twice(version: str) -> None:
    recorded = jars.recorded(version)
    names = [entry.file_name for entry in recorded]
    assert len(set(names)) == len(names)
    for server in ("namesrv", "broker"):
        assert f"rocketmq-{server}-{version}.jar" in names
    assert all(len(entry.sha256) == 64 and entry.size_bytes > 0 for entry in recorded)


def test_an_unknown_version_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(Refused, match=r"5\.3\.3, 5\.5\.0"):
        jars.recorded("4.0.0")


def test_differences_name_what_is_wrong_missing_and_strange(tmp_path: Path) -> None:
    wanted = (jar(b"right", "right"), jar(b"other", "wrong"), jar(b"", "missing"))
    (tmp_path / "right-1.jar").write_bytes(b"right")
    (tmp_path / "wrong-1.jar").write_bytes(b"bytes")
    (tmp_path / "strange-1.jar").write_bytes(b"")
    found = jars.differences(wanted, tmp_path)
    assert [line.split()[0] for line in found] == ["missing-1.jar", "strange-1.jar", "wrong-1.jar"]
    assert hashlib.sha256(b"other").hexdigest() in found[-1]


def test_another_product_has_a_list_and_a_folder_of_its_own(tmp_path: Path) -> None:
    names = {entry.artifact for entry in jars.recorded("hivemq-2025.5")}
    assert "hivemq-community-edition-embedded" in names
    assert jars.folder_of("hivemq-2025.5", tmp_path) == tmp_path / "hivemq" / "2025.5"
    assert jars.folder_of("5.5.0", tmp_path) == tmp_path / "rocketmq" / "5.5.0"


@pytest.mark.parametrize("version", [*VERSIONS, "hivemq-2025.5", "apicurio-2.6.13.Final"])
def test_maven_and_ivy_are_asked_for_the_list_and_nothing_else(version: str) -> None:
    recorded = jars.recorded(version)
    wanted = {(entry.group, entry.artifact, entry.version, entry.classifier, entry.kind) for entry in recorded}
    assert asked_of_maven(jars.maven_document(recorded)) == wanted
    assert asked_of_ivy(jars.ivy_document(recorded)) == wanted


def asked_of_maven(document: str) -> set[tuple[str, ...]]:
    space = "{http://maven.apache.org/POM/4.0.0}"
    asked = set()
    for entry in ElementTree.fromstring(document).iter(f"{space}dependency"):
        assert entry.findtext(f"{space}exclusions/{space}exclusion/{space}artifactId") == "*"
        names = ("groupId", "artifactId", "version", "classifier", "type")
        asked.add(tuple(entry.findtext(space + name) or "" for name in names))
    return asked


def asked_of_ivy(document: str) -> set[tuple[str, ...]]:
    classifier = "{http://ant.apache.org/ivy/maven}classifier"
    asked = set()
    for entry in ElementTree.fromstring(document).iter("dependency"):
        assert entry.get("transitive") == "false"
        for artifact in entry.findall("artifact"):
            assert artifact.attrib["ext"] == artifact.attrib["type"]
            module = (entry.attrib["org"], entry.attrib["name"], entry.attrib["rev"])
            asked.add((*module, artifact.get(classifier, ""), artifact.attrib["type"]))
    return asked


class FakeMaven:
    """A program called `mvn` that puts given files where it is told to."""

    def __init__(self, folder: Path, files: dict[str, bytes], code: int = 0) -> None:
        source = folder / "served"
        source.mkdir()
        for name, body in files.items():
            (source / name).write_bytes(body)
        program = folder / "mvn"
        program.write_text(
            '#!/bin/sh\nfor word in "$@"; do case "$word" in -DoutputDirectory=*) out="${word#*=}";; esac; done\n'
            f'mkdir -p "$out"\nfor file in {source}/*; do cat "$file" > "$out/${{file##*/}}"; done\n'
            f"echo called >> {folder}/calls\necho 'could not resolve it'\nexit {code}\n"
        )
        program.chmod(0o755)
        self.calls = folder / "calls"


BODY = b"a jar"
WANTED = (jar(BODY),)


def installed(cache: Path) -> Path:
    folder = cache / "rocketmq" / "0"
    jars.install(WANTED, folder, cache, lambda _: None)
    return folder


def test_a_set_is_fetched_once_and_then_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven = FakeMaven(tmp_path, {"a-1.jar": BODY})
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert (installed(tmp_path / "cache") / "a-1.jar").read_bytes() == BODY
    installed(tmp_path / "cache")
    assert maven.calls.read_text() == "called\n"


def test_a_set_that_was_damaged_on_disk_is_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven = FakeMaven(tmp_path, {"a-1.jar": BODY})
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (installed(tmp_path / "cache") / "a-1.jar").write_bytes(b"b jar")
    assert (installed(tmp_path / "cache") / "a-1.jar").read_bytes() == BODY
    assert maven.calls.read_text() == "called\ncalled\n"


def test_another_byte_is_refused_and_nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FakeMaven(tmp_path, {"a-1.jar": BODY + b"!"})
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(Refused, match=r"a-1\.jar has SHA-256"):
        installed(tmp_path / "cache")
    assert [path.name for path in (tmp_path / "cache" / "rocketmq").iterdir()] == ["0.lock"]


def test_a_failed_fetch_says_what_the_tool_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FakeMaven(tmp_path, {}, code=1)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(Unreachable, match="could not resolve it"):
        installed(tmp_path / "cache")
