"""Lanes in child processes of the driver: for single commands and tests, without Spark.

Turns lanes into requests, starts one child each, waits for all of them and turns their answers into outcomes. A child
dies with its driver and at the deadline of its lane. It gets its lane when it is ready: what its start takes does not
count against its deadline. Requests go through a socket, answers through a memory file: nothing of them is on a disk,
in an environment or on a command line.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import connect_core
from connect_core.clock import now_ns
from connect_core.engine import envelope
from connect_core.engine.child import LENGTH_BYTES, READY
from connect_core.engine.failures import ended_by, kept
from connect_core.engine.naming import described
from connect_core.errors import EngineFailed
from connect_core.sdk.scan import ScanResult
from connect_core.work import Engine, Lane, Outcome, ScanTask

_LANE_GRACE_S = 10.0
"""A lane is killed by its own timer at its deadline; this is for one that starts so late that it refuses."""

_SEARCH_GRACE_S = 30.0
"""A search ends itself at its limit; what is beyond is the start of the process and one slow answer."""

_START_S = 120.0
"""So long a process may take to start: on a crowded machine loading its modules takes many seconds."""

_LOOKED_UP = "The next attempt checks the target for written records"
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
    def started(self, lanes: int) -> Iterator[Engine]:
        """See `work.Starting`. Raises EngineFailed when one of the processes does not get ready."""
        with _Children(self._log) as children:
            for _ in range(lanes):
                children.start(self._command("lane"))
            children.wait_until_ready(time.monotonic() + _START_S)
            yield _Ready(self, children)

    def scan(self, task: ScanTask) -> dict[int, ScanResult]:
        with _Children(self._log) as children:
            children.start(self._command("search"))
            children.wait_until_ready(time.monotonic() + _START_S)
            (answer,) = children.answers([envelope.request(task)], task.scan.limit_s + _SEARCH_GRACE_S)
            return envelope.found(answer)

    def _command(self, kind: str) -> list[str]:
        return [self._python, "-P", "-m", "connect_core.engine.child", kind, str(os.getpid())]


@dataclass(frozen=True)
class _Ready:
    """The engine for one execution, of as many lanes as there are processes."""

    engine: InlineEngine
    children: _Children

    @property
    def described(self) -> str:
        return self.engine.described

    def execute(self, lanes: Sequence[Lane]) -> list[Outcome]:
        left_s = (max((lane.deadline_ns for lane in lanes), default=0) - now_ns()) / 1e9
        requests, deadlines = [envelope.request(lane) for lane in lanes], [lane.deadline_ns for lane in lanes]
        answers = self.children.answers(requests, max(left_s, 0) + _LANE_GRACE_S, deadlines)
        pairs = zip(lanes, answers, strict=True)
        return [outcome for lane, answer in pairs for outcome in envelope.outcomes(lane, answer)]

    def scan(self, task: ScanTask) -> dict[int, ScanResult]:
        return self.engine.scan(task)


@dataclass(frozen=True)
class _Child:
    process: subprocess.Popen[bytes]
    exit: int
    """A pidfd: readable when the process has ended."""
    line: socket.socket
    """To its standard input."""
    output: BinaryIO
    errors: BinaryIO
    log: Path | None

    def ask(self, request: bytes, until: float) -> None:
        """Raises EngineFailed when it has not taken the request at `until` (monotonic). A process that has died
        meanwhile is noticed by whoever waits for it."""
        self.line.settimeout(max(until - time.monotonic(), 0.001))
        try:
            with suppress(ConnectionError):
                self.line.sendall(request)
                self.line.shutdown(socket.SHUT_WR)
        except TimeoutError:
            raise EngineFailed(
                "A lane's process did not take its work before its deadline",
                where=f"pid {self.process.pid}",
                next_step="It was ended; the next attempt tries again",
            ) from None

    def check(self, deadline_ns: int | None = None) -> None:
        """Raises EngineFailed when it ended otherwise than well. `deadline_ns` is that of its lane."""
        status = self.process.wait()
        lines = self._printed()
        if lines:
            _log.debug("lane process %d:\n%s", self.process.pid, "\n".join(lines))
        if status != 0:
            error = EngineFailed(
                f"A lane's process {_ending(status)}{ended_by(-status, deadline_ns, now_ns())}" + _told(lines),
                where=f"pid {self.process.pid}",
                next_step=_LOOKED_UP,
            )
            raise kept(error, "\n".join(lines), self.log)

    def answer(self) -> bytes:
        self.output.seek(0)
        length = int.from_bytes(self.output.read(LENGTH_BYTES), "big")
        answer = self.output.read()
        if not answer or len(answer) != length:
            raise EngineFailed(
                "A lane's process ended without an answer", where=f"pid {self.process.pid}", next_step=_LOOKED_UP
            )
        return answer

    def _printed(self) -> list[str]:
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace").splitlines()


class _Children:
    """The processes of one execution. Leaving the context ends every one that still runs."""

    def __init__(self, log: Path | None) -> None:
        self._log = log
        self.started: list[_Child] = []

    def start(self, command: list[str]) -> None:
        output, errors = _memory("answer"), _memory("errors")
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(command, stdin=theirs.fileno(), stdout=output, stderr=errors, env=_environment())
        self.started.append(_Child(process, os.pidfd_open(process.pid), ours, output, errors, self._log))

    def wait_until_ready(self, until: float) -> None:
        """Raises EngineFailed as soon as one has ended, or at `until` (monotonic)."""
        for child in self.started:
            child.line.settimeout(max(until - time.monotonic(), 0.001))
            try:
                ready = child.line.recv(len(READY))
            except TimeoutError:
                raise EngineFailed(
                    f"A lane's process was not ready within {_START_S:g} s",
                    next_step="The machine is too busy; the next attempt tries again",
                ) from None
            if not ready:
                child.check()
                raise EngineFailed(
                    "A lane's process ended without reporting", where=f"pid {child.process.pid}", next_step=_LOOKED_UP
                )

    def answers(
        self, requests: Sequence[bytes], limit_s: float, deadlines: Sequence[int | None] = (None,)
    ) -> list[bytes]:
        """One each, of as many processes. Raises EngineFailed as soon as one has not ended well, or when the limit is
        over. `deadlines` are those at which they are killed."""
        until = time.monotonic() + limit_s
        asked = self.started[: len(requests)]
        for child, request in zip(asked, requests, strict=True):
            child.ask(request, until)
        self._wait(dict(zip(asked, deadlines, strict=True)), until)
        return [child.answer() for child in asked]

    def _wait(self, asked: Mapping[_Child, int | None], until: float) -> None:
        """Returns when all have ended well; raises EngineFailed as soon as one has not, or at `until` (monotonic)."""
        poll = select.poll()
        running = {child.exit: (child, deadline_ns) for child, deadline_ns in asked.items()}
        for descriptor in running:
            poll.register(descriptor, select.POLLIN)
        while running:
            ended = poll.poll(max(until - time.monotonic(), 0) * 1000)
            if not ended:
                raise EngineFailed(
                    f"{len(running)} lanes still ran after their deadline and were ended", next_step=_LOOKED_UP
                )
            for descriptor, _ in ended:
                poll.unregister(descriptor)
                child, deadline_ns = running.pop(descriptor)
                child.check(deadline_ns)

    def __enter__(self) -> _Children:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for child in self.started:
            child.process.kill()
        for child in self.started:
            child.process.wait()
            os.close(child.exit)
            child.line.close()
            child.output.close()
            child.errors.close()


def _memory(name: str) -> BinaryIO:
    return os.fdopen(os.memfd_create(f"waybill-{name}"), "w+b")


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
