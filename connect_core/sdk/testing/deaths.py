"""Lets a process die for good: no `finally` of it runs, no `with` ends, and what stands in the buffers of its open
files is lost. An exception, which `steps` raises, does none of that."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NoReturn

import pytest

LIMIT_S = 60.0
"""An attempt of a few records that takes longer waits for something."""


def left_by_a_dead_process(life: Callable[[Callable[[], NoReturn]], None], left: Callable[[], object]) -> Any:
    """What `left` gave at the end of a child of this process. Its `life` ends when it calls what it is given, or
    returns; an error of it fails the test."""
    receiver, sender = Pipe(duplex=False)
    child = os.fork()
    if not child:
        _live(life, left, sender)
    sender.close()
    try:
        return _received(receiver)
    finally:
        os.kill(child, signal.SIGKILL)  # one that is gone already is not waited for yet: its number is no other's
        os.waitpid(child, 0)
        receiver.close()


def _live(life: Callable[[Callable[[], NoReturn]], None], left: Callable[[], object], sender: Connection) -> NoReturn:
    """Never returns into the test, nor into pytest: both belong to the parent."""

    def dies() -> NoReturn:
        sender.send((left(), ""))
        os._exit(0)

    try:
        life(dies)
        dies()
    except BaseException:
        sender.send((None, traceback.format_exc()))
    finally:
        os._exit(1)


def _received(receiver: Connection) -> Any:
    if not receiver.poll(LIMIT_S):
        pytest.fail(
            f"An attempt has not ended after {LIMIT_S:.0f} s. Perhaps it waits for what an attempt held that was killed"
            " before it: a lock that the death of a process does not free has to have a time limit"
        )
    try:
        left, error = receiver.recv()
    except EOFError:
        pytest.fail("The process of an attempt was ended from outside, or ended itself")
    if error:
        pytest.fail(f"An attempt in a process of its own failed:\n{error}")
    return left
