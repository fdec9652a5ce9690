"""The resident process of a stack, seen from outside: start it, end it. What it does is in `supervisor.py`."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from connect_core.stack import processes
from connect_core.stack.record import Stack, save

_GRACE_S = 20.0


def ensure(stack: Stack) -> Stack:
    """Starts the supervisor of `stack` when it does not run. The caller holds the home's lock."""
    if stack.supervisor is not None and stack.supervisor.is_alive:
        return stack
    package_folder = str(Path(__file__).parents[2])
    command = (sys.executable, "-m", "connect_core.stack.supervisor", str(stack.home))
    launch = processes.Launch(
        command, {**os.environ, "PYTHONPATH": package_folder}, stack.home / "logs" / "supervisor.log"
    )
    stack = replace(stack, supervisor=processes.start(launch))
    save(stack)
    return stack


def end(stack: Stack) -> None:
    """Ends it, so that it cannot start again what is about to be stopped. The servers are in sessions of their own."""
    if stack.supervisor is not None:
        processes.stop(stack.supervisor, grace_s=_GRACE_S)
