"""The kernel timer, in processes of their own: it ends them."""

import signal
import subprocess
import sys
import time

from connect_core.clock import now_ns
from connect_core.engine.deadline import killed_at

DEAF = """
import ctypes, sys, time
from connect_core.engine.deadline import killed_at
from connect_core.clock import now_ns
libc = ctypes.CDLL(None)
every = (ctypes.c_ubyte * 128)(*[0xFF] * 128)
assert libc.sigprocmask(0, every, None) == 0
with killed_at(now_ns() + int(float(sys.argv[1]) * 1e9)):
    print("armed", flush=True)
    while True:
        pass
"""


def test_it_kills_with_every_signal_blocked() -> None:
    started = time.monotonic()
    ended = subprocess.run([sys.executable, "-c", DEAF, "0.2"], capture_output=True, timeout=30)
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, b"armed\n")
    assert time.monotonic() - started >= 0.2


def test_a_deadline_that_is_over_kills_at_once() -> None:
    ended = subprocess.run([sys.executable, "-c", DEAF, "-1"], capture_output=True, timeout=30)
    assert ended.returncode == -signal.SIGKILL


def test_a_stopped_process_is_killed_too() -> None:
    process = subprocess.Popen([sys.executable, "-c", DEAF, "0.5"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout:
        process.stdout.readline()
        process.send_signal(signal.SIGSTOP)
        assert process.wait(timeout=30) == -signal.SIGKILL


def test_leaving_in_time_disarms_it() -> None:
    with killed_at(now_ns() + 50_000_000):
        pass
    time.sleep(0.1)


def test_each_lane_has_a_timer_of_its_own() -> None:
    with killed_at(now_ns() + 10_000_000_000):
        with killed_at(now_ns() + 50_000_000):
            pass
        time.sleep(0.1)
