"""`make` on a machine that lacks something: it is named in one line, before anything is fetched."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import connect_core

ROOT = Path(connect_core.__file__).parents[1]
TOOLS = ("sh", "dirname", "date", "sed", "head", "cut", "sha256sum", "cat", "awk", "df", "ls", "id", "rm", "tail")

Machine = Callable[[dict[str, str]], subprocess.CompletedProcess[str]]


@pytest.fixture
def bootstrap(tmp_path: Path) -> Machine:
    """Runs it in a copy of the checkout's start, on a machine that has the TOOLS and the given programs."""
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / ".ci", checkout / ".ci")
    shutil.copytree(ROOT / "connect_core", checkout / "connect_core", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "requirements.lock", checkout)
    tools, given = tmp_path / "tools", tmp_path / "given"
    tools.mkdir()
    for tool in TOOLS:
        (tools / tool).symlink_to(str(shutil.which(tool)))
    # A folder of their own: a file written over one of those links would be written over the machine's program.
    given.mkdir()

    def run(more: dict[str, str]) -> subprocess.CompletedProcess[str]:
        for name, body in more.items():
            with (given / name).open("x") as program:
                program.write(f"#!/bin/sh\n{body}\n")
            (given / name).chmod(0o755)
        environment = {"PATH": f"{given}:{tools}", "HOME": str(tmp_path)}
        words = [str(checkout / ".ci" / "bootstrap"), "5.5.0"]
        return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=30)

    return run


REAL_PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin:" + os.environ["PATH"])
NO_VENV = f'case "$*" in *venv*|*"-m pip"*) exit 1;; esac; exec {REAL_PYTHON} "$@"'
JAVA_17 = "echo 'openjdk version \"17.0.1\"' >&2"


def test_no_python(bootstrap: Machine) -> None:
    done = bootstrap({})
    assert done.returncode == 3
    assert done.stderr == "waybill: Python 3.11 or newer is needed and not on the PATH (another name: make PYTHON=…)\n"
    assert done.stdout == ""


def test_python_is_too_old(bootstrap: Machine) -> None:
    done = bootstrap({"python3": "exit 1"})
    assert done.returncode == 3
    assert "Python 3.11 or newer is needed" in done.stderr


def test_no_venv_module_and_not_root(bootstrap: Machine) -> None:
    done = bootstrap({"python3": NO_VENV, "java": JAVA_17, "id": "echo 1000"})
    assert done.returncode == 3
    assert done.stderr == (
        "waybill: Python's venv module is missing: run 'sudo apt-get install python3-venv' and make again\n"
    )


def test_no_venv_module_as_root_on_debian_is_mended(bootstrap: Machine, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    done = bootstrap({"python3": NO_VENV, "java": JAVA_17, "id": "echo 0", "apt-get": f'echo "$@" >> {asked}; exit 0'})
    assert "installing the Debian package python3-venv" in done.stdout
    assert asked.read_text().splitlines() == ["-qq update", "-qq -y install --no-install-recommends python3-venv"]


def test_no_room_on_the_disk(bootstrap: Machine) -> None:
    disk = "echo 'Filesystem 1M-blocks Used Available'; echo '/dev/x 10 5 5 50% /'"
    done = bootstrap({"python3": f'exec {REAL_PYTHON} "$@"', "java": JAVA_17, "df": disk})
    assert done.returncode == 3
    assert "only 5 MB are free" in done.stderr


@pytest.mark.parametrize(
    ("java", "told"),
    [(JAVA_17, "its own Java"), ("echo 'openjdk version \"11.0.2\"' >&2", "Java from the wheel"), ("exit 1", "wheel")],
)
def test_the_first_line_says_what_comes_and_the_next_what_is_there(bootstrap: Machine, java: str, told: str) -> None:
    done = bootstrap({"python3": NO_VENV, "java": java, "id": "echo 1000"})
    first, _, machine, *_ = done.stdout.splitlines()
    assert first.startswith("First time here: about ")
    assert "MB to fetch (Python packages, RocketMQ 5.5.0)" in first
    assert told in machine


def test_little_memory_is_told(bootstrap: Machine) -> None:
    memory = f'case "$*" in *MemAvailable*) echo 900;; *) exec {shutil.which("awk")} "$@";; esac'
    done = bootstrap({"python3": NO_VENV, "java": JAVA_17, "id": "echo 1000", "awk": memory})
    assert "only 900 MB of memory are free" in done.stdout
