"""What a driver sends to workers whose clock is another one."""

from __future__ import annotations

import json
import pickle
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import pytest

from connect_core.clock import now_ns
from connect_core.engine import workers as workers_module
from connect_core.engine.host_clocks import Reading, Sample
from connect_core.engine.line import Line, LineEnded
from connect_core.engine.requests import CLOCK
from connect_core.engine.workers import Worker, Workers, greeted
from connect_core.errors import EngineFailed
from connect_core.replication.host import boot_id
from connect_core.work import Lane, never
from tests.unit.engine.lanes import lane

SECOND = 1_000_000_000
AHEAD_NS = 500 * 86_400 * SECOND
THERE = "boot there"


@dataclass
class Host:
    """Another one, whose clock is `ahead_ns` of ours. Answers each lane at once."""

    line: Line
    boot: str = THERE
    ahead_ns: int = AHEAD_NS
    lanes: list[Lane] = field(default_factory=list)
    asked: int = 0

    def now_ns(self) -> int:
        return now_ns() + self.ahead_ns

    def says(self, body: bytes = b"") -> None:
        self.line.send(json.dumps({"clock": [self.boot, self.now_ns()]}).encode() + b"\n" + body)

    def serve(self) -> None:
        try:
            while True:
                request = self.line.receive()
                if request == CLOCK:
                    self.asked += 1
                    self.says()
                else:
                    self.lanes.append(pickle.loads(request.partition(b"\n")[2]))
                    self.says(pickle.dumps([]))
        except LineEnded:
            return


def ended(number: int, deadline_ns: int | None) -> NoReturn:
    raise EngineFailed(f"worker {number} has ended")


@contextmanager
def reached(boot: str = THERE, ahead_ns: int = AHEAD_NS) -> Iterator[tuple[Workers, Host]]:
    """The driver's view of one worker there."""
    ours, theirs = socket.socketpair()
    with ExitStack() as ending:
        host = Host(Line(theirs), boot, ahead_ns)
        ending.callback(ours.close)
        asked_ns = now_ns()
        host.says()
        worker = greeted(Line(ours), 10, asked_ns)
        serving = threading.Thread(target=host.serve)
        serving.start()
        ending.callback(serving.join)
        ending.callback(theirs.shutdown, socket.SHUT_RDWR)
        yield Workers([worker], ended, 1, never), host
    theirs.close()


def test_a_lane_has_its_deadline_in_the_clock_of_its_host_at_or_before_the_drivers(tmp_path: Path) -> None:
    with reached() as (workers, host):
        wanted = lane(tmp_path, left_s=10)
        workers.execute([wanted])
    [there] = host.lanes
    assert there.boot_id == THERE
    early_s = (wanted.deadline_ns - (there.deadline_ns - AHEAD_NS)) / SECOND
    assert 1.9 < early_s < 3
    assert workers.elsewhere


def test_a_worker_with_the_drivers_own_clock_gets_the_lane_as_it_is(tmp_path: Path) -> None:
    with reached(boot_id(), 0) as (workers, host):
        wanted = lane(tmp_path)
        workers.read_clocks()
        workers.execute([wanted])
    assert (host.lanes, host.asked, workers.elsewhere) == ([wanted], 0, False)


def test_a_clock_that_is_not_the_drivers_in_spite_of_its_boot_is_another_one(tmp_path: Path) -> None:
    """A container with a time of its own, or a copy of a machine."""
    with reached(boot_id(), -60 * SECOND) as (workers, host):
        wanted = lane(tmp_path, left_s=10)
        workers.execute([wanted])
    assert workers.elsewhere
    assert host.lanes[0].deadline_ns < wanted.deadline_ns - 60 * SECOND


def test_what_is_known_of_a_clock_is_asked_again_when_it_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with reached() as (workers, host):
        workers.read_clocks()
        assert host.asked == 0
        monkeypatch.setattr(workers_module, "_FRESH_NS", 0)
        workers.read_clocks()
        assert host.asked == 1
        monkeypatch.setattr(workers_module, "_FRESH_NS", SECOND)
        workers.execute([lane(tmp_path)])  # its answer says it as well
        workers.read_clocks()
        assert host.asked == 1


def test_a_message_that_was_long_under_way_does_not_replace_what_says_more() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        known = Sample(Reading(THERE, 100 * SECOND), now_ns())
        worker = Worker(Line(ours), known, here=False)
        worker.heard(json.dumps({"clock": [THERE, 90 * SECOND]}).encode() + b"\n")
        assert worker.sample is known
        worker.heard(json.dumps({"clock": [THERE, 200 * SECOND]}).encode() + b"\n")
        assert worker.sample.reading.boottime_ns == 200 * SECOND
        worker.heard(b"{}\n")  # a worker of other code
        assert worker.sample.reading.boottime_ns == 200 * SECOND


def test_who_says_nothing_of_its_clock_is_no_worker() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        Line(theirs).send(b"{}\n")
        with pytest.raises(LineEnded):
            greeted(Line(ours), 10, now_ns())
