"""Server processes known by (pid, start time, boot): started in own sessions, stopped without mistaking anyone.

A pid alone is recycled by the kernel; with its start time it names one process for ever, so a record on disk can be
acted on days later. Signals go through a pidfd that is compared with that identity after it was opened. Whoever starts
a process here may end before it: nothing is tied to the starter. Called by the lifecycle, the supervisor and the tests.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from connect_core.errors import Unreachable

_KILL_WAIT_S = 10.0
_POLL_S = 0.05
_LAST_STANDARD = 2
_PARENT_FIELD = 1
_SESSION_FIELD = 3  # of /proc/PID/stat, counted from the state that follows the name in brackets
_STARTED_FIELD = 19


@dataclass(frozen=True)
class Process:
    """One process that ran or runs on this machine: `started` is in clock ticks since the boot named by `boot_id`."""

    pid: int
    started: int
    boot_id: str

    @property
    def is_alive(self) -> bool:
        """Runs now. A zombie does not; when it is a child of this process it is reaped on the way."""
        if self.boot_id != _boot_id():
            return False
        stat = _stat(self.pid)
        if stat is None or int(stat[_STARTED_FIELD]) != self.started:
            return False
        if stat[0] in "ZX":
            _reap(self.pid)
            return False
        return True


@dataclass(frozen=True)
class Launch:
    """What to start: the whole environment is given, output of both kinds goes to a fresh `log`."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    log: Path


def of(pid: int) -> Process | None:
    """The identity of the process that has `pid` now."""
    stat = _stat(pid)
    return Process(pid, int(stat[_STARTED_FIELD]), _boot_id()) if stat else None


def start(launch: Launch) -> Process:
    """Starts it detached: own session, no terminal, nothing inherited but the environment it is given."""
    launch.log.parent.mkdir(parents=True, exist_ok=True)
    _rotate(launch.log)
    output = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    try:
        pid = os.posix_spawn(
            launch.command[0],
            launch.command,
            launch.environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(launch.log), output, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
                *((os.POSIX_SPAWN_CLOSE, descriptor) for descriptor in _inheritable()),
            ],
            setsid=True,
            setsigmask=[],
            setsigdef=[signal.SIGPIPE, signal.SIGINT, signal.SIGHUP],
        )
    except OSError as error:
        raise Unreachable(f"{launch.command[0]} could not be started: {error.strerror}") from error
    process = of(pid)
    if process is None:
        raise Unreachable(f"{launch.command[0]} ended at once", where=str(launch.log), next_step="Read that log")
    return process


def _inheritable() -> list[int]:
    """Descriptors beyond the first three that a child would get. Python makes none: these came from whoever started
    this process, and a lock of theirs on one would be held for as long as a server lives."""
    found = []
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):  # the one that listed the folder is gone
            if descriptor > _LAST_STANDARD and os.get_inheritable(descriptor):
                found.append(descriptor)
    return found


def stop(process: Process, *, sign: signal.Signals = signal.SIGTERM, grace_s: float = 10.0) -> bool:
    """Ends `process` and what is left of its session; true when the first signal was enough, or it was gone already."""
    descriptor = _pidfd(process)
    obeyed = True
    if descriptor is not None:
        try:
            obeyed = _signal_and_wait(descriptor, sign, grace_s)
            if not obeyed:
                _signal_and_wait(descriptor, signal.SIGKILL, _KILL_WAIT_S)
        finally:
            os.close(descriptor)
        _reap(process.pid)
    if process.boot_id == _boot_id():
        _end_session(process)
    return obeyed


def wait_until(condition: Callable[[], bool], limit_s: float) -> bool:
    """Polls `condition` until it holds; false when it did not within `limit_s`."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _pidfd(process: Process) -> int | None:
    """A handle on exactly this process: opened first, compared then, so that no recycled pid slips in between."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:  # not only ESRCH: its pid may have been given out again, to a thread
        if process.is_alive:
            raise
        return None
    if process.is_alive:
        return descriptor
    os.close(descriptor)
    return None


def _signal_and_wait(descriptor: int, sign: signal.Signals, limit_s: float) -> bool:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(descriptor, sign)
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(limit_s * 1000))


def _end_session(leader: Process) -> None:
    """Kills what the ended leader left (Spark's Python workers, tasks of Airflow).

    While one of them lives the leader's pid is not given to anybody: if somebody has it, nothing is left.
    """
    if (now := of(leader.pid)) is not None and now != leader:
        return
    for _ in range(20):
        left = [process for process in _session(leader.pid) if process.pid != leader.pid and process.is_alive]
        if not left:
            return
        for process in left:
            descriptor = _pidfd(process)
            if descriptor is not None:
                _signal_and_wait(descriptor, signal.SIGKILL, 1.0)
                os.close(descriptor)


def _session(leader: int) -> list[Process]:
    stats = ((int(entry), _stat(int(entry))) for entry in os.listdir("/proc") if entry.isdigit())
    return [
        Process(pid, int(stat[_STARTED_FIELD]), _boot_id())
        for pid, stat in stats
        if stat is not None and int(stat[_SESSION_FIELD]) == leader
    ]


def children_titles(parent: int) -> list[str]:
    """The command lines of the living children of a process; some programs write there what they do."""
    found = []
    for pid in (int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
        stat = _stat(pid)
        if stat is not None and int(stat[_PARENT_FIELD]) == parent and stat[0] not in "ZX":
            with contextlib.suppress(OSError):
                found.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


def _stat(pid: int) -> list[str] | None:
    """The fields behind the name. That may be no text: the kernel cuts names at 15 bytes, also within a character."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    return text[text.rindex(")") + 2 :].split()


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _rotate(log: Path) -> None:
    """A start begins a log of its own and keeps the one before it."""
    if log.exists():
        log.replace(log.with_suffix(".old.log"))


@cache
def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
