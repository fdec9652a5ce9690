"""Runs as Spark applications of their own, on this host and on a standalone cluster: the same receipts as with the
resident engine, and SIGKILL of every process that such a run has."""

from __future__ import annotations

import shutil
import signal
from collections import defaultdict
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
import yaml

from tests.faults.kit import processes
from tests.faults.kit.checker import EXACT
from tests.faults.kit.cluster import Cluster
from tests.faults.kit.journeys import (
    TRY_AGAIN,
    Inward,
    Journey,
    Outward,
    receipts_of,
    run_until_done,
    settled_up,
)
from tests.faults.kit.topics import JavaReader
from tests.faults.rows import FaultRow
from tests.servers import wait_until_stopped
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault, pytest.mark.timeout(900)]

COSTLY = pytest.mark.fault(costly=True)
WAYS = {"in": Inward, "out": Outward}
LIMIT_S = 180.0
"""For a whole application on a loaded machine: a JVM, executors, Python workers."""
UNREACHABLE = 3
ENDS = {"command": (-signal.SIGKILL,), "daemon": (0, *TRY_AGAIN)}
"""Of a run after its victim is gone. Workers outlive the fork server that started them, and may finish."""
MakeSite = Callable[..., Site]


@pytest.fixture
def on(request: pytest.FixtureRequest) -> Callable[[Site, str], None]:
    """Makes `mine` the engine of a site: a Spark application on this host, or on the cluster."""

    def choose(site: Site, place: str) -> None:
        engine = {"kind": "submit", "master": "local[2]"}
        if place == "cluster":
            cluster: Cluster = request.getfixturevalue("cluster")
            engine |= {
                "master": cluster.address,
                "conf": {"spark.executor.memory": "512m", "spark.executor.cores": "2"},
            }
        folder = site.folder / "conf" / "engines"
        folder.mkdir(parents=True)
        (folder / "mine.yaml").write_text(yaml.safe_dump(engine))
        site.settings["WAYBILL_ENGINE"] = "mine"

    return choose


