"""A connector that Airflow runs on its schedule, and what a test does meanwhile: look at it, wait for it, break it.

Everything it waits for may be away for a while, since tests kill servers: it comes back, or the time is over.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from connect_core import stack
from connect_core.demo.killing import driver
from connect_core.ledger import Ledger
from connect_core.orchestration.rest import Airflow
from tests.faults.rows import FaultRow
from tests.site import Site

Found = TypeVar("Found")

HOSTS = 3
LINES_PER_S = 600
BULK = 60_000
LIMIT_S = 240.0
OPTIONS = stack.Options(well_known_ports=False, airflow={"AIRFLOW__CORE__PARALLELISM": "4"})


def site_of(home: Path) -> Site:
    """The home of a running stack, with a topic of its own."""
    running = running_at(home)
    return Site(home.parent, f"t-{uuid.uuid4().hex[:12]}", [running.name_servers], running.database_url)


def running_at(home: Path) -> stack.Stack:
    running = stack.load(home)
    assert running is not None
    return running


def client_of(home: Path) -> AbstractContextManager[Airflow]:
    running = running_at(home)
    return Airflow(running.airflow_url, running.airflow_user, running.airflow_password)


def wait_for(found: Callable[[], Found], what: str) -> Found:
    """The first answer that is not empty. A server that is away meanwhile is no failure."""
    until = time.monotonic() + LIMIT_S
    while True:
        last: object = ""
        try:
            if answer := found():
                return answer
        except Exception as error:  # whatever a client says of a server that was killed
            last = error
        assert time.monotonic() < until, f"{what}: not within {LIMIT_S:.0f} s {last}"
        time.sleep(0.1)


@dataclass
class Scheduled:
    """One connector by its name, as the ledger knows it."""

    site: Site
    name: str

    def settled(self) -> int:
        """The newest settled range; 0 when there is none."""
        with Ledger.open(self.site.database_url) as opened:
            found = opened.receipts(opened.connector(self.name).uid, limit=1)
        return found[0].id if found else 0

    def moves_again(self, row: FaultRow, behind: int) -> None:
        wait_for(lambda: self.settled() > behind, "a receipt behind the fault")
        row.moves_again()

    def newest_run(self) -> str:
        """Run ids sort by the start of the run."""
        with Ledger.open(self.site.database_url) as opened:
            return opened.runs(opened.connector(self.name).uid, limit=1)[0].id

    def settled_by(self) -> str:
        """The run whose receipt is the newest."""
        with Ledger.open(self.site.database_url) as opened:
            return opened.receipts(opened.connector(self.name).uid, limit=1)[0].run_id

    def is_at_work(self) -> bool:
        with Ledger.open(self.site.database_url) as opened:
            return bool(opened.live_leases(opened.connector(self.name).uid))

    def driver(self) -> int:
        """The task process that holds the lease now."""
        with Ledger.open(self.site.database_url) as opened:
            pid = wait_for(lambda: driver(opened, self.name), "a run")
        assert pid is not None
        return pid

    def duplicates(self) -> int:
        with Ledger.open(self.site.database_url) as opened:
            settled = opened.receipts(opened.connector(self.name).uid, limit=None)
        return sum(one.receipt.duplicates for one in settled)


@dataclass
class GrowingFiles(Scheduled):
    """Lines that grow in three files, and the connector that moves them into the topic of the site."""

    counts: list[int] = field(default_factory=lambda: [0] * HOSTS)
    _writing: threading.Lock = field(default_factory=threading.Lock)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @property
    def folder(self) -> Path:
        return self.site.folder / self.name

    def begin(self, **changed: Any) -> None:
        """Returns when the first lines are settled; from then on more come by themselves."""
        self.begin_still(**changed)
        self.flow()

    def begin_still(self, **changed: Any) -> None:
        """Returns when the first lines are settled; no more come but by `append`."""
        self.folder.mkdir()
        self.append(30)
        self.apply(**changed)
        wait_for(lambda: self.settled() > 0, "the first receipt")

    def flow(self) -> None:
        """Lines come all the time."""
        self._thread = threading.Thread(target=self._trickle, daemon=True)
        self._thread.start()

    def apply(self, topic: str = "", **changed: Any) -> None:
        sink = {"name_servers": self.site.name_servers[0], "topic": topic or self.site.topic, "queues": HOSTS}
        document = {
            "source": {"file": {"path": f"{self.name}/*.log"}},
            "sink": {"rocketmq": sink},
            "schedule": {"every": "2s"},
        }
        self.site.apply(self.name, {**document, **changed})

    def append(self, lines: int) -> None:
        with self._writing:
            for host in range(HOSTS):
                first = self.counts[host]
                self.counts[host] += lines // HOSTS
                text = "".join(f"{host} {number}\n" for number in range(first, self.counts[host]))
                with (self.folder / f"{host}.log").open("a") as log:
                    log.write(text)

    def in_mid_range(self) -> int:
        """Many lines come at once; returns when a task is in the middle of a range of them: its process."""
        self.append(BULK)
        return self.driver()

    def _trickle(self) -> None:
        while not self._over.wait(0.1):
            self.append(LINES_PER_S // 10)

    def dry_up(self) -> None:
        """No more lines come."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def outlives(self, row: FaultRow, pid: int) -> None:
        """The process is killed; work goes on by itself, and nothing is lost or repeated. Moves again does a run that
        was begun behind the fault: what one settles that outlived it proves nothing."""
        before = self.newest_run()
        row.strikes()
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: self.settled_by() > before, "a receipt of a run that was begun behind the fault")
        row.moves_again()
        self.check(row)

    def check(self, row: FaultRow) -> None:
        """No more lines come; what is left arrives; everything is compared."""
        self.dry_up()
        wait_for(lambda: len(self.site.messages()) >= sum(self.counts), "every line in the topic")
        self.compare(row, self.site.messages())
        row.duplicates = self.duplicates()
        assert (row.lost, row.repeated, row.reordered, row.duplicates) == (0, 0, 0, 0)

    def compare(self, row: FaultRow, bodies: list[bytes]) -> None:
        arrived: list[list[int]] = [[] for _ in range(HOSTS)]
        for body in bodies:
            host, number = body.split()
            arrived[int(host)].append(int(number))
        row.lost = sum(len(set(range(count)) - set(seen)) for count, seen in zip(self.counts, arrived, strict=True))
        row.repeated = sum(len(seen) - len(set(seen)) for seen in arrived)
        row.reordered = sum(left > right for seen in arrived for left, right in pairwise(seen))
