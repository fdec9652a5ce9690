"""Airflow with CeleryExecutor: its workers on two hosts, a home on each, one ledger in PostgreSQL.

Scheduler, DAG processor, api-server and Redis run on this machine. A worker's host is lost, paused, or its processes
are killed in the middle of a task: data move again on the other one when Airflow has noticed, and a whole time to live
is over. Its limits are those of conf/airflow.env: 20 s without a heartbeat, looked for every 2 s.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from connect_core import ledger, stack
from connect_core.stack import ports, postgresql
from tests.faults.kit.airflow import running_at, site_of
from tests.faults.kit.processes import wait_for
from tests.faults.rows import FaultRow
from tests.hosts import relay
from tests.hosts.copied import document, feed, reach_rocketmq, require_copied
from tests.hosts.hosts import Host, Network
from tests.servers import RocketMQ
from tests.site import SETTINGS, Site

pytestmark = [pytest.mark.server, pytest.mark.fault(costly=True), pytest.mark.timeout(900)]

NAME, QUEUE = "copied", "hosts"
DAY_S = 86_400
RECORDS = 3_000
LEASE_S = 20
RUNS = {**SETTINGS, "WAYBILL_LEASE_TTL_S": f"{LEASE_S}s", "WAYBILL_ENGINE": "inline", "WAYBILL_TESTING": "1"}
PARTS = (stack.NAME_SERVER, stack.BROKER, stack.POSTGRESQL, stack.API_SERVER, stack.SCHEDULER, stack.DAG_PROCESSOR)
OF_THE_MACHINE = ("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "AIRFLOW__SECRETS__BACKEND")
"""Settings of the stack's Airflow that a worker on another host does without."""


def redis_settings(port: int) -> dict[str, str]:
    return {
        "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
        "AIRFLOW__CELERY__BROKER_URL": f"redis://127.0.0.1:{port}/0",
        "AIRFLOW__CELERY__RESULT_BACKEND": f"redis://127.0.0.1:{port}/1",
        "AIRFLOW__CELERY_BROKER_TRANSPORT_OPTIONS__VISIBILITY_TIMEOUT": "600",
        # An api-server on a loaded machine takes long for its first answer, and the token of a task that is queued is
        # good for no longer than the second of these.
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
        "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT": "240",
    }


