"""The worker's end of its line, in a process of its own: what the end of the line ends."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys

import pytest

WORKER = """
import socket, sys, time
from connect_core.engine.line import Line, LineEnded
from connect_core.engine.requests import Lanes
lanes = Lanes(Line(socket.socket(fileno=0)))
for request in lanes:
    if sys.argv[1] == "late":
        time.sleep(1)
    try:
        with lanes.ending_with_line():
            if sys.argv[1] != "done":
                print("at work", flush=True)
                time.sleep(30)
        print("done", flush=True)
    except LineEnded:
        print("refused", flush=True)
print("ended", flush=True)
"""
LANE = (4).to_bytes(8, "big") + b"lane"


@pytest.mark.parametrize(
    ("when", "said", "code"),
    [
        ("working", b"at work\n", -signal.SIGKILL),
        ("done", b"done\nended\n", 0),
        ("late", b"refused\nended\n", 0),
    ],
)
def test_a_lane_ends_with_its_line_and_does_not_begin_after_it(when: str, said: bytes, code: int) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        worker = subprocess.Popen([sys.executable, "-c", WORKER, when], stdin=theirs, stdout=subprocess.PIPE)
    with ours, worker:
        ours.sendall(LANE)
        assert worker.stdout is not None
        first = b"" if when == "late" else worker.stdout.readline()
        ours.close()
        assert first + worker.stdout.read() == said
        assert worker.wait(60) == code
