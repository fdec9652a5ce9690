"""Airflow's own supervisor in pods, as its KubernetesExecutor starts it: with the template's variables, and a token.

Scheduler, DAG processor and api-server run on this machine; the scheduler's executor starts pods of `tests.hosts.pods`
(`tests.hosts.pod_executor`). What Kubernetes itself does is not here.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from connect_core import ledger, stack
from connect_core.stack import ports, postgresql
from tests.faults.kit.airflow import site_of
from tests.faults.kit.processes import is_alive, wait_for
from tests.faults.rows import FaultRow
from tests.hosts import pods, relay
from tests.hosts.copied import document, feed, require_copied
from tests.servers import SESSION
from tests.site import SETTINGS, Site

pytestmark = [pytest.mark.server, pytest.mark.fault(costly=True), pytest.mark.timeout(900)]

NAME = "copied"
RECORDS = 3_000
LEASE_S = 20
PARTS = (stack.NAME_SERVER, stack.BROKER, stack.POSTGRESQL, stack.API_SERVER, stack.SCHEDULER, stack.DAG_PROCESSOR)


@pytest.fixture(scope="module")
def machine(worker_folder: Path) -> Iterator[Path]:
    """The home of what runs here. Its folder `pods` has a folder for each pod."""
    if why := pods.why_not():
        pytest.skip(why)
    home = worker_folder / "kubernetes" / ".waybill"
    folder = home.parent / "pods"
    folder.mkdir(parents=True)
    settings = {
        "AIRFLOW__CORE__EXECUTOR": "tests.hosts.pod_executor.PodExecutor",
        # An api-server on a loaded machine takes long for its first answer.
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
        "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT": "240",
        pods.OF_EXECUTOR: str(folder),
    }
    running = stack.up(home, parts=PARTS, supervise=False, options=stack.Options(False, airflow=settings))
    ledger.upgrade(running.database_url)
    url, port = make_url(running.database_url), ports.free()
    command = [sys.executable, relay.__file__, "127.0.0.1", str(port), f"{url.query['host']}/.s.PGSQL.5432"]
    passing = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert passing.stdout is not None
    assert passing.stdout.readline() == b"ready\n"
    there = url.set(host="127.0.0.1", port=port, query={}).render_as_string(hide_password=False)
    api = running.part(stack.API_SERVER).ports["http"]
    of_tests = {
        **SETTINGS,
        "WAYBILL_LEASE_TTL_S": f"{LEASE_S}s",
        "WAYBILL_TESTING": "1",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{api}/execution/",
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
        SESSION: os.environ[SESSION],
    }
    given = {"secrets": {"waybill": {"database-url": there}}, "extra": of_tests}
    (folder / "given.json").write_text(json.dumps(given))
    yield home
    stack.down(home)
    postgresql.forget(home)
    passing.kill()
    passing.wait()
    passing.stdout.close()


@dataclass
class Pods:
    site: Site
    folder: Path

    def work(self, records: int) -> None:
        wait_for(lambda: self.settled() >= records, f"{records} records settled", 240)

    def settled(self) -> int:
        return sum(receipt["read"] for receipt in self.site.json("receipts", NAME, "--last", "1000")["receipts"])

    def taken_over(self) -> list[dict[str, object]]:
        """How runs that have ended could take leases that nobody had released."""
        return [one for run in self.site.json("runs", NAME)["runs"] for one in run["taken_over"]]

    def standing_still(self, step: str) -> str:
        """The name of the pod that does; empty while none does."""
        found = list(self.folder.glob(f"pod-*/waybill-home/faults/{step}.taken"))
        return found[0].parents[2].name if found else ""

    def strike(self, name: str, sign: signal.Signals) -> None:
        os.kill(pods.first_of(int((self.folder / f"{name}.pid").read_text())), sign)


@pytest.fixture
def tasks(machine: Path) -> Iterator[Pods]:
    site = site_of(machine)
    yield Pods(site, machine.parent / "pods")
    site.waybill("connectors", "delete", NAME, "--yes")


def test_airflow_tries_a_lost_pod_again_in_another_one_and_loses_and_repeats_nothing(
    tasks: Pods, row: FaultRow
) -> None:
    row.describe("pod lost with its home, in the middle of a task", where="RocketMQ → RocketMQ", database="PostgreSQL")
    site, step = tasks.site, "batch-written"
    feed(site, 0, RECORDS)
    site.apply(NAME, {**document(site), "schedule": {"every": "2s"}})
    tasks.work(2 * RECORDS)
    asked = tasks.folder / "fault"
    asked.write_text(step)
    feed(site, RECORDS, 2 * RECORDS)
    wait_for(lambda: tasks.standing_still(step), "a pod in the middle of a batch", 180)
    asked.unlink()
    lost = tasks.standing_still(step)
    row.strikes()
    tasks.strike(lost, signal.SIGKILL)
    shutil.rmtree(tasks.folder / lost / "waybill-home")
    tasks.work(4 * RECORDS)
    row.moves_again()
    wait_for(tasks.taken_over, "the end of the run that has taken over")
    [taken] = tasks.taken_over()
    assert taken["by"] == "silence"
    assert float(str(taken["waited_s"])) >= LEASE_S
    require_copied(site, NAME, 2 * RECORDS, row)


def test_a_pod_that_is_stopped_tells_airflow_that_its_task_has_ended(tasks: Pods) -> None:
    """SIGTERM goes from the first process to the supervisor and from there to the task alone."""
    site = tasks.site
    feed(site, 0, RECORDS)
    site.apply(NAME, {**document(site), "schedule": {"continuous": True, "window": "10m"}})
    tasks.work(2 * RECORDS)
    at_work = sorted(tasks.folder.glob("pod-*.pid"))[-1]
    tasks.strike(at_work.stem, signal.SIGTERM)
    limit_s = pods.template()["spec"]["terminationGracePeriodSeconds"]
    wait_for(lambda: not is_alive(int(at_work.read_text())), "the end of the pod", limit_s)
    feed(site, RECORDS, 2 * RECORDS)
    tasks.work(4 * RECORDS)
    assert len(site.json("runs", NAME)["runs"]) > 1
    assert tasks.taken_over() == []
    require_copied(site, NAME, 2 * RECORDS)
