"""Several processes that want the same thing: one at a time, and nobody waits for ever without a word."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from connect_core.errors import LeaseHeld
from connect_core.stack import locking
from connect_core.stack.locking import locked

HOLD = """
import sys, time
from pathlib import Path
from connect_core.stack.locking import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "home" / "stack.lock"


@pytest.fixture
def holder(lock: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_who_waits_for_a_process_that_was_stopped_is_told_for_which(
    lock: Path, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(locking, "_TELL_AFTER_S", 0.1)
    holder.send_signal(signal.SIGSTOP)
    with pytest.raises(LeaseHeld, match=f"process {holder.pid} has stack.lock"), locked(lock, limit_s=0.5):
        pytest.fail("somebody else holds it")
    assert capsys.readouterr().err == f"waiting: process {holder.pid} has stack.lock\n"


def test_it_goes_on_when_the_holder_has_ended(lock: Path, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    with locked(lock, limit_s=10):
        assert lock.read_text() == str(os.getpid())
    assert lock.read_text() == "", "nobody is named who has gone"


def test_a_full_disk_does_not_keep_anybody_from_the_lock() -> None:
    """As when a stack is to be stopped to make room."""
    with locked(Path("/dev/full")):
        pass
