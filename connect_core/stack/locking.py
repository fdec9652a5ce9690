"""One process at a time: what several processes of this machine would change together."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from connect_core.errors import LeaseHeld

LIMIT_S = 1800.0
"""Longer than a first start may take, which fetches hundreds of megabytes."""
_TELL_AFTER_S = 2.0
_LOOK_S = 0.1


@contextmanager
def locked(path: Path, limit_s: float = LIMIT_S) -> Iterator[None]:
    """Holds an exclusive lock on `path`; waits for another process that has it, and says for which one. Raises
    LeaseHeld when that one still has it after `limit_s`: it may have been stopped."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as handle:
        _wait(handle, path, limit_s)
        _write(handle, str(os.getpid()))
        try:
            yield
        finally:
            _write(handle, "")


def _wait(handle: TextIO, path: Path, limit_s: float) -> None:
    began, told = time.monotonic(), False
    while not _is_taken(handle):
        waited_s = time.monotonic() - began
        holder = f"process {_holder(handle)} has {path.name}"
        if waited_s > limit_s:
            raise LeaseHeld(
                f"{holder}, and did not give it back within {limit_s:g} s",
                where=str(path),
                next_step="Look at that process: let it continue (fg, kill -CONT) or end it, then try again",
            )
        if waited_s > _TELL_AFTER_S and not told:
            told = True
            print(f"waiting: {holder}", file=sys.stderr, flush=True)
        time.sleep(_LOOK_S)


def _write(handle: TextIO, holder: str) -> None:
    """On a full disk the lock is held without a name."""
    with suppress(OSError):
        os.ftruncate(handle.fileno(), 0)
        os.write(handle.fileno(), holder.encode())


def _is_taken(handle: TextIO) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(handle: TextIO) -> str:
    handle.seek(0)
    return handle.read() or "unknown"
