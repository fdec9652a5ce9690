"""Real servers for tests, and the proof that none of their processes survives the session.

The fixtures start the product's own local stack in a folder of the session, on free ports and without supervisor. With
xdist each worker has its own RocketMQ and PostgreSQL, so a test may kill them; the engine is shared, since it is slow
to start and nobody breaks it. The session's first process ends them all when it finishes; a tether process does so
when that one is killed. Every process that a test starts carries the session's folder in its environment: what
is still there at the end fails the run by name.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from connect_core import stack
from connect_core.stack import postgresql, processes, record
from tests.stages import lacks_server

SESSION = "WAYBILL_TEST_SESSION"
_LEAVE_LIMIT_S = 5.0
_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 6 << 30
_SET_TIMER_SLACK, _GET_TIMER_SLACK = 29, 30
_SLACK_NS = 20_000_000
_REST_SLACK_NS = 500_000_000
_DISPATCHES = "Reput"
"""The thread of a broker that makes what is stored visible."""
# A third less CPU to start; nothing here measures how fast a broker is once it has run for a while.
_QUICK_START = ("-XX:TieredStopAtLevel=1",)
# Until the first interval is over a thread of the broker waits in a tight loop; and of messages with a delay, which no
# test sends, it keeps account each second, with several threads.
_QUIET = {
    "transactionMetricFlushInterval": "100",
    "timerFlushIntervalMs": "600000",
    "timerGetMessageThreadNum": "1",
    "timerPutMessageThreadNum": "1",
}
_tether: processes.Process | None = None
_skipped: list[str] = []


@dataclass(frozen=True)
class RocketMQ:
    """One name server and one broker that a test may break."""

    home: Path
    name_servers: list[str]
    broker_name: str
    version: str

    @property
    def broker(self) -> processes.Process:
        return _running(self.home).part(stack.BROKER).process

    def kill(self) -> None:
        """Ends the broker with SIGKILL, as a crash does."""
        stack.kill(self.home, stack.BROKER)

    def stop(self) -> None:
        """Ends the broker by its own shutdown, which takes it 12 to 17 s."""
        processes.stop(self.broker, grace_s=30)

    def start(self) -> None:
        """Starts the broker again on the same port and store; returns when it answers. No effect when it runs."""
        rocketmq_up(self.home)

    def restart(self) -> None:
        self.kill()
        self.start()

    @contextlib.contextmanager
    def changed(self, *jvm: str, **broker: str) -> Iterator[None]:
        """Killed, and started with these arguments and settings; killed and started as usual at the end."""
        usual = _running(self.home).options
        jvm, broker = (*usual.rocketmq_jvm, *jvm), {**usual.broker, **broker}
        self._restart_with(dataclasses.replace(usual, rocketmq_jvm=jvm, broker=broker))
        try:
            yield
        finally:
            self._restart_with(usual)

    def _restart_with(self, options: stack.Options) -> None:
        for part in (stack.BROKER, stack.NAME_SERVER):
            stack.kill(self.home, part)
        rocketmq_up(self.home, options)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """The broker stands still inside: connections stay open, nothing is answered."""
        pid = self.broker.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            wait_until_stopped(pid)
            yield
        finally:
            os.kill(pid, signal.SIGCONT)


def wait_until_stopped(pid: int) -> None:
    """A stop signal is on its way for a moment: returns when no thread of the process runs any more."""
    until = time.monotonic() + 10
    while not all(_state(thread) == "T" for thread in Path(f"/proc/{pid}/task").iterdir()):
        assert time.monotonic() < until, f"process {pid} did not stop within 10 s"
        time.sleep(0.002)


def _state(thread: Path) -> str:
    """The letter for a thread's state; "gone" for one that ended while it was looked at."""
    try:
        return (thread / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "gone"


@pytest.fixture(scope="session")
def rocketmq(worker_folder: Path) -> RocketMQ:
    """RocketMQ as `dev up` starts it."""
    return rocketmq_in(worker_folder, "5.5.0")


@pytest.fixture(scope="session")
def rocketmq_533(worker_folder: Path) -> RocketMQ:
    """The oldest version that is promised to work. Files that need it run in one process: see `distribution`."""
    return rocketmq_in(worker_folder, "5.3.3")


@pytest.fixture(scope="session")
def postgres_url(worker_folder: Path) -> str:
    """SQLAlchemy URL of a database of this worker. Logical decoding is on, and it takes prepared transactions; nothing
    is synced to disk."""
    settings = {
        "wal_level": "logical",
        "fsync": "off",
        "max_prepared_transactions": "10",
        "max_replication_slots": "50",
        "max_wal_size": "256MB",
    }
    options = stack.Options(well_known_ports=False, postgresql=settings)
    home = worker_folder / "postgresql" / ".waybill"
    return stack.up(home, parts=(stack.POSTGRESQL,), supervise=False, options=options).database_url


@pytest.fixture(scope="session")
def spark_remote() -> str:
    """Spark Connect URL of an engine that all workers share. Do not stop its session, do not kill it."""
    home = _root() / "shared" / "engine" / ".waybill"
    options = stack.Options(well_known_ports=False)
    with coarse_timers():
        return stack.up(home, parts=(stack.ENGINE,), supervise=False, options=options).spark_remote


@pytest.fixture(scope="session")
def worker_folder() -> Path:
    """A folder of this process's own servers, reachable for accounts that servers run as."""
    folder = _root() / os.environ.get("PYTEST_XDIST_WORKER", "single")
    folder.mkdir(exist_ok=True)
    return folder


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--require-servers", action="store_true", help="fail when a test marked `server` was skipped")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail") and lacks_server(report):
        _skipped.append(report.nodeid)


