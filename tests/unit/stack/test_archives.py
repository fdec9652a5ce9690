"""Archives of classes: made once, by a JVM; taken when they are there; never one that a JVM would not start with."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from connect_core.stack import archives, archiving, jars, java, spark_server

PROGRAM = "org.apache.ivy.Main"
"""A small one that ends by itself, in a jar that is there."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of jars: one."""
    place = tmp_path / "jars"
    place.mkdir()
    shutil.copy(next(spark_server.jars().glob("ivy-*.jar")), place)
    return place


def command(folder: Path, *jvm: str) -> tuple[str, ...]:
    program = str(java.find(jars.cache_folder()))
    return (program, "-XX:+UseSerialGC", *jvm, "-cp", f"{folder}/*", PROGRAM, "-version")


def running(folder: Path, ending: Callable[[Path], None] = lambda _: None) -> Callable[..., tuple[str, ...]]:
    """What starts the program and lets it end; `ending` is done to the archive that it has written."""

    def run(home: Path, argument: str) -> tuple[str, ...]:
        subprocess.run(command(folder, argument), check=True, capture_output=True)
        ending(Path(argument.partition("=")[2]))
        return command(folder)

    return run


def test_a_server_without_an_archive_is_given_none(folder: Path) -> None:
    assert archives.arguments(folder) == ()


def test_it_is_made_once_and_used(folder: Path) -> None:
    said: list[str] = []
    archiving.make(folder, running(folder), said.append)
    assert archives.is_current(folder, java.find(jars.cache_folder()))
    archiving.make(folder, lambda *_: pytest.fail("it is there"), said.append)
    assert len(said) == 1
    words = command(folder, *archives.arguments(folder), "-Xlog:class+load")
    loaded = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert f"{PROGRAM} source: shared objects file (top)" in loaded


def test_a_jvm_that_it_does_not_fit_starts_without(folder: Path) -> None:
    archiving.make(folder, running(folder), print)
    other = folder.with_name("others")
    folder.rename(other)
    words = command(other, *archives.arguments(folder))
    assert "Ivy" in subprocess.run(words, check=True, capture_output=True, text=True).stdout


def test_a_java_without_an_archive_of_its_own_is_not_asked_for_one(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "java"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(java, "find", lambda _: program)
    said: list[str] = []
    archiving.make(folder, lambda *_: pytest.fail("it would make none"), said.append)
    assert "servers start without" in said[0]
    assert archives.arguments(folder) == ()


def test_an_archive_that_cannot_be_made_fails_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise PermissionError("this folder is not ours")

    monkeypatch.setattr(archiving, "make", failing)
    said: list[str] = []
    archiving.main(said.append)
    assert said
    assert all("this folder is not ours" in line for line in said)


def cut_off(archive: Path) -> None:
    archive.chmod(0o600)
    os.truncate(archive, archive.stat().st_size // 3)


@pytest.mark.parametrize("ending", [cut_off, Path.unlink])
def test_one_that_is_cut_off_or_was_not_written_is_not_taken(folder: Path, ending: Callable[[Path], None]) -> None:
    said: list[str] = []
    archiving.make(folder, running(folder, ending), said.append)
    assert "start without" in said[-1]
    assert archives.arguments(folder) == ()
    assert {path.name for path in folder.parent.iterdir()} == {"jars", "jars.jsa.lock"}


def test_it_is_made_anew_when_the_jars_change(folder: Path) -> None:
    archive = archives.of(folder)
    archive.touch()
    later = time.time() + 1
    os.utime(archive, (later, later))
    program = java.find(jars.cache_folder())
    assert archives.is_current(folder, program)
    os.utime(archive, (1, 1))
    assert not archives.is_current(folder, program)