def sums(journey: Journey) -> dict[object, tuple[int, int]]:
    """Records and digest of each partition: digests of its ranges add up, wherever a range was cut."""
    found: dict[object, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for receipt in receipts_of(journey):
        records, digest = found[receipt["partition"]]
        more = int(str(receipt["digest_read"]).rpartition(":")[2], 16)
        found[receipt["partition"]] = (records + int(str(receipt["read"])), (digest + more) % 2**64)
    return dict(found)


@COSTLY
@pytest.mark.parametrize("place", ["local", "cluster"])
def test_an_application_gives_the_receipts_of_the_resident_engine(
    site_on: MakeSite, java_reader: JavaReader, on: Callable[[Site, str], None], place: str, row: FaultRow
) -> None:
    """The same connector, run twice from the same ledger: once by each engine."""
    site = site_on("SQLite")
    journey = Outward(site, java_reader)
    on(site, place)
    row.describe(f"none: a Spark application ({place}) instead of the resident engine", where=journey.where)
    before = site.folder / "before"
    shutil.copytree(site.home, before, ignore=shutil.ignore_patterns("locks"))
    row.strikes()
    run_until_done(journey, limit_s=LIMIT_S)
    row.moves_again()
    assert settled_up(journey, row) == EXACT
    by_application, file = sums(journey), journey.path.read_bytes()
    assert all(run["engine"].startswith("submit, Spark ") for run in site.json("runs", journey.name)["runs"])
    journey.path.unlink()
    for path in site.home.glob("ledger.db*"):
        path.unlink()
    for path in before.glob("ledger.db*"):
        shutil.copy(path, site.home)
    site.waybill("run", journey.name, "--engine", "spark")
    assert sums(journey) == by_application
    assert sorted(journey.path.read_bytes().splitlines()) == sorted(file.splitlines())


class Application:
    """The processes of one run, while one of its workers stands still between two batches."""

    def __init__(self, journey: Journey, passes: int = 0) -> None:
        site = journey.site
        site.fault("batch-written", "stop", passes)
        self.command = site.start("run", journey.name)
        taken = site.home / "faults" / "batch-written.taken"
        processes.wait_for(lambda: taken.exists() or self.command.poll() is not None, "a worker's batch", LIMIT_S)
        assert taken.exists(), self.command.communicate()
        self.worker = int(taken.read_text())
        wait_until_stopped(self.worker)
        self.daemon = parent_of(self.worker)
        self.executor = parent_of(self.daemon)
        (self.jvm,) = (
            pid for pid in processes.children_of(self.command.pid) if "org.apache.spark" in command_line(pid)
        )
        (self.driver,) = (pid for pid in processes.children_of(self.jvm) if "replicate.py" in command_line(pid))

    def ended(self) -> int:
        """The exit code of the command, once it and its application are gone."""
        code = processes.ended(self.command, LIMIT_S)
        processes.wait_for(lambda: not processes.is_alive(self.driver), "the end of the driver")
        return code


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


VICTIMS = {
    "local": ("worker", "daemon", "driver", "jvm", "command"),
    "cluster": ("worker", "daemon", "executor", "driver", "command"),
}


def _kills() -> list[object]:
    """Every victim; directions and databases take turns."""
    named = [(place, victim) for place, victims in VICTIMS.items() for victim in victims]
    return [
        pytest.param(place, victim, way, database, id=f"{place}-{victim}-{way}-{database}", marks=COSTLY)
        for number, (place, victim) in enumerate(named)
        for way, database in [list(product(WAYS, ("PostgreSQL", "SQLite")))[number % 4]]
    ]


@pytest.mark.parametrize(("place", "victim", "way", "database"), _kills())
def test_a_process_of_an_application_that_is_killed_loses_and_repeats_nothing(
    site_on: MakeSite,
    java_reader: JavaReader,
    on: Callable[[Site, str], None],
    place: str,
    victim: str,
    way: str,
    database: str,
    row: FaultRow,
) -> None:
    """In the middle of a range. The worker that stood still goes on right after it, as one that nobody has told."""
    site = site_on(database)
    journey: Journey = WAYS[way](site, java_reader)
    on(site, place)
    row.describe(f"Spark application ({place}): SIGKILL of its {victim}", where=journey.where, database=database)
    application = Application(journey)
    row.strikes()
    processes.kill(getattr(application, victim) if victim != "command" else application.command.pid)
    processes.go_on(application.worker)
    assert application.ended() in ENDS.get(victim, TRY_AGAIN)
    run_until_done(journey, limit_s=LIMIT_S)
    row.moves_again()
    assert settled_up(journey, row) == EXACT


@COSTLY
def test_a_run_goes_on_without_its_master_and_the_next_one_says_that_there_is_none(
    site_on: MakeSite, java_reader: JavaReader, on: Callable[[Site, str], None], cluster: Cluster, row: FaultRow
) -> None:
    site = site_on("PostgreSQL")
    journey = Inward(site, java_reader)
    on(site, "cluster")
    row.describe("Spark application (cluster): SIGKILL of the master", where=journey.where, database="PostgreSQL")
    application = Application(journey)
    assert cluster.master is not None
    row.strikes()
    processes.kill(cluster.master.pid)
    processes.go_on(application.worker)
    assert application.ended() == 0
    row.moves_again()
    assert settled_up(journey, row) == EXACT
    journey.feed(journey.records, journey.records + 10)  # type: ignore[attr-defined]
    lonely = site.start("run", journey.name)
    _, told = lonely.communicate(timeout=LIMIT_S)
    assert (lonely.returncode, "The Spark master does not answer" in told) == (UNREACHABLE, True), told
    cluster.start()
    run_until_done(journey, limit_s=LIMIT_S)
    assert settled_up(journey, row) == EXACT
