"""Lanes of a worker on another host, whose clock is days from the driver's: they end before the driver's deadline.

The driver is this process. The worker dials it over the network, with TLS, and the kernel's timer there has its own
clock.
"""

from __future__ import annotations

import base64
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

from connect_core.clock import now_ns
from connect_core.engine.dialling import dial_in
from connect_core.engine.workers import Worker, Workers, greeted
from connect_core.errors import EngineFailed
from connect_core.replication.host import boot_id
from connect_core.work import ToStop, never
from tests.hosts.hosts import Host, Network
from tests.unit.engine.lanes import DRILL, lane

ROOT = Path(__file__).parents[2]
LIMIT_S = 60
LEFT_S = 5
DAY_S = 86_400
WORKS = "import base64, sys; from connect_core.engine.worker import stay; stay(base64.b64decode(sys.argv[1]), 0)"


def ended(number: int, deadline_ns: int | None) -> NoReturn:
    raise EngineFailed(f"worker {number} has ended")


@dataclass
class Reached:
    """A worker on another host, as its driver has it."""

    host: Host
    worker: Worker
    workers: Workers
    process: subprocess.Popen[bytes]

    def pid(self) -> int:
        """Of the worker, as this machine sees it."""
        [found] = self.host.processes()
        return found


@contextmanager
def reached(network: Network, ahead_s: int, grace_s: float = 5, to_stop: ToStop = never) -> Iterator[Reached]:
    host = network.host(f"host-{ahead_s}", ahead_s)
    with ExitStack() as ending, dial_in(1, network.address) as dialling:
        [invitation] = dialling.invitations()
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(DRILL)])}
        command = [sys.executable, "-c", WORKS, base64.b64encode(invitation).decode()]
        process = host.start(command, environment)
        [line] = dialling.lines(LIMIT_S, lambda: process.poll() is None)
        ending.callback(line.close)
        worker = greeted(line, LIMIT_S, dialling.asked_ns)
        yield Reached(host, worker, Workers([worker], ended, grace_s, to_stop), process)


def gone_at_ns(pid: int) -> int:
    """When a process ends, by this machine's clock."""
    descriptor = os.pidfd_open(pid)
    try:
        assert select.select([descriptor], [], [], LIMIT_S)[0], "it still runs"
        return now_ns()
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("ahead_s", [400 * DAY_S, 3 * DAY_S])
def test_a_lane_that_hears_no_signal_is_killed_at_or_before_the_drivers_deadline(
    network: Network, tmp_path: Path, ahead_s: int
) -> None:
    with reached(network, ahead_s) as there:
        assert there.worker.sample.reading.boot_id == there.host.boot_id != boot_id()
        assert abs(there.worker.sample.reading.boottime_ns - now_ns() - ahead_s * 10**9) < LIMIT_S * 10**9
        there.workers.read_clocks()
        wanted = lane(tmp_path, act="deaf", seconds=60, left_s=LEFT_S)
        gone: list[int] = []
        worker = there.pid()
        watching = threading.Thread(target=lambda: gone.append(gone_at_ns(worker)))
        watching.start()
        with pytest.raises(EngineFailed):
            there.workers.execute([wanted])
        watching.join()
    early_s = (wanted.deadline_ns - gone[0]) / 1e9
    assert 0 <= early_s < LEFT_S, f"killed {early_s:.3f} s before the driver's deadline"


def test_lanes_on_another_host_come_to_their_end_and_answer(network: Network, tmp_path: Path) -> None:
    with reached(network, DAY_S) as there:
        for number in range(3):
            there.workers.read_clocks()
            [outcome] = there.workers.execute([lane(tmp_path, index=number)])
            assert outcome.receipt is not None
            assert outcome.receipt.where["pid"] != os.getpid()
        assert there.workers.elsewhere


def test_a_lane_whose_line_was_cut_ends_at_its_deadline(network: Network, tmp_path: Path) -> None:
    """Neither side is told. The driver gives it up, and knows that its time is over."""
    with reached(network, DAY_S, grace_s=1) as there:
        there.workers.read_clocks()
        note = tmp_path / "note"
        wanted = lane(tmp_path, seconds=60, left_s=5, note=note)
        gone: list[int] = []
        worker = there.pid()
        watching = threading.Thread(target=lambda: gone.append(gone_at_ns(worker)))
        watching.start()
        cutting = threading.Thread(target=lambda: (appears(note), there.host.cut()))
        cutting.start()
        with pytest.raises(EngineFailed, match="gave no answer in time"):
            there.workers.execute([wanted])
        cutting.join()
        watching.join()
    assert gone[0] <= wanted.deadline_ns


def test_a_host_whose_processes_stand_still_past_the_deadline_writes_nothing_when_they_go_on(
    network: Network, tmp_path: Path
) -> None:
    """Its clock has counted on: the kernel has killed what stood still."""
    with reached(network, DAY_S, grace_s=1) as there:
        there.workers.read_clocks()
        note, worker = tmp_path / "note", there.pid()
        wanted = lane(tmp_path, act="until_stopped", left_s=4, note=note)
        pausing = threading.Thread(target=lambda: (appears(note), there.host.pause()))
        pausing.start()
        with pytest.raises(EngineFailed):
            there.workers.execute([wanted])
        pausing.join()
        assert gone_at_ns(worker)
        there.host.go_on()
        assert there.process.wait(LIMIT_S) != 0


def test_a_lane_ends_with_its_line_long_before_its_deadline(network: Network, tmp_path: Path) -> None:
    """The process of a driver cannot be watched from another host."""
    note = tmp_path / "note"

    def fails_meanwhile() -> bool:
        if note.exists():
            raise EngineFailed("another lane has failed")
        return False

    with reached(network, DAY_S, to_stop=fails_meanwhile) as there:
        there.workers.read_clocks()
        worker = there.pid()
        with pytest.raises(EngineFailed):
            there.workers.execute([lane(tmp_path, seconds=LIMIT_S, left_s=2 * LIMIT_S, note=note)])
        there.worker.line.close()
        began = time.monotonic()
        assert gone_at_ns(worker)
        assert time.monotonic() - began < LIMIT_S / 4


def test_a_lane_that_comes_when_its_time_is_over_is_refused_there(network: Network, tmp_path: Path) -> None:
    """What is sent to a host that does not answer arrives when the link is healed."""
    with reached(network, DAY_S, grace_s=20) as there:
        there.workers.read_clocks()
        there.host.cut()
        healing = threading.Timer(5, there.host.heal)
        healing.start()
        note = tmp_path / "note"
        [outcome] = there.workers.execute([lane(tmp_path, left_s=2, note=note)])
        healing.join()
    assert outcome.failure is not None
    assert "after its deadline" in outcome.failure.what
    assert outcome.clean
    assert not note.exists()


def appears(note: Path) -> None:
    until = time.monotonic() + LIMIT_S
    while not (note.exists() and note.read_text()):
        assert time.monotonic() < until, "the lane has not begun"
        time.sleep(0.01)


def test_signals_of_one_host_are_not_those_of_another(network: Network) -> None:
    """Of these hosts themselves: a process there is no process of a neighbour, and ends with its host."""
    one, other = network.host("one", 100), network.host("other", 200)
    process = one.start(["sleep", "60"])
    until = time.monotonic() + LIMIT_S
    while not one.processes() and time.monotonic() < until:
        time.sleep(0.01)
    assert (len(one.processes()), other.processes()) == (1, [])
    one.lose()
    assert process.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)
