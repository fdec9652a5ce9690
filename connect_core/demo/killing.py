"""Finds the worker processes of a run by the lock files they share with it, and ends processes as a crash would.

Workers are processes of the engine, not children of the run; that they hold a lock of the run's epoch open is what
tells them (`replication/locks.py`). Linux only.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

Found = TypeVar("Found")

_POLL_S = 0.005
_WAIT_LIMIT_S = 120.0


def workers(locks: Path, driver: int) -> set[int]:
    """Processes that share a lock file in the folder `locks` with the process `driver`, without itself."""
    folder = f"{locks.resolve()}{os.sep}"
    mine = {path for path in _open_files(driver) if path.startswith(folder)}
    if not mine:
        return set()
    others = (int(entry.name) for entry in Path("/proc").glob("[0-9]*") if int(entry.name) != driver)
    return {pid for pid in others if mine.intersection(_open_files(pid))}


def kill(pid: int) -> bool:
    """SIGKILL; False when it had ended by itself."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def wait_for(look: Callable[[], Found], alive: Callable[[], bool]) -> Found | None:
    """The first true answer of `look`; None when `alive` says no before that, or after two minutes."""
    until = time.monotonic() + _WAIT_LIMIT_S
    while time.monotonic() < until and alive():
        if answer := look():
            return answer
        time.sleep(_POLL_S)
    return None


def _open_files(pid: int) -> Iterator[str]:
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:  # it has ended, or belongs to somebody else
        return
    for descriptor in descriptors:
        try:
            yield os.readlink(f"/proc/{pid}/fd/{descriptor}")
        except OSError:
            continue
