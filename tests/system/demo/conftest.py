"""`make demo`, once for all tests of this package: what it prints, and the stack that it leaves, with Airflow."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from connect_core import stack
from connect_core.stack import postgresql
from tests.servers import coarse_timers

ROOT = Path(__file__).resolve().parents[3]
_KEPT = ("HOME", "JAVA_HOME", "WAYBILL_CACHE", "WAYBILL_TEST_SESSION", "WAYBILL_TESTING", "PATH", "LANG")


@dataclass(frozen=True)
class Shell:
    """Fresh shells: nothing activated, nothing exported, but for the home that keeps the test out of the checkout's."""

    home: Path
    folder: Path

    def run(self, script: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        environment["PATH"] = os.pathsep.join(p for p in environment["PATH"].split(os.pathsep) if ".venv" not in p)
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=folder or ROOT,
            env={**environment, "WAYBILL_HOME": str(self.home)},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="package")
def shell(worker_folder: Path) -> Iterator[Shell]:
    folder = worker_folder / "demo"
    folder.mkdir()
    home = folder / ".waybill"
    home.mkdir()
    (folder / ".venv").symlink_to(ROOT / ".venv")
    yield Shell(home, folder)
    stack.down(home)
    postgresql.forget(home)


@pytest.fixture(scope="package")
def demo(shell: Shell) -> str:
    """What the demo prints. Its lines come for a shorter time."""
    with coarse_timers():
        done = shell.run("make demo SECONDS=5")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="package")
def airflow(shell: Shell, demo: str) -> stack.Stack:
    """The stack that the demo leaves running. Do not kill its parts; delete the connectors that you make."""
    running = stack.load(shell.home)
    assert running is not None
    return running
