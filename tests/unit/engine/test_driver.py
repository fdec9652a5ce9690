"""A worker that watches its driver, both in processes of their own."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass

import pytest

from connect_core.engine.driver import Driver, killed_with, this_process
from connect_core.errors import Fenced

DRIVER = """
import json, sys
from connect_core.engine.driver import this_process
print(json.dumps(this_process()), flush=True)
sys.stdin.read()
"""

WORKER = """
import json, sys, time
from connect_core.engine.driver import Driver, killed_with
with killed_with(Driver(*json.loads(sys.argv[1]))):
    print("watching", flush=True)
    time.sleep(30)
"""


@dataclass
class Child:
    process: subprocess.Popen[str]

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


def child(code: str, *arguments: str) -> Child:
    pipe = subprocess.PIPE
    return Child(subprocess.Popen([sys.executable, "-c", code, *arguments], stdin=pipe, stdout=pipe, text=True))


def test_a_worker_ends_with_its_driver() -> None:
    driver = child(DRIVER)
    worker = child(WORKER, driver.line())
    with driver.process, worker.process:
        assert worker.line() == "watching"
        driver.process.kill()
        assert worker.process.wait(timeout=10) == -signal.SIGKILL


def test_leaving_ends_the_watch() -> None:
    before = threading.active_count()
    with killed_with(this_process()):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


def test_work_of_a_driver_that_has_ended_is_refused() -> None:
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    gone = this_process()._replace(pid=int(ended.stdout))
    with pytest.raises(Fenced, match="has ended"), killed_with(gone):
        pytest.fail("it was let in")


def test_a_pid_that_was_given_out_again_is_not_the_driver() -> None:
    with pytest.raises(Fenced), killed_with(this_process()._replace(started=1)):
        pytest.fail("it was let in")


def test_a_pid_that_a_thread_has_now_is_not_the_driver() -> None:
    with killed_with(this_process()):
        (watch,) = [one for one in threading.enumerate() if one.name == "driver-watch"]
        assert watch.native_id is not None
        with pytest.raises(Fenced), killed_with(this_process()._replace(pid=watch.native_id, started=1)):
            pytest.fail("it was let in")


@pytest.mark.parametrize("elsewhere", [{"boot_id": "another"}, {"namespace": "pid:[1]"}])
def test_a_driver_that_cannot_be_seen_is_not_watched(elsewhere: dict[str, str]) -> None:
    before = threading.active_count()
    far = Driver(**{**this_process()._asdict(), "pid": 2**22, **elsewhere})
    with killed_with(far):
        assert threading.active_count() == before


def test_a_process_knows_itself() -> None:
    assert this_process() == this_process()
    assert this_process().pid == os.getpid()
