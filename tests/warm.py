"""Starts `waybill` many times, quickly: each process is forked from one that has the modules loaded.

Four fifths of what a short command costs is the start of its interpreter and its imports, and tests start hundreds. A
process that is forked is one like any other: a pid of its own, its own standard streams, folder and environment, killed
by any signal; only modules are carried over. It becomes a child of the test's process, which can wait for it as for one
that it started itself, through `Popen`.

    warm = Warm()
    warm.start(["waybill", "status"], folder, {...}).communicate()
    warm.close()

The server forks twice: the one in between ends at once, and the kernel gives its child to the test's process, which is
its subreaper (prctl(2), PR_SET_CHILD_SUBREAPER) for as long as this takes.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import gc
import importlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_LOADED = (
    "connect_core.cli.app",
    "connect_core.engine.inline",
    "connect_core.engine.spark_connect",
    "connect_core.observe.metrics",
    "connect_core.orchestration.control",
    "connect_core.service.run_report",
    "connect_core.systems.file.sink",
    "connect_core.systems.file.source",
    "connect_core.systems.rocketmq.sink",
    "connect_core.systems.rocketmq.source",
    "psycopg2",
    "rich.progress",
    "sqlalchemy.dialects.postgresql",
    "sqlalchemy.dialects.sqlite",
)
_MOST_BYTES = 1 << 20
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


class Warm:
    """The server's side in the process of the tests. May be used by several threads."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-m", "tests.warm", str(theirs.fileno())],
                cwd=Path(__file__).parents[1],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )

    def close(self) -> None:
        self._line.close()
        self._server.wait()

    def start(self, command: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> subprocess.Popen[str]:
        """As `Popen` with both streams piped, as text."""
        return _Forked(self, command, cwd, environment)

    def forked(self, command: Sequence[str], cwd: str, environment: Mapping[str, str], streams: Sequence[int]) -> int:
        """The pid of a child of this process that runs the command."""
        request = json.dumps([list(command), cwd, dict(environment)]).encode()
        assert len(request) < _MOST_BYTES
        with self._one_at_a_time, _subreaper():
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))]
            self._line.sendmsg([request], ancillary)
            return int(self._line.recv(32))


class _Forked(subprocess.Popen[str]):
    """A `Popen` whose child is started by the server; everything behind the start is Python's own."""

    def __init__(self, warm: Warm, command: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> None:
        self._warm = warm
        super().__init__(
            command, cwd=cwd, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, close_fds=True
        )

    def _execute_child(self, args: Sequence[str], *rest: Any) -> None:
        """Called by `Popen` with its pipes made; has to set `pid` and to close the child's ends of them."""
        cwd, environment, out, errors = rest[4], rest[5], rest[12], rest[14]
        try:
            self.pid = self._warm.forked(args, os.fspath(cwd), environment, [out, errors])
            self._child_created = True
        finally:
            os.close(out)
            os.close(errors)


@contextlib.contextmanager
def _subreaper() -> Iterator[None]:
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


# ---------------------------------------------------------------------------------------------------------- the server


def serve(line: socket.socket) -> None:
    """Returns in the server when nobody is left to ask, and in each forked process when it is to run its command."""
    while True:
        request, ancillary, _, _ = line.recvmsg(_MOST_BYTES, socket.CMSG_SPACE(2 * array.array("i").itemsize))
        if not request:
            raise SystemExit(0)
        streams = array.array("i")
        for _level, _kind, data in ancillary:
            streams.frombytes(data)
        if not (pid := _adopted_away()):
            _become(json.loads(request), streams, line)
            return
        line.send(str(pid).encode())
        for stream in streams:
            os.close(stream)


def _adopted_away() -> int:
    """Forks a process that is nobody's child here: its pid, or 0 in it. Its parent in between has ended by then."""
    reading, writing = os.pipe()
    between = os.fork()
    if between == 0:
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            os.close(writing)
            return 0
        os.write(writing, str(pid).encode())
        os._exit(0)
    os.waitpid(between, 0)
    pid = int(os.read(reading, 32))
    os.close(reading)
    os.close(writing)
    return pid


def _become(request: tuple[list[str], str, dict[str, str]], streams: Sequence[int], line: socket.socket) -> None:
    command, cwd, environment = request
    line.close()
    for number, stream in enumerate(streams, start=1):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = command
    sys.modules["__main__"].__package__ = None  # else usage lines would name this program


def main(descriptor: int) -> None:
    for name in _LOADED:
        importlib.import_module(name)
    gc.freeze()  # what is there stays: nobody looks for garbage in it, which would copy its pages
    serve(socket.socket(fileno=descriptor))
    from connect_core.cli import main as waybill

    waybill()


if __name__ == "__main__":
    main(int(sys.argv[1]))
