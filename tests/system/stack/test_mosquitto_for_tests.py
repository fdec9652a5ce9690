"""`.ci/mosquitto` sees to the broker that tests need, or says in one line what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import connect_core

SCRIPT = Path(connect_core.__file__).parents[1] / ".ci" / "mosquitto"
Machine = Callable[[dict[str, str]], subprocess.CompletedProcess[str]]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Runs it on a machine that has a shell and the given programs; /usr/sbin, where Debian has mosquitto, is empty."""
    script, given = tmp_path / "script", tmp_path / "given"
    script.write_text(SCRIPT.read_text().replace("/usr/sbin", str(tmp_path / "nothing")))
    given.mkdir()

    def run(programs: dict[str, str]) -> subprocess.CompletedProcess[str]:
        for name, body in programs.items():
            (given / name).write_text(f"#!/bin/sh\n{body}\n")
            (given / name).chmod(0o755)
        words = [str(shutil.which("sh")), str(script)]
        return subprocess.run(words, env={"PATH": str(given)}, capture_output=True, text=True, timeout=30)

    return run


def test_a_machine_that_has_it_hears_nothing(machine: Machine) -> None:
    done = machine({"mosquitto": "exit 0"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_is_installed_by_root_on_debian(machine: Machine, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    done = machine({"id": "echo 0", "apt-get": f'echo "$@" >> {asked}'})
    assert done.returncode == 0
    assert done.stdout.startswith("The MQTT broker Mosquitto is missing: installing")
    assert asked.read_text().splitlines() == ["-qq update", "-qq -y install --no-install-recommends mosquitto"]


def test_an_installation_that_fails_is_told(machine: Machine) -> None:
    done = machine({"id": "echo 0", "apt-get": "exit 100"})
    assert done.returncode == 3
    assert "apt-get could not install mosquitto" in done.stderr


@pytest.mark.parametrize("programs", [{"id": "echo 1000", "apt-get": "exit 1"}, {"id": "echo 0"}])
def test_where_it_cannot_be_installed_the_others_run(machine: Machine, programs: dict[str, str]) -> None:
    done = machine(programs)
    assert done.returncode == 0
    assert "sudo apt-get install mosquitto" in done.stderr
    assert os.linesep not in done.stderr.strip()
