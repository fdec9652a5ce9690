"""Processes at a step of a run: who is there, wait for it, stop it, let it go on, kill it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from connect_core.stack import processes
from tests.servers import wait_until_stopped
from tests.site import Site

LIMIT_S = 150.0
"""For a loaded machine: only a test that fails waits for so long."""


def wait_for(condition: Callable[[], object], what: str, limit_s: float = LIMIT_S) -> None:
    """Returns when it holds; fails after `limit_s` with `what` was waited for."""
    assert processes.wait_until(lambda: bool(condition()), limit_s), f"within {limit_s:g} s not: {what}"


def stopped_at(site: Site, step: str, driver: subprocess.Popen[str]) -> int | None:
    """Waits until a process stands still at the step (after `site.fault(step, "stop")`); its pid.

    It is the driver itself or one of its workers. None when the driver has ended before.
    """
    taken = site.home / "faults" / f"{step}.taken"
    wait_for(lambda: taken.exists() or driver.poll() is not None, f"a process at {step}")
    if not taken.exists():
        return None
    pid = int(taken.read_text())
    wait_until_stopped(pid)
    return pid


def kill(*pids: int) -> None:
    """SIGKILL to all of them at once; returns when they are gone."""
    for pid in pids:
        send(pid, signal.SIGKILL)
    wait_for(lambda: not any(map(is_alive, pids)), f"the end of {pids}")


def go_on(pid: int) -> None:
    send(pid, signal.SIGCONT)


def send(pid: int, sign: signal.Signals) -> None:
    """A process that is gone has nothing to be told."""
    try:
        os.kill(pid, sign)
    except ProcessLookupError:
        return


def is_alive(pid: int) -> bool:
    """False for a zombie as well: it does nothing any more. Leaves it to its parent, who wants its exit code."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def ended(process: subprocess.Popen[str], limit_s: float = LIMIT_S) -> int:
    """The exit code of a command, when it has ended."""
    began = time.monotonic()
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"it had not ended after {time.monotonic() - began:.0f} s:\n{out}{err}") from None
    print(out, err, sep="\n")  # shown by pytest when the test fails
    return process.returncode


def children_of(pid: int) -> list[int]:
    """The processes that it has started and that are still there."""
    try:
        return [child.pid for child in psutil.Process(pid).children()]
    except psutil.NoSuchProcess:
        return []


def resident_mib(pid: int) -> int:
    """Of it and of all that it has started; what they share counts for each."""
    try:
        driver = psutil.Process(pid)
        return sum(one.memory_info().rss for one in (driver, *driver.children(recursive=True))) >> 20
    except psutil.NoSuchProcess:
        return 0