def pytest_configure(config: pytest.Config) -> None:
    global _tether
    if _is_worker(config):
        return
    # What tests sync to a disk waits for it, thousands of times. The whole fault matrix stays there: no file system in
    # memory gives inode numbers out again.
    if (memory := _in_memory()) and config.getoption("--faults", "one") == "one":
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))
    root = Path(tempfile.mkdtemp(prefix="waybill-tests-", dir=_in_memory()))
    root.chmod(0o711)
    os.environ[SESSION] = str(root)
    os.environ["AIRFLOW_HOME"] = str(root / "airflow")  # importing airflow writes into it
    os.environ["WAYBILL_TESTING"] = "1"  # lets tests stop processes at the named steps of a run
    command = (sys.executable, __file__, str(os.getpid()), str(root))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    _tether = processes.start(processes.Launch(command, environment, root / "tether.log"))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if _is_worker(session.config) or SESSION not in os.environ:
        return
    _fail_for_skipped(session)
    root = _root()
    _end_servers(root)
    processes.wait_until(lambda: not _survivors(root), _LEAVE_LIMIT_S)
    survived = False
    while survivors := _survivors(root):  # a supervisor may start others while it is being ended
        survived = True
        for process in survivors:
            print(f"\nERROR: a test left process {process.pid} behind: {_command_line(process.pid)}", file=sys.stderr)
            processes.stop(process, sign=signal.SIGKILL)
    if survived:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if _tether is not None:
        processes.stop(_tether, sign=signal.SIGKILL)
    shutil.rmtree(root, ignore_errors=True)


def _in_memory() -> Path | None:
    """Where servers keep their files: a disk that stalls has held a broker back for over a minute. None, which is the
    usual place, where there is no room."""
    return _MEMORY if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free >= _ROOM_BYTES else None


def _fail_for_skipped(session: pytest.Session) -> None:
    if _skipped and session.config.getoption("--require-servers"):
        print("\nERROR: skipped although they need a server:", *_skipped, sep="\n  ", file=sys.stderr)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def rocketmq_in(folder: Path, version: str) -> RocketMQ:
    """A cluster with its home in the folder."""
    home = folder / f"rocketmq-{version}" / ".waybill"
    options = stack.Options(well_known_ports=False, rocketmq_version=version, rocketmq_jvm=_QUICK_START, broker=_QUIET)
    running = rocketmq_up(home, options)
    return RocketMQ(home, [running.name_servers], running.broker_name, version)


def rocketmq_up(home: Path, options: stack.Options | None = None) -> stack.Stack:
    """The two servers of a home, for tests of which none measures how fast they are."""
    with coarse_timers():
        running = stack.up(home, parts=(stack.NAME_SERVER, stack.BROKER), supervise=False, options=options)
    for part in running.parts.values():
        _let_rest(part.process.pid)
    return running


def _let_rest(pid: int) -> None:
    """Of a server with nothing to do three quarters of the processor time go into a dozen threads that look every few
    milliseconds whether there is something for them: these may look half a second later (proc(5), timerslack_ns)."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            if not (thread / "comm").read_text().startswith(_DISPATCHES):
                Path(f"/proc/{thread.name}/timerslack_ns").write_text(str(_REST_SLACK_NS))


@contextlib.contextmanager
def coarse_timers() -> Iterator[None]:
    """What is started here may sleep 20 ms longer than it wants to (prctl(2), PR_SET_TIMERSLACK; children inherit it).
    A broker with nothing to do wakes up a thousand times a second, which is a twelfth of a processor."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    usual = prctl(_GET_TIMER_SLACK)
    prctl(_SET_TIMER_SLACK, ctypes.c_ulong(_SLACK_NS))
    try:
        yield
    finally:
        prctl(_SET_TIMER_SLACK, ctypes.c_ulong(usual))


def _running(home: Path) -> stack.Stack:
    running = stack.load(home)
    assert running is not None
    return running


def _root() -> Path:
    return Path(os.environ[SESSION])


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _end_servers(root: Path) -> None:
    for file in root.glob("**/.waybill/stack.json"):
        end(file.parent)


def end(home: Path) -> None:
    """Kills what the home has recorded: its data go with it, so nothing has to be shut down."""
    running = record.load(home)
    for part in running.parts.values() if running else ():
        sign = signal.SIGINT if part.name in (stack.POSTGRESQL, stack.ENGINE) else signal.SIGKILL
        processes.stop(part.process, sign=sign)
    postgresql.forget(home)


def _survivors(root: Path) -> list[processes.Process]:
    """Processes that carry the session in their environment, but for this one and the tether."""
    mark = f"{SESSION}={root}".encode()
    spared = {os.getpid(), _tether.pid if _tether else 0}
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) not in spared and mark in _environment(entry):
            process = processes.of(int(entry.name))
            if process is not None and process.is_alive:
                found.append(process)
    return found


def _environment(entry: Path) -> list[bytes]:
    try:
        return (entry / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:300]
    except OSError:
        return "(ended)"


def _tie(controller: int, root: Path) -> None:
    """The tether: waits for the end of the session's first process; is killed by it when all went well."""
    waiting = select.poll()
    waiting.register(os.pidfd_open(controller), select.POLLIN)
    waiting.poll()
    time.sleep(1)  # workers end by themselves when their pipe breaks
    _end_servers(root)
    for process in _survivors(root):
        processes.stop(process, sign=signal.SIGKILL)
    shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    _tie(int(sys.argv[1]), Path(sys.argv[2]))
