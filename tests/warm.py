"""Starts `waybill`, and lanes of the inline engine, many times, quickly: each process is forked from one that has the
modules loaded.

Four fifths of what a short command costs is the start of its interpreter and its imports, and tests start hundreds. A
process that is forked is one like any other: a pid of its own, its own standard streams, folder and environment, killed
by any signal; only modules are carried over. It becomes a child of the test's process, which can wait for it as for one
that it started itself, through `Popen`.

    warm = session()
    warm.start(["waybill", "status"], folder, {...}).communicate()
    warm.popen([sys.executable, "-P", "-m", "connect_core.engine.child", "lane", str(os.getpid())], stdin=…)
    close()

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

_LANE = "connect_core.engine.child"
_LOADED = (
    "connect_core.cli.app",
    _LANE,
    "connect_core.engine.inline",
    "connect_core.engine.spark_connect",
    "connect_core.engine.worker",
    "connect_core.observe.metrics",
    "connect_core.orchestration.control",
    "connect_core.replication.worker.lane",
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

    def popen(self, command: Sequence[str], **how: Any) -> subprocess.Popen[Any]:
        """As `Popen`, for one of our two programs."""
        return _Forked(self, command, **how)

    def start(self, command: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> subprocess.Popen[str]:
        """As `Popen` with both streams piped, as text."""
        pipe = subprocess.PIPE
        return self.popen(command, cwd=cwd, env=environment, text=True, stdout=pipe, stderr=pipe, close_fds=True)

    def forked(
        self, command: Sequence[str], cwd: str, environment: Mapping[str, str], streams: Mapping[int, int]
    ) -> int:
        """The pid of a child of this process that runs the command. `streams` has a descriptor for each of its standard
        streams that is not the server's."""
        request = json.dumps([list(command), cwd, dict(environment), list(streams)]).encode()
        assert len(request) < _MOST_BYTES
        with self._one_at_a_time, _subreaper():
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams.values()))]
            self._line.sendmsg([request], ancillary)
            return int(self._line.recv(32))


class _Forked(subprocess.Popen[Any]):
    """A `Popen` whose child is started by the server; everything behind the start is Python's own."""

    def __init__(self, warm: Warm, command: Sequence[str], **how: Any) -> None:
        self._warm = warm
        super().__init__(command, **how)

    def _execute_child(self, args: Sequence[str], *rest: Any) -> None:
        """Called by `Popen` with its pipes made; has to set `pid` and to close the child's ends of them."""
        cwd, environment, ends = rest[4] or os.getcwd(), os.environ if rest[5] is None else rest[5], rest[9:15]
        streams = {number: end for number, end in enumerate((ends[0], ends[3], ends[5])) if end != -1}
        try:
            self.pid = self._warm.forked(args, os.fspath(cwd), environment, streams)
            self._child_created = True
        finally:
            self._close_pipe_fds(*ends)  # type: ignore[attr-defined]


_starting = threading.Lock()
_session: Warm | None = None


def session() -> Warm:
    """This process's own, from its first use on."""
    global _session
    with _starting:
        _session = _session or Warm()
    return _session


def close() -> None:
    """Ends this process's own, when there is one."""
    if _session is not None:
        _session.close()


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
        request, ancillary, _, _ = line.recvmsg(_MOST_BYTES, socket.CMSG_SPACE(3 * array.array("i").itemsize))
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
    """Forks a process that is nobody's child here: its pid, or 0 in it. Its parent in between has ended by then, for it
    too: a lane ends at once when its parent is another one than was said."""
    reading, writing = os.pipe()
    ended, living = os.pipe()
    between = os.fork()
    if between == 0:
        pid = os.fork()
        if pid == 0:
            for descriptor in (reading, writing, living):
                os.close(descriptor)
            os.read(ended, 1)
            os.close(ended)
            return 0
        os.write(writing, str(pid).encode())
        os._exit(0)
    os.waitpid(between, 0)
    pid = int(os.read(reading, 32))
    for descriptor in (living, ended, reading, writing):
        os.close(descriptor)
    return pid


def _become(
    request: tuple[list[str], str, dict[str, str], list[int]], streams: Sequence[int], line: socket.socket
) -> None:
    command, cwd, environment, numbers = request
    line.close()
    for number, stream in zip(numbers, streams, strict=True):
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
    if _LANE in sys.argv:
        importlib.import_module(_LANE).main(sys.argv[sys.argv.index(_LANE) + 1 :])
    else:
        importlib.import_module("connect_core.cli").main()


if __name__ == "__main__":
    main(int(sys.argv[1]))
