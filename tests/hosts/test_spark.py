"""A Spark application whose driver is on one host and whose executors are on another: standalone, client mode.

From topic to topic of a real broker, which the other host reaches over the link that can be cut.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyspark
import pytest
import yaml

from connect_core.stack import jars, java, ports
from tests.faults.kit.processes import ended, wait_for
from tests.faults.rows import FaultRow
from tests.hosts.copied import document, feed, reach_rocketmq, require_copied
from tests.hosts.hosts import Host, Network
from tests.servers import RocketMQ
from tests.site import Site, new_site

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]

COSTLY = pytest.mark.fault(costly=True)
WHERE = "RocketMQ → RocketMQ, executors on another host"

AHEAD_S = 90 * 86_400
RECORDS = 3_000
TRY_AGAIN = (1, 3, 4)
LEASE_S = 15
SHORT = {
    "WAYBILL_QUANTUM_S": "3s",
    "WAYBILL_LEASE_TTL_S": f"{LEASE_S}s",
    "WAYBILL_LEASE_MARGIN_S": "4s",
    "WAYBILL_SEND_TIMEOUT_S": "3s",
    "WAYBILL_ENGINE": "hosts",
}
PRIVATE = """
spark.authenticate true
spark.authenticate.secret known-to-all-of-them
spark.network.crypto.enabled true
"""
_DEPLOY = "org.apache.spark.deploy"


@dataclass
class Cluster:
    """The master on this machine, its one worker on another host."""

    network: Network
    there: Host
    folder: Path
    port: int
    started: list[subprocess.Popen[bytes]]

    @property
    def master(self) -> str:
        return f"spark://{self.network.address}:{self.port}"

    def start(self) -> None:
        here = self.network.address
        self.start_on(None, "master", f"{_DEPLOY}.master.Master", "--host", here, "--port", str(self.port))
        wait_for(lambda: "elected leader" in self.log("master"), "a Spark master", 120)
        self.start_worker()

    def start_worker(self) -> None:
        known = self.log("master").count("Registering worker")
        where = ("--host", self.there.address, "--work-dir", str(self.folder / "work"))
        self.start_on(self.there, "worker", f"{_DEPLOY}.worker.Worker", *where, "--cores", "2", self.master)
        wait_for(lambda: self.log("master").count("Registering worker") > known, "a Spark worker", 120)

    def start_on(self, host: Host | None, name: str, program: str, *arguments: str) -> None:
        command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), program, *arguments]
        environment = {
            **os.environ,
            "JAVA_HOME": str(java.find(jars.cache_folder()).parent.parent),
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "SPARK_CONF_DIR": str(self.folder),
            "SPARK_LOCAL_IP": host.address if host else self.network.address,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dspark.worker.timeout=10",
            "WAYBILL_TESTING": "1",
        }
        with (self.folder / f"{name}.log").open("ab") as log:
            start = host.start if host else subprocess.Popen
            self.started.append(start([*command, "--webui-port", "0"], env=environment, stdout=log, stderr=log))

    def log(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""


@dataclass
class Copying:
    """Each queue of a topic to the queue of its number in another topic, by a run on two hosts."""

    site: Site
    cluster: Cluster
    name: str = "across-hosts"

    @property
    def there(self) -> Host:
        return self.cluster.there

    def start(self) -> subprocess.Popen[str]:
        return self.site.start("run", self.name)

    def require_copied(self, row: FaultRow | None = None) -> None:
        require_copied(self.site, self.name, RECORDS, row)


@contextmanager
def spark_on(network: Network, there: Host, folder: Path) -> Iterator[Cluster]:
    """Its files are in `folder`."""
    folder.mkdir()
    (folder / "spark-defaults.conf").write_text(PRIVATE)
    cluster = Cluster(network, there, folder, ports.free(), [])
    try:
        cluster.start()
        yield cluster
    finally:
        for process in cluster.started[:1]:
            process.kill()
            process.wait()


def site_beside(cluster: Cluster, folder: Path, rocketmq: RocketMQ) -> Site:
    """Its runs have their driver on this machine, and their executors in the cluster."""
    site = new_site(folder, f"sqlite:///{folder}/.waybill/ledger.db", None)
    site.name_servers = rocketmq.name_servers
    site.settings |= {**SHORT, "WAYBILL_DRIVER_ADDRESS": cluster.network.address, "WAYBILL_TESTING": "1"}
    site.settings |= {"SPARK_CONF_DIR": str(cluster.folder)}
    conf = {
        "spark.executor.memory": "512m",
        "spark.driver.host": cluster.network.address,
        "spark.driver.bindAddress": cluster.network.address,
        "spark.network.timeout": "60s",
    }
    engines = folder / "conf" / "engines"
    engines.mkdir(parents=True)
    engine = {"kind": "submit", "master": cluster.master, "conf": conf}
    (engines / "hosts.yaml").write_text(yaml.safe_dump(engine))
    return site


@pytest.fixture
def copying(network: Network, tmp_path: Path, rocketmq: RocketMQ) -> Iterator[Copying]:
    there = network.host("there", AHEAD_S)
    reach_rocketmq(network, there, rocketmq)
    with spark_on(network, there, tmp_path / "spark") as cluster:
        made = Copying(site_beside(cluster, tmp_path, rocketmq), cluster)
        feed(made.site, 0, RECORDS)
        made.site.apply(made.name, document(made.site))
        yield made


@COSTLY
def test_topics_are_copied_by_executors_on_another_host_whose_clock_is_months_ahead(copying: Copying) -> None:
    assert ended(copying.start()) == 0
    copying.require_copied()
    [run] = copying.site.json("runs", copying.name)["runs"]
    assert run["engine"].startswith("submit, Spark ")


@COSTLY
def test_plain_text_is_refused_before_anything_is_planned(copying: Copying) -> None:
    """Of the executors; the driver alone has Spark's own defaults then, and is not let in."""
    (copying.cluster.folder / "spark-defaults.conf").write_text("")
    for process in copying.cluster.started:
        process.kill()
        process.wait()
    copying.cluster.started.clear()
    copying.cluster.start()
    assert "not encrypted" in copying.site.waybill("run", copying.name, code=6)
    assert copying.site.json("receipts", copying.name)["receipts"] == []


