"""Tasks in pods, as Airflow's KubernetesExecutor has them: each with an empty home at one path of one node, which goes
with it, and one ledger in PostgreSQL.

Their node counts as one boot of one host, so that nothing but the folder of the home tells two pods apart.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from connect_core.stack import ports
from tests.faults.kit.processes import wait_for
from tests.faults.rows import FaultRow
from tests.hosts import pods, relay
from tests.hosts.copied import document, feed, require_copied
from tests.hosts.pods import Pod
from tests.servers import SESSION, RocketMQ
from tests.site import SETTINGS, Site, new_site

pytestmark = [pytest.mark.server, pytest.mark.fault, pytest.mark.timeout(600)]

NAME = "copied"
RECORDS = 3_000
LEASE_S = 20
OF_TESTS = {
    **SETTINGS,
    "WAYBILL_LEASE_TTL_S": f"{LEASE_S}s",
    "WAYBILL_TESTING": "1",
    SESSION: os.environ.get(SESSION, ""),
}
"""Beside what the template says."""
STEPS = ["planned", "batch-written", "executed"]


@dataclass
class Cluster:
    """What all pods work on, as this machine sees it."""

    site: Site
    folder: Path
    url: str
    made: int = 0

    @property
    def connection(self) -> str:
        return f"rocketmq: {{name_servers: {self.site.name_servers}}}\n"

    def pod(self, fault: str = "", run_id: str = "manual__1") -> Pod:
        self.made += 1
        return pods.start(
            self.folder / f"pod-{self.made}",
            [str(Path(pods.__file__).with_name("pod_task.py")), NAME, run_id],
            {"waybill": {"database-url": self.url}},
            {"waybill-connections": {"here.yaml": self.connection}},
            {**OF_TESTS, SESSION: os.environ[SESSION]},
            fault,
        )

    def finished(self, pod: Pod) -> None:
        """It has ended well, and its volumes are gone."""
        out, _ = pod.process.communicate(timeout=240)
        assert pod.process.returncode == 0, out
        print(out)
        pod.home.rename(pod.home.with_name("gone"))

    def taken_over(self) -> list[dict[str, object]]:
        """By the newest run: how it could take leases that nobody had released."""
        taken: list[dict[str, object]] = self.site.json("runs", NAME)["runs"][0]["taken_over"]
        return taken


@pytest.fixture
def cluster(
    tmp_path: Path, rocketmq: RocketMQ, postgres_url: str, new_database: Callable[[str], str]
) -> Iterator[Cluster]:
    if why := pods.why_not():
        pytest.skip(why)
    url = new_database(postgres_url)
    database, port = make_url(url), ports.free()
    command = [sys.executable, relay.__file__, "127.0.0.1", str(port), f"{database.query['host']}/.s.PGSQL.5432"]
    passing = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert passing.stdout is not None
    assert passing.stdout.readline() == b"ready\n"
    (tmp_path / "machine").mkdir()
    site = new_site(tmp_path / "machine", url, rocketmq=None)
    site.name_servers = rocketmq.name_servers
    site.settings = {**OF_TESTS, "WAYBILL_ENGINE": "inline"}
    there = database.set(host="127.0.0.1", port=port, query={}).render_as_string(hide_password=False)
    try:
        yield Cluster(site, tmp_path, there)
    finally:
        passing.kill()
        passing.wait()
        passing.stdout.close()


def test_a_pod_is_no_root_and_writes_to_its_volumes_alone(tmp_path: Path) -> None:
    if why := pods.why_not():
        pytest.skip(why)
    words = ["/", "/opt/airflow", "/opt/waybill", "/opt/waybill/conf/engines", "/opt/waybill/.waybill", "/tmp"]
    tried = "import os, sys; print(os.getuid(), [path for path in sys.argv[1:] if os.access(path, os.W_OK)])"
    secrets = {"waybill": {"database-url": "postgresql://ledger.example/waybill"}}
    pod = pods.start(tmp_path / "pod", ["-c", tried, *words], secrets, {}, {SESSION: os.environ[SESSION]})
    out, _ = pod.process.communicate(timeout=60)
    assert out == "50000 ['/opt/waybill/.waybill', '/tmp']\n"


@pytest.mark.fault(costly=True)
def test_pods_one_after_the_other_continue_from_the_ledger_without_waiting(cluster: Cluster) -> None:
    """Each is a user that is not root, on a read-only root; the document names a connection of the ConfigMap."""
    site = cluster.site
    connection = site.folder / "conf" / "connections" / "here.yaml"
    connection.parent.mkdir(parents=True)
    connection.write_text(cluster.connection)
    ends = document(site)
    for end in (ends["source"]["rocketmq"], ends["sink"]["rocketmq"]):
        del end["name_servers"]
        end["connection"] = "here"
    feed(site, 0, RECORDS)
    site.apply(NAME, ends)
    for begun in range(1, 4):
        cluster.finished(cluster.pod(run_id=f"manual__{begun}"))
        assert cluster.taken_over() == []
        require_copied(site, NAME, begun * RECORDS)
        feed(site, begun * RECORDS, (begun + 1) * RECORDS)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.fault(costly=True)
def test_a_pod_that_is_lost_with_its_home_is_finished_by_the_next_one_after_a_time_to_live(
    cluster: Cluster, step: str, row: FaultRow
) -> None:
    row.describe(f"pod lost with its home, at {step}", where="RocketMQ → RocketMQ", database="PostgreSQL")
    site = cluster.site
    feed(site, 0, RECORDS)
    site.apply(NAME, document(site))
    lost = cluster.pod(step)
    taken = lost.home / "faults" / f"{step}.taken"
    wait_for(lambda: taken.exists() or lost.process.poll() is not None, f"a process at {step}")
    assert taken.exists(), lost.process.communicate()[0]
    row.strikes()
    lost.lose()
    next_one = cluster.pod()
    cluster.finished(next_one)
    row.moves_again()
    took = cluster.taken_over()[0]
    assert took["by"] == "silence"
    assert LEASE_S <= float(str(took["waited_s"])) < 2 * LEASE_S
    require_copied(site, NAME, RECORDS, row)
    feed(site, RECORDS, 2 * RECORDS)
    cluster.finished(cluster.pod(run_id="manual__2"))
    require_copied(site, NAME, 2 * RECORDS, row)


def test_a_pod_that_is_stopped_settles_what_is_open_and_the_next_one_does_not_wait(cluster: Cluster) -> None:
    """As an eviction or a node that is drained stops it: within its terminationGracePeriodSeconds."""
    site = cluster.site
    feed(site, 0, RECORDS)
    site.apply(NAME, {**document(site), "schedule": {"continuous": True, "window": "10m"}})
    staying = cluster.pod()
    wait_for(lambda: site.json("receipts", NAME)["receipts"], "a receipt of the pod")
    feed(site, RECORDS, 2 * RECORDS)
    began = time.monotonic()
    staying.terminate()
    cluster.finished(staying)
    assert time.monotonic() - began < pods.template()["spec"]["terminationGracePeriodSeconds"]
    site.apply(NAME, document(site))
    cluster.finished(cluster.pod(run_id="manual__2"))
    assert cluster.taken_over() == []
    require_copied(site, NAME, 2 * RECORDS)
