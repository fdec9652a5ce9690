"""What the kernel does when a process ends: its file descriptors are closed, and with them its locks are gone."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from contextlib import suppress

from connect_core.replication.driver.leases import HeldLeases
from connect_core.replication.driver.task import TaskRun
from connect_core.replication.locks import EpochLock


def drop_locks(killed_by: BaseException | None) -> None:
    """Closes the locks that a killed driver still held: those that its stack knew of when it died."""
    for lock in {id(lock): lock for lock in _locks(killed_by)}.values():
        with suppress(OSError):
            if os.readlink(f"/proc/self/fd/{lock._descriptor}").startswith(str(lock.path)):
                os.close(lock._descriptor)


def _locks(error: BaseException | None) -> Iterator[EpochLock]:
    while error is not None:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            for value in frame.f_locals.values():
                yield from _known_to(value)
        error = error.__context__


def _known_to(value: object) -> Iterator[EpochLock]:
    if isinstance(value, EpochLock):
        yield value
    elif isinstance(value, HeldLeases):
        yield from value.locks
    elif isinstance(value, TaskRun) and "held" in vars(value):
        yield from value.held.locks
