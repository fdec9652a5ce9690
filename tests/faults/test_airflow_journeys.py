"""A connector that Airflow runs every two seconds while lines keep coming, and each process that can be killed is.

Afterwards every line is in the topic once, in the order of its file. A row's seconds are those from the kill until a
receipt is settled behind it.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from connect_core import ledger, stack
from connect_core.demo.killing import driver
from connect_core.ledger import Ledger
from connect_core.orchestration import names
from connect_core.orchestration.rest import Airflow
from connect_core.stack import postgresql
from tests.faults.rows import FaultRow
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault(costly=True), pytest.mark.timeout(900)]

HOSTS = 3
LINES_PER_S = 600
BULK = 60_000
LIMIT_S = 240.0
OPTIONS = stack.Options(well_known_ports=False, airflow={"AIRFLOW__CORE__PARALLELISM": "4"})


@pytest.fixture(scope="module")
def home(worker_folder: Path) -> Iterator[Path]:
    """A whole stack under its supervisor, of this module alone: its parts are killed."""
    place = worker_folder / "airflow-journeys" / ".waybill"
    running = stack.up(place, options=OPTIONS)
    ledger.upgrade(running.database_url)
    yield place
    stack.down(place)
    postgresql.forget(place)


@dataclass
class Journey:
    """Lines that grow in three files, and the connector that moves them."""

    site: Site
    name: str
    counts: list[int] = field(default_factory=lambda: [0] * HOSTS)
    _writing: threading.Lock = field(default_factory=threading.Lock)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @property
    def folder(self) -> Path:
        return self.site.folder / self.name

    def begin(self, tasks: int = 1) -> None:
        self.folder.mkdir()
        self.append(30)
        self.apply(tasks)
        self.wait(lambda: self.settled() > 0, "the first receipt")
        self._thread = threading.Thread(target=self._trickle, daemon=True)
        self._thread.start()

    def apply(self, tasks: int) -> None:
        self.site.apply(
            self.name,
            {
                "source": {"file": {"path": f"{self.name}/*.log"}},
                "sink": {
                    "rocketmq": {"name_servers": self.site.name_servers[0], "topic": self.site.topic, "queues": HOSTS}
                },
                "schedule": {"every": "2s"},
                "tasks": tasks,
            },
        )

    def append(self, lines: int) -> None:
        with self._writing:
            for host in range(HOSTS):
                first = self.counts[host]
                self.counts[host] += lines // HOSTS
                text = "".join(f"{host} {number}\n" for number in range(first, self.counts[host]))
                with (self.folder / f"{host}.log").open("a") as log:
                    log.write(text)

    def _trickle(self) -> None:
        while not self._over.wait(0.1):
            self.append(LINES_PER_S // 10)

    def settled(self) -> int:
        """The newest settled range; 0 when there is none."""
        with Ledger.open(self.site.database_url) as opened:
            found = opened.receipts(opened.connector(self.name).uid, limit=1)
        return found[0].id if found else 0

    def moves_again(self, row: FaultRow, behind: int) -> None:
        self.wait(lambda: self.settled() > behind, "a receipt behind the fault")
        row.moves_again()

    def wait(self, holds: Callable[[], bool], for_what: str) -> None:
        until = time.monotonic() + LIMIT_S
        while True:
            try:
                if holds():
                    return
            except Exception as error:  # a server that is away: it comes back, or the time is over
                last: object = error
            else:
                last = ""
            assert time.monotonic() < until, f"{for_what}: not within {LIMIT_S:.0f} s {last}"
            time.sleep(0.1)

    def check(self, row: FaultRow) -> None:
        """No more lines come; what is left arrives; everything is compared."""
        self._over.set()
        assert self._thread is not None
        self._thread.join()
        self.wait(lambda: len(self.site.messages()) >= sum(self.counts), "every line in the topic")
        arrived: list[list[int]] = [[] for _ in range(HOSTS)]
        for body in self.site.messages():
            host, number = body.split()
            arrived[int(host)].append(int(number))
        row.lost = sum(len(set(range(count)) - set(seen)) for count, seen in zip(self.counts, arrived, strict=True))
        row.repeated = sum(len(seen) - len(set(seen)) for seen in arrived)
        row.reordered = sum(left > right for seen in arrived for left, right in pairwise(seen))
        with Ledger.open(self.site.database_url) as opened:
            settled = opened.receipts(opened.connector(self.name).uid, limit=None)
        row.surplus = sum(one.receipt.surplus for one in settled)
        assert (row.lost, row.repeated, row.reordered, row.surplus) == (0, 0, 0, 0)


@pytest.fixture
def journey(home: Path) -> Iterator[Journey]:
    running = stack.load(home)
    assert running is not None
    site = Site(home.parent, f"t-{uuid.uuid4().hex[:12]}", [running.name_servers], running.database_url)
    made = Journey(site, f"lines-{uuid.uuid4().hex[:8]}")
    yield made
    made._over.set()
    site.waybill("connectors", "delete", made.name, "--yes")


def _driver(journey: Journey) -> int:
    """The task process, in the middle of a range."""
    journey.append(BULK)
    found: list[int] = []
    with Ledger.open(journey.site.database_url) as opened:
        journey.wait(lambda: bool(found.append(pid) if (pid := driver(opened, journey.name)) else found), "a run")
    return found[0]


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _workers(home: Path) -> list[int]:
    """Processes of the engine that work on a lane: those that have one of our lock files open."""
    engine = _pid(home, stack.ENGINE)
    folder = f"{home}/locks/"
    return [pid for pid in _session_of(engine) if any(path.startswith(folder) for path in _open_files(pid))]


def _session_of(leader: int) -> Iterator[int]:
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader:
            yield int(entry.name)


def _open_files(pid: int) -> Iterator[str]:
    try:
        for descriptor in os.listdir(f"/proc/{pid}/fd"):
            yield os.readlink(f"/proc/{pid}/fd/{descriptor}")
    except OSError:
        return


def _pid(home: Path, part: str) -> int:
    running = stack.load(home)
    assert running is not None
    return running.part(part).process.pid


def test_the_task_process_killed(home: Path, journey: Journey, row: FaultRow) -> None:
    row.describe(
        "SIGKILL of Airflow's task process, in mid-range", where="file → RocketMQ, Airflow", database="PostgreSQL"
    )
    journey.begin()
    _kill(journey, row, lambda: _driver(journey))


def test_the_supervisor_of_the_task_killed(home: Path, journey: Journey, row: FaultRow) -> None:
    row.describe(
        "SIGKILL of the task's supervisor, in mid-range", where="file → RocketMQ, Airflow", database="PostgreSQL"
    )
    journey.begin()
    _kill(journey, row, lambda: _parent(_driver(journey)))


def test_a_worker_killed(home: Path, journey: Journey, row: FaultRow) -> None:
    row.describe("SIGKILL of a worker, in mid-range", where="file → RocketMQ, Airflow", database="PostgreSQL")
    journey.begin()

    def worker() -> int:
        _driver(journey)
        found: list[int] = []
        journey.wait(lambda: bool(found.extend(_workers(home)) or found), "a worker")
        return found[0]

    _kill(journey, row, worker)


@pytest.mark.parametrize("part", [stack.ENGINE, *stack.AIRFLOW_PARTS, stack.POSTGRESQL])
def test_a_part_of_the_stack_killed(home: Path, journey: Journey, row: FaultRow, part: str) -> None:
    row.describe(f"SIGKILL of the {part}, in mid-range", where="file → RocketMQ, Airflow", database="PostgreSQL")
    journey.begin()

    def pid() -> int:
        _driver(journey)
        return _pid(home, part)

    _kill(journey, row, pid)


def test_everything_killed_and_started_again(home: Path, journey: Journey, row: FaultRow) -> None:
    row.describe("SIGKILL of every part at once, then dev up", where="file → RocketMQ, Airflow", database="PostgreSQL")
    journey.begin()
    _driver(journey)
    running = stack.load(home)
    assert running is not None
    assert running.supervisor is not None
    behind = journey.settled()
    row.strikes()
    for process in [running.supervisor, *(part.process for part in running.parts.values())]:
        for pid in _session_of(process.pid):
            os.kill(pid, signal.SIGKILL)
    stack.up(home, options=OPTIONS)
    journey.moves_again(row, behind)
    journey.check(row)


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 1)])
def test_the_number_of_tasks_changed_in_mid_run(
    home: Path, journey: Journey, row: FaultRow, before: int, after: int
) -> None:
    row.describe(f"tasks {before} → {after} under load", where="file → RocketMQ, Airflow", database="PostgreSQL")
    journey.begin(before)
    _driver(journey)
    behind = journey.settled()
    row.strikes()
    journey.apply(after)

    def moved_by_the_new_version() -> bool:
        with Ledger.open(journey.site.database_url) as opened:
            uid = opened.connector(journey.name).uid
            newest = opened.receipts(uid, limit=1)[0].id
            return opened.assignment(uid).tasks == after and newest > behind

    journey.wait(moved_by_the_new_version, "receipts of the new tasks")
    row.moves_again()
    journey.check(row)


def test_paused_and_resumed_in_mid_run(home: Path, journey: Journey, row: FaultRow) -> None:
    row.describe(
        "paused by Airflow's switch in mid-run, then resumed", where="file → RocketMQ, Airflow", database="PostgreSQL"
    )
    journey.begin()
    _driver(journey)
    row.strikes()
    with _session(home) as client:
        client.pause(names.live_dag(journey.name), True)
        journey.wait(lambda: not _is_at_work(journey), "the run to end")
        still = journey.settled()
        time.sleep(3)  # longer than the schedule's distance: nothing begins meanwhile
        assert journey.settled() == still
        client.pause(names.live_dag(journey.name), False)
    journey.moves_again(row, still)
    journey.check(row)


def _is_at_work(journey: Journey) -> bool:
    with Ledger.open(journey.site.database_url) as opened:
        return bool(opened.live_leases(opened.connector(journey.name).uid))


def _kill(journey: Journey, row: FaultRow, found: Callable[[], int]) -> None:
    pid = found()
    behind = journey.settled()
    row.strikes()
    os.kill(pid, signal.SIGKILL)
    journey.moves_again(row, behind)
    journey.check(row)


def _session(home: Path) -> Any:
    running = stack.load(home)
    assert running is not None
    return Airflow(running.airflow_url, running.airflow_user, running.airflow_password)
