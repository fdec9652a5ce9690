"""The driver of a lane, as its worker sees it: when it ends, the worker ends at once.

Without its driver nobody takes the receipts any more, and the next attempt waits for the lane's locks. Spark goes on
with a job whose client was killed. This only shortens the wait: what is relied on is the kernel timer. Where the two
do not see the same processes (another host or container), the driver is not watched.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from connect_core.errors import Fenced
from connect_core.replication.host import boot_id

_STARTED_FIELD = 19
"""Of /proc/PID/stat, counted from the state that follows the name in brackets: clock ticks since the boot."""


class Driver(NamedTuple):
    """One process for ever: a pid is given out again, but not with the same start."""

    boot_id: str
    namespace: str
    pid: int
    started: int

    def written(self) -> str:
        """For a command line; `read` reads it."""
        return "/".join(map(str, self))


def this_process() -> Driver:
    """For the request."""
    return Driver(boot_id(), _namespace(), os.getpid(), _started(os.getpid()))


def read(written: str) -> Driver:
    """Raises ValueError for a text that was not `written`."""
    boot_id, namespace, pid, started = written.split("/")
    return Driver(boot_id, namespace, int(pid), int(started))


@contextmanager
def killed_with(driver: Driver) -> Iterator[None]:
    """SIGKILL to this process when `driver` ends. Raises Fenced when it has ended before."""
    if (driver.boot_id, driver.namespace) != (boot_id(), _namespace()):
        yield
        return
    with ExitStack() as held:
        ended = _opened(driver)
        held.callback(os.close, ended)
        enough = os.eventfd(0)
        held.callback(os.close, enough)
        watch = threading.Thread(target=_watch, args=(ended, enough), name="driver-watch", daemon=True)
        watch.start()
        held.callback(watch.join)
        held.callback(os.eventfd_write, enough, 1)
        yield


def _watch(ended: int, enough: int) -> None:
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(enough, select.POLLIN)
    if any(descriptor == ended for descriptor, _ in poll.poll()):
        os.kill(os.getpid(), signal.SIGKILL)


def _opened(driver: Driver) -> int:
    """A pidfd of the driver: readable when it has ended."""
    try:
        descriptor = os.pidfd_open(driver.pid)
    except OSError:  # not only ESRCH: its pid may have been given out again, to a thread
        if _lives(driver):
            raise
        raise _gone(driver) from None
    if not _lives(driver):
        os.close(descriptor)
        raise _gone(driver)
    return descriptor


def _lives(driver: Driver) -> bool:
    try:
        return _started(driver.pid) == driver.started
    except (FileNotFoundError, ProcessLookupError):  # the second: it ended between the opening and the reading
        return False


def _gone(driver: Driver) -> Fenced:
    return Fenced(
        "The driver that planned this work has ended",
        where=f"pid {driver.pid}",
        next_step="The next run plans it again",
    )


def _started(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[_STARTED_FIELD])


def _namespace() -> str:
    return os.readlink("/proc/self/ns/pid")
