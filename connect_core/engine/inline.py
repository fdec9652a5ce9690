"""Lanes in child processes of the driver: for single commands and tests, without Spark.

Turns lanes into requests and answers into outcomes, with one child for each lane. The children stay for one execution
after the other (`workers`). A child dies with its driver and at the deadline of its lane. It gets its lane when it is
ready: what its start takes does not count against its deadline. Requests and answers go through a socket: nothing of
them is on a disk, in an environment or on a command line.
"""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, NoReturn

import connect_core
from connect_core.clock import now_ns
from connect_core.engine import envelope
from connect_core.engine.failures import ended_by, kept, next_step_after
from connect_core.engine.line import Line, LineEnded
from connect_core.engine.naming import described
from connect_core.engine.workers import WithWorkers, Worker, Workers, greeted
from connect_core.errors import EngineFailed
from connect_core.work import Engine, Lane, Outcome, ScanTask, ToStop, never

if TYPE_CHECKING:
    from connect_core.sdk.scan import ScanResult

_LANE_GRACE_S = 10.0
"""A lane is killed by its own timer at its deadline; this is for one that starts so late that it refuses."""

_SEARCH_GRACE_S = 30.0
"""A search ends itself at its limit; what is beyond is one slow answer."""

_START_S = 120.0
"""So long a process may take to start: on a crowded machine loading its modules takes many seconds."""

_SHOWN_LINES = 5

_log = logging.getLogger(__name__)


class InlineEngine:
    """Each lane in a process of its own, all side by side. `python` is the interpreter of the children."""

    def __init__(self, python: str = sys.executable, log: Path | None = None) -> None:
        self._python = python
        self._log = log

    @property
    def described(self) -> str:
        return described("inline")

    def execute(self, lanes: Sequence[Lane]) -> list[Outcome]:
        with self.started(len(lanes)) as ready:
            return ready.execute(lanes)

    @contextmanager
    def started(self, lanes: int, to_stop: ToStop = never) -> Iterator[Engine]:
        """See `work.Starting`. Raises EngineFailed when one of the processes does not get ready."""
        with _Children(self._log) as children:
            for _ in range(lanes):
                children.start(self._command("lane"))
            children.wait_until_ready(time.monotonic() + _START_S)
            yield WithWorkers(self, children.workers(to_stop))

    def scan(self, task: ScanTask) -> dict[int, ScanResult]:
        with _Children(self._log) as children:
            children.start(self._command("search"))
            children.wait_until_ready(time.monotonic() + _START_S)
            limit_s = task.scan.limit_s + _SEARCH_GRACE_S
            (answer,) = children.workers().answers([envelope.request(task)], limit_s)
            return envelope.found(answer)

    def _command(self, kind: str) -> list[str]:
        return [self._python, "-P", "-m", "connect_core.engine.child", kind, str(os.getpid())]


@dataclass(frozen=True)
class _Child:
    process: subprocess.Popen[bytes]
    line: Line
    """To its standard input."""
    errors: BinaryIO
    log: Path | None

    def ended(self, deadline_ns: int | None = None) -> NoReturn:
        """Raises EngineFailed, which says how. `deadline_ns` is that of its lane."""
        status = self.process.wait()
        lines = self._printed()
        if lines:
            _log.debug("lane process %d:\n%s", self.process.pid, "\n".join(lines))
        now = now_ns()
        how = f"{_ending(status)}{ended_by(-status, deadline_ns, now)}" if status else "ended without an answer"
        where = f"pid {self.process.pid}"
        error = EngineFailed(
            f"A lane's process {how}" + _told(lines), where=where, next_step=next_step_after(-status, deadline_ns, now)
        )
        raise kept(error, "\n".join(lines), self.log)

    def _printed(self) -> list[str]:
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace").splitlines()


class _Children:
    """Processes that are started together. Leaving the context ends every one that still runs."""

    def __init__(self, log: Path | None) -> None:
        self._log = log
        self.started: list[_Child] = []
        self._ready: list[Worker] = []
        self._asked_ns = now_ns()

    def start(self, command: list[str]) -> None:
        errors = os.fdopen(os.memfd_create("waybill-errors"), "w+b")
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(command, stdin=theirs.fileno(), stdout=errors, stderr=errors, env=_environment())
        self.started.append(_Child(process, Line(ours), errors, self._log))

    def wait_until_ready(self, until: float) -> None:
        """Raises EngineFailed as soon as one has ended, or at `until` (monotonic)."""
        for child in self.started:
            try:
                limit_s = max(until - time.monotonic(), 0.001)
                self._ready.append(greeted(child.line, limit_s, self._asked_ns))
            except TimeoutError:
                raise EngineFailed(
                    f"A lane's process was not ready within {_START_S:g} s",
                    next_step="The machine is too busy; the next attempt tries again",
                ) from None
            except LineEnded:
                child.ended()

    def workers(self, to_stop: ToStop = never) -> Workers:
        return Workers(self._ready, self._ended, _LANE_GRACE_S, to_stop)

    def _ended(self, number: int, deadline_ns: int | None) -> NoReturn:
        self.started[number].ended(deadline_ns)

    def __enter__(self) -> _Children:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for child in self.started:
            child.process.kill()
        for child in self.started:
            child.process.wait()
            child.line.close()
            child.errors.close()


def _environment() -> dict[str, str]:
    """The driver's, with the place of this very code in front, wherever the child starts."""
    root = str(Path(connect_core.__file__).resolve().parent.parent)
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))}


def _ending(status: int) -> str:
    return f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"


def _told(lines: list[str]) -> str:
    """Its last lines. A Python error's last line is its message, which may quote data: only the class is shown."""
    shown = [line.split(":")[0] if not line.startswith(" ") else line for line in lines[-_SHOWN_LINES:]]
    return f"; its last lines: {' | '.join(line.strip() for line in shown)}" if shown else ""
