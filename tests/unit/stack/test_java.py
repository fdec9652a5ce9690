"""Which Java is taken: one of the machine that fits, else the wheel's with the shim."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from connect_core.stack import java


def program(path: Path, answer: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{answer}' >&2\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ('openjdk version "17.0.15" 2025-04-15', True),
        ('openjdk version "21" 2023-09-19', True),
        ('openjdk version "25" 2025-09-16', False),
        ('java version "1.8.0_402"', False),
        ('openjdk version "11.0.2"', False),
        ("no java at all", False),
    ],
)
def test_the_first_java_on_the_path_is_taken_when_it_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, wanted: bool
) -> None:
    found = program(tmp_path / "java", answer)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert java.of_machine() == (found if wanted else None)


def test_java_home_goes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "java", 'openjdk version "21"')
    chosen = program(tmp_path / "home" / "bin" / "java", 'openjdk version "17"')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert java.of_machine() == chosen


def test_the_shim_drops_one_module_and_hands_on_every_other_word(tmp_path: Path) -> None:
    real = tmp_path / "the real" / "java"
    real.parent.mkdir()
    real.write_text('#!/bin/sh\nfor word in "$@"; do echo "<$word>"; done\n')
    real.chmod(0o755)
    shim = java.shim(tmp_path / "cache", real)
    words = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "Main", "$x"]
    done = subprocess.run([shim, *words], capture_output=True, text=True, check=True, env=dict(os.environ))
    assert done.stdout.splitlines() == ["<-cp>", "<a b>", "<>", "<Main>", "<$x>"]