@COSTLY
def test_files_are_refused_before_anything_is_planned(copying: Copying, tmp_path: Path) -> None:
    site = copying.site
    (tmp_path / "lines.log").write_text("one\ntwo\n")
    site.apply(
        "lines-in",
        {
            "source": {"file": {"path": str(tmp_path / "*.log")}},
            "sink": {"rocketmq": {"name_servers": site.name_servers, "topic": f"{site.topic}-lines"}},
        },
    )
    assert "source.file.path" in site.waybill("run", "lines-in", code=2)
    assert site.json("receipts", "lines-in")["receipts"] == []


def begun(site: Site, name: str) -> subprocess.Popen[str]:
    """A run, one of whose workers stands still at a batch that it has written."""
    site.fault("batch-written", "stop")
    taken = site.home / "faults" / "batch-written.taken"
    driver = site.start("run", name)
    wait_for(lambda: taken.exists() or driver.poll() is not None, "a worker at a batch", 180)
    assert taken.exists(), ended(driver)
    return driver


def finished_here(copying: Copying, row: FaultRow) -> list[dict[str, object]]:
    """By a run whose workers are all on this machine; how it could take the leases of the one before."""
    copying.site.settings |= {"WAYBILL_ENGINE": "inline"}
    assert ended(copying.start()) == 0
    row.moves_again()
    copying.require_copied(row)
    taken: list[dict[str, object]] = copying.site.json("runs", copying.name)["runs"][0]["taken_over"]
    return taken


@COSTLY
@pytest.mark.parametrize("fault", ["host lost", "link cut for good", "link cut and healed", "host paused"])
def test_what_happens_to_the_other_host_in_mid_lane_loses_and_repeats_nothing(
    copying: Copying, fault: str, row: FaultRow
) -> None:
    """The run ends at the deadline of its lanes, and releases its lease: the next one finishes at once what is open."""
    row.describe(f"worker's {fault}, in the middle of a lane", where=WHERE, database="SQLite")
    there, driver = copying.there, begun(copying.site, copying.name)
    row.strikes()
    if fault == "host lost":
        there.lose()
    elif fault == "host paused":
        there.pause()
        threading.Timer(LEASE_S + 3, there.go_on).start()
    else:
        there.cut()
        if fault == "link cut and healed":
            threading.Timer(LEASE_S / 2, there.heal).start()
    assert ended(driver) in TRY_AGAIN
    assert finished_here(copying, row) == []


@COSTLY
@pytest.mark.parametrize("fault", ["killed", "stopped past its lease, then woken"])
def test_a_driver_with_lanes_elsewhere_is_waited_for_and_changes_nothing_when_it_wakes_up(
    copying: Copying, fault: str, row: FaultRow
) -> None:
    """No lock tells of its lanes: the next run waits a whole time to live."""
    row.describe(f"driver with lanes on another host {fault}", where=WHERE, database="SQLite")
    driver = begun(copying.site, copying.name)
    chain = [driver.pid, *(child.pid for child in psutil.Process(driver.pid).children(recursive=True))]
    row.strikes()
    if fault == "killed":
        driver.kill()
    else:
        for pid in chain:
            os.kill(pid, signal.SIGSTOP)
    taken = finished_here(copying, row)
    assert {one["by"] for one in taken} == {"silence"}
    assert all(float(str(one["waited_s"])) >= LEASE_S for one in taken)
    for pid in chain if fault != "killed" else ():
        os.kill(pid, signal.SIGCONT)
    assert ended(driver) != 0
    copying.require_copied(row)
