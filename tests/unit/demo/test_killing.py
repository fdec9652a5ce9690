"""Workers are told by the lock files that they share with their own run, and by nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from connect_core.demo.killing import kill, wait_for, workers

_HOLDS = "import sys; held = [open(path) for path in sys.argv[1:]]; print(flush=True); sys.stdin.read()"


@contextmanager
def _holding(*paths: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", _HOLDS, *map(str, paths)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def test_only_those_who_share_a_lock_with_the_driver_are_its_workers(tmp_path: Path) -> None:
    mine, others = tmp_path / "mine.1", tmp_path / "others.1"
    mine.touch()
    others.touch()
    with _holding(mine) as driver, _holding(mine) as worker, _holding(others):
        assert workers(tmp_path, driver.pid) == {worker.pid}


def test_a_driver_without_locks_has_no_workers(tmp_path: Path) -> None:
    with _holding() as driver:
        assert workers(tmp_path, driver.pid) == set()


def test_killing_what_has_ended_is_told(tmp_path: Path) -> None:
    with _holding() as process:
        assert kill(process.pid)
        assert process.wait() == -9
        assert not kill(process.pid)


def test_waiting_ends_with_what_is_waited_on() -> None:
    answers = iter([0, 0, 7])
    assert wait_for(lambda: next(answers), lambda: True) == 7
    assert wait_for(lambda: 0, lambda: False) is None