@pytest.fixture(scope="module")
def broker_of_tasks(worker_folder: Path) -> Iterator[int]:
    """Redis; its port."""
    port = ports.free()
    program = str(Path(sys.executable).with_name("redis-server"))
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(worker_folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    yield port
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def machine(worker_folder: Path, broker_of_tasks: int) -> Iterator[Path]:
    """The home of what runs here."""
    home = worker_folder / "celery" / ".waybill"
    options = stack.Options(well_known_ports=False, airflow=redis_settings(broker_of_tasks))
    running = stack.up(home, parts=PARTS, supervise=False, options=options)
    ledger.upgrade(running.database_url)
    yield home
    stack.down(home)
    postgresql.forget(home)


@dataclass
class Worker:
    """A Celery worker on a host, with a home of its own."""

    host: Host
    home: Path
    log: Path

    @property
    def has_stopped_at(self) -> bool:
        return (self.home / "faults" / "batch-written.taken").exists()

    def stop_at_a_batch(self) -> None:
        folder = self.home / "faults"
        folder.mkdir(exist_ok=True)
        (folder / "batch-written").write_text("stop 0")

    def start(self, environment: dict[str, str]) -> None:
        program = str(Path(sys.executable).with_name("airflow"))
        command = [program, "celery", "worker", "--queues", QUEUE, "--concurrency", "2", "--skip-serve-logs"]
        with self.log.open("wb") as log:
            self.host.start(command, environment, cwd=self.home.parent, stdout=log, stderr=log)


@dataclass
class Workers:
    site: Site
    both: list[Worker]

    def work(self, records: int) -> None:
        wait_for(lambda: settled(self.site) >= records, f"{records} records settled", 240)


def settled(site: Site) -> int:
    return sum(receipt["read"] for receipt in site.json("receipts", NAME, "--last", "1000")["receipts"])


def environment_of(pid: int) -> dict[str, str]:
    words = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(word.split("=", 1) for word in words if "=" in word)


@pytest.fixture
def workers(network: Network, machine: Path, broker_of_tasks: int, tmp_path: Path) -> Iterator[Workers]:
    running = running_at(machine)
    url, port = make_url(running.database_url), ports.free()
    command = [sys.executable, relay.__file__, network.address, str(port), f"{url.query['host']}/.s.PGSQL.5432"]
    passing = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert passing.stdout is not None
    assert passing.stdout.readline() == b"ready\n"
    there = url.set(host=network.address, port=port, query={}).render_as_string(hide_password=False)
    site = site_of(machine)
    made = Workers(site, [])
    of_scheduler = environment_of(running.part(stack.SCHEDULER).process.pid)
    rocketmq = RocketMQ(machine, [running.name_servers], running.broker_name, "")
    for name, ahead_s in (("north", 200 * DAY_S), ("south", 20 * DAY_S)):
        host = network.host(name, ahead_s)
        reach_rocketmq(network, host, rocketmq)
        network.serve(host, broker_of_tasks, running.part(stack.API_SERVER).ports["http"])
        home = tmp_path / name / ".waybill"
        home.mkdir(parents=True)
        worker = Worker(host, home, tmp_path / f"{name}.log")
        kept = {key: value for key, value in of_scheduler.items() if key not in OF_THE_MACHINE}
        own = {"WAYBILL_HOME": str(home), "WAYBILL_DATABASE_URL": there, "AIRFLOW_HOME": str(home / "airflow"), **RUNS}
        worker.start(kept | own)
        made.both.append(worker)
    feed(site, 0, RECORDS)
    site.apply(NAME, {**document(site), "schedule": {"every": "2s"}, "airflow": {"queue": QUEUE}})
    try:
        wait_for(lambda: all("ready." in worker.log.read_text() for worker in made.both), "two workers", 180)
        yield made
    finally:
        for worker in made.both:
            if worker.host.first.poll() is None:
                worker.host.go_on()
        site.waybill("connectors", "delete", NAME, "--yes")
        passing.kill()
        passing.wait()
        passing.stdout.close()


@pytest.mark.parametrize("fault", ["host lost", "host paused until another has taken over", "processes killed"])
def test_a_task_whose_worker_is_gone_goes_on_at_the_other_and_loses_and_repeats_nothing(
    workers: Workers, machine: Path, fault: str, row: FaultRow
) -> None:
    row.describe(
        f"Celery worker's {fault}, in the middle of a task", where="RocketMQ → RocketMQ", database="PostgreSQL"
    )
    site = workers.site
    workers.work(2 * RECORDS)
    for worker in workers.both:
        worker.stop_at_a_batch()
    feed(site, RECORDS, 2 * RECORDS)
    wait_for(lambda: any(worker.has_stopped_at for worker in workers.both), "a task in the middle of a batch", 180)
    [struck] = [worker for worker in workers.both if worker.has_stopped_at]
    [other] = [worker for worker in workers.both if worker is not struck]
    (other.home / "faults" / "batch-written").unlink()
    row.strikes()
    strike(struck.host, fault)
    workers.work(4 * RECORDS)
    row.moves_again()
    taken = [one for run in site.json("runs", NAME)["runs"] for one in run["taken_over"]]
    assert [one for one in taken if one["by"] == "silence" and one["waited_s"] >= LEASE_S]
    require_copied(site, NAME, 2 * RECORDS, row)
    if "paused" in fault:
        struck.host.go_on()
        time.sleep(LEASE_S)
    feed(site, 2 * RECORDS, 3 * RECORDS)
    workers.work(6 * RECORDS)
    require_copied(site, NAME, 3 * RECORDS, row)


def strike(host: Host, fault: str) -> None:
    if fault == "host lost":
        host.lose()
    elif fault == "processes killed":
        for pid in host.processes():
            os.kill(pid, signal.SIGKILL)
    else:
        host.pause()
