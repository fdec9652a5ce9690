"""Starting and stopping by identity: the right process, all of its session, and nobody else."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from connect_core.errors import Unreachable
from connect_core.stack import processes
from connect_core.stack.processes import Launch, Process

Starter = Callable[[str], Process]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    """Starts a shell script as a server and ends it after the test."""
    started: list[Process] = []

    def begin(script: str) -> Process:
        launch = Launch(("/bin/sh", "-c", script), {"PATH": os.environ["PATH"]}, tmp_path / "out.log")
        started.append(processes.start(launch))
        return started[-1]

    yield begin
    for process in started:
        processes.stop(process, sign=signal.SIGKILL)


def test_a_started_process_is_alive_until_it_is_stopped(start: Starter) -> None:
    process = start("exec sleep 60")
    assert process.is_alive
    assert processes.stop(process)
    assert not process.is_alive


def test_it_has_a_session_of_its_own(start: Starter) -> None:
    process = start("exec sleep 60")
    assert os.getsid(process.pid) == process.pid != os.getsid(0)


def test_it_inherits_no_descriptor(start: Starter, tmp_path: Path) -> None:
    """A lock of the caller on one would be held until the server ends."""
    with (tmp_path / "lock").open("w") as held:
        os.set_inheritable(held.fileno(), True)
        fcntl.flock(held, fcntl.LOCK_EX)
        process = start("exec sleep 60")
        expected = {os.devnull, str(tmp_path / "out.log")}
        assert processes.wait_until(lambda: opened_by(process.pid) == expected, 30), opened_by(process.pid)
    with (tmp_path / "lock").open("w") as again:
        fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_process_whose_name_is_no_text_is_in_nobody_s_way(start: Starter, tmp_path: Path) -> None:
    """The kernel cuts a name at 15 bytes, also within a character."""
    program = tmp_path / "обработчик"
    shutil.copy("/bin/sleep", program)
    named = start(f"exec {program} 60")
    other = start("exec sleep 60")
    assert processes.wait_until(lambda: b"\xd0" in Path(f"/proc/{named.pid}/stat").read_bytes(), 30)
    assert named.is_alive
    assert processes.stop(other)
    assert processes.stop(named)


def opened_by(pid: int) -> set[str]:
    """While a program is loaded, its loader has files open for a moment."""
    found = set()
    for one in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(os.readlink(one))
    return found


def test_its_output_goes_to_its_log_and_the_log_before_is_kept(start: Starter, tmp_path: Path) -> None:
    first = start("echo one; echo two >&2")
    assert processes.wait_until(lambda: not first.is_alive, 30)
    second = start("echo three")
    assert processes.wait_until(lambda: not second.is_alive, 30)
    assert (tmp_path / "out.old.log").read_text() == "one\ntwo\n"
    assert (tmp_path / "out.log").read_text() == "three\n"


def test_a_recycled_pid_is_somebody_else(start: Starter) -> None:
    process = start("exec sleep 60")
    earlier = replace(process, started=process.started - 1)
    assert not earlier.is_alive
    assert processes.stop(earlier)
    assert process.is_alive


def test_a_pid_that_a_thread_has_now_is_somebody_else() -> None:
    """The kernel has an error of its own for it."""
    enough = threading.Event()
    thread = threading.Thread(target=enough.wait)
    thread.start()
    try:
        own = processes.of(os.getpid())
        assert own is not None
        assert thread.native_id is not None
        assert processes.stop(replace(own, pid=thread.native_id, started=own.started - 1))
    finally:
        enough.set()
        thread.join()


def test_the_session_of_a_recycled_pid_is_somebody_else_s(start: Starter, tmp_path: Path) -> None:
    process = start("sleep 60 & echo $!; wait")
    assert processes.wait_until(lambda: (tmp_path / "out.log").read_text() != "", 5)
    child = processes.of(int((tmp_path / "out.log").read_text()))
    assert child is not None
    processes.stop(replace(process, started=process.started - 1))
    assert child.is_alive


def test_a_pid_of_an_earlier_boot_is_somebody_else(start: Starter) -> None:
    process = start("exec sleep 60")
    earlier = replace(process, boot_id="00000000-0000-0000-0000-000000000000")
    assert processes.stop(earlier)
    assert process.is_alive


def test_one_that_ignores_the_signal_is_killed_after_the_grace(start: Starter, tmp_path: Path) -> None:
    process = start("trap '' TERM; echo armed; while :; do sleep 1; done")
    assert processes.wait_until(lambda: (tmp_path / "out.log").read_text() == "armed\n", 5)
    assert not processes.stop(process, grace_s=0.2)
    assert not process.is_alive


def test_what_it_started_in_its_session_ends_with_it(start: Starter, tmp_path: Path) -> None:
    child_file = tmp_path / "child"
    # Like Spark's fork server: a process group of its own in the same session.
    script = (
        f"import os, time; os.setpgid(0, 0); open({str(child_file)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    )
    process = start(f'{sys.executable} -c "{script}" & wait')
    assert processes.wait_until(lambda: child_file.exists() and child_file.read_text() != "", 5)
    child = processes.of(int(child_file.read_text()))
    assert child is not None
    processes.stop(process, sign=signal.SIGKILL)
    assert processes.wait_until(lambda: not child.is_alive, 2)


def test_a_missing_program_is_told_by_name(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="/no/such/program"):
        processes.start(Launch(("/no/such/program",), {}, tmp_path / "out.log"))


def test_nobody_has_a_pid_that_is_not_there() -> None:
    assert processes.of(2**22 + 1) is None
