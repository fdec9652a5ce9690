"""Starts `waybill`, lanes of the inline engine, and operations of the server, many times, quickly: each process is
forked from one that has the modules loaded.

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

A `waybill` whose lanes are processes of its own (the inline engine) has a server of its own for them, forked from it
before it has threads: a lane must be its child.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

_LANE = "connect_core.engine.child"
OPERATION = "connect_core.jobs.operation"
_LOADED = (
    "connect_core.cli.app",
    _LANE,
    OPERATION,
    "connect_core.engine.inline",
    "connect_core.engine.spark_connect",
    "connect_core.engine.spark_on_demand",
    "connect_core.engine.worker",
    "connect_core.observe.metrics",
    "connect_core.orchestration.control",
    "connect_core.replication.worker.lane",
    "connect_core.stack",
    "encodings.idna",
    "prometheus_client",
    "psycopg2",
    "psycopg2._ipaddress",
    "psycopg2.extras",
    "pydantic.type_adapter",
    "rich._emoji_codes",
    "rich.progress",
    "sqlalchemy.dialects.postgresql",
    "sqlalchemy.dialects.sqlite",
    "typer._adapters",
    "typer._click.decorators",
)
_ROOMS = (
    "connect_core.replication.backfill",
    "connect_core.replication.driver",
    "connect_core.sdk.kits",
    "connect_core.service",
    "connect_core.systems.file",
    "connect_core.systems.mqtt",
    "connect_core.systems.mysql",
    "connect_core.systems.mysql.binlog",
    "connect_core.systems.postgresql",
    "connect_core.systems.postgresql.changes",
    "connect_core.systems.rocketmq",
    "connect_core.systems.tables",
)
"""Of these all modules: a command loads those that it needs."""
_RUN_LANES = {"run", "backfill", "backfills", "dead-letters", "verify"}
_MOST_BYTES = 1 << 20
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


class Warm:
    """A server, seen from the process whose children it starts, which may ask it from several threads. `line` leads to
    it; it ends when that is closed."""

    def __init__(self, line: socket.socket) -> None:
        self._one_at_a_time = threading.Lock()
        self._line = line

    def close(self) -> None:
        self._line.close()

    def popen(self, command: Sequence[str], **how: Any) -> subprocess.Popen[Any]:
        """As `Popen`, for one of our programs."""
        return _Forked(self, command, **how)

    def run(self, command: Sequence[str], *, check: bool, **how: Any) -> subprocess.CompletedProcess[Any]:
        """As `subprocess.run`, for one of our programs that says nothing."""
        assert not check
        with self.popen(command, **how) as process:
            return subprocess.CompletedProcess(command, process.wait())

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
_session: tuple[Warm, subprocess.Popen[bytes]] | None = None


def session() -> Warm:
    """That of this process of the tests, from its first use on."""
    global _session
    with _starting:
        _session = _session or _started()
    return _session[0]


def close() -> None:
    """Ends that of this process, when there is one."""
    if _session is not None:
        warm, server = _session
        warm.close()
        server.wait()


def _started() -> tuple[Warm, subprocess.Popen[bytes]]:
    line, theirs = _line()
    with theirs:
        command = [sys.executable, "-m", "tests.warm", str(theirs.fileno())]
        place, handed = Path(__file__).parents[1], [theirs.fileno()]
        return Warm(line), subprocess.Popen(command, cwd=place, pass_fds=handed, stdin=subprocess.DEVNULL)


def _line() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


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
            os._exit(0)
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
    if folders := [folder for folder in environment.get("PYTHONPATH", "").split(os.pathsep) if folder]:
        sys.path[1:1] = folders
        _look_for_plugins_again()
    sys.argv = command
    sys.modules["__main__"].__package__ = None  # else usage lines would name this program


def _load() -> None:
    for name in _LOADED:
        importlib.import_module(name)
    for name in _ROOMS:
        for found in pkgutil.iter_modules(importlib.import_module(name).__path__, f"{name}."):
            importlib.import_module(found.name)


def _read_what_is_always_the_same() -> None:
    """Once: each command would find the installed systems, read the default settings, and make the parsers of
    conditions from their grammar."""
    list(importlib.import_module("connect_core.systems.registry").SYSTEMS)
    importlib.import_module("connect_core.config.settings")._defaults()
    references = importlib.import_module("connect_core.pipeline.references")
    references.read_condition("$.a = 1")
    references.properties_in("a = 1")


def _look_for_plugins_again() -> None:
    """A folder of the command's own may hold some."""
    importlib.import_module("connect_core.systems.registry").SYSTEMS.reload()


def _put_commands_together() -> None:
    """Once: Typer does it from the signatures of all commands each time that one of them is called."""
    typer = importlib.import_module("typer.main")
    commands = typer.get_command(importlib.import_module("connect_core.cli.app").app)
    typer.__dict__["get_command"] = lambda _: commands


def main(descriptor: int) -> None:
    _load()
    _put_commands_together()
    _read_what_is_always_the_same()
    gc.freeze()  # what is there stays: nobody looks for garbage in it, which would copy its pages
    serve(socket.socket(fileno=descriptor))
    if OPERATION in sys.argv or (_LANE not in sys.argv and _RUN_LANES & {*sys.argv}):
        _fork_lanes()
    for module in (_LANE, OPERATION):
        if module in sys.argv:
            _end_with(partial(_main_of, module, sys.argv[sys.argv.index(module) + 1 :]))
    _end_with(importlib.import_module("connect_core.cli").main)


def _main_of(module: str, words: Sequence[str]) -> NoReturn:
    sys.exit(importlib.import_module(module).main(words))


def _end_with(program: Callable[[], object]) -> NoReturn:
    """All that Python does at its end but one thing: to take down each module that was carried over, which costs more
    than most commands do."""
    code = 0
    try:
        program()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else bool(error.code)
    except Exception:
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _fork_lanes() -> None:
    """Returns in the process that runs `waybill` or an operation, and in each of its lanes, which has its command by
    then."""
    ours, theirs = _line()
    if os.fork():
        theirs.close()
        forking = SimpleNamespace(Popen=Warm(ours).popen)
        importlib.import_module("connect_core.engine.inline").__dict__["subprocess"] = forking
        return
    ours.close()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):  # whoever reads what `waybill` prints waits for its end, not for this one's
        os.dup2(nothing, stream)
    os.close(nothing)
    serve(theirs)


if __name__ == "__main__":
    main(int(sys.argv[1]))
