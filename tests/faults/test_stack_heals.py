"""A supervised stack that is hurt where its parts meet: an engine that has to move, an executor whose workers all wait
for a dead one, a part that ends while another one waits for it (make faults only).

Nothing is replicated here: what is looked at is whether tasks of Airflow start, and which engine they would use.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from connect_core import stack
from connect_core.errors import Unreachable, WaybillError
from connect_core.orchestration.rest import Airflow
from connect_core.stack import postgresql
from tests.faults.rows import FaultRow
from tests.faults.test_airflow_parts import until

pytestmark = [pytest.mark.server, pytest.mark.fault(costly=True), pytest.mark.timeout(600)]

PARTS = (stack.POSTGRESQL, stack.ENGINE, *stack.AIRFLOW_PARTS)
DAG = '''"""A task that writes down which engine it would use (airflow dag)."""
from pathlib import Path
from airflow.sdk import dag, task

@dag(dag_id="asks", schedule=None, is_paused_upon_creation=False)
def made():
    @task
    def asks(dag_run=None):
        from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
        from airflow.sdk.exceptions import AirflowNotFoundException
        try:
            address = SparkConnectHook("waybill_engine").get_connection_url()
        except AirflowNotFoundException:
            address = "none"
        Path({folder!r}, dag_run.run_id).write_text(address)
    asks()

made()
'''


class Installation:
    """A supervised stack of a test's own. Its DAG is asked which engine there is."""

    def __init__(self, home: Path, executor: str = "") -> None:
        self.home = home
        self.answers = home.parent / "answers"
        self._runs = 0
        settings = {"AIRFLOW__CORE__PARALLELISM": "4", "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "2"}
        self._airflow = {**settings, **({"AIRFLOW__CORE__EXECUTOR": executor} if executor else {})}

    def start(self, *parts: str) -> None:
        self.answers.mkdir(parents=True, exist_ok=True)
        options = stack.Options(well_known_ports=False, postgresql={"fsync": "off"}, airflow=self._airflow)
        stack.up(self.home, parts=parts, options=options)
        if stack.SCHEDULER in parts:
            (self.home / "airflow" / "dags" / "asks.py").write_text(DAG.format(folder=str(self.answers)))
            until(self._is_known, "the DAG is found")

    def end(self) -> None:
        stack.down(self.home)
        postgresql.forget(self.home)

    @property
    def running(self) -> stack.Stack:
        found = stack.load(self.home)
        assert found is not None
        return found

    def pid(self, part: str) -> int:
        return self.running.part(part).process.pid

    def begin(self) -> Path:
        """Starts a run; where its task will write its answer."""
        self._runs += 1
        run_id = f"run-{self._runs}"
        until(lambda: self._triggered(run_id), "Airflow takes a run")
        return self.answers / run_id

    def shown(self, part: str) -> str:
        """The state of a part as `waybill dev status` prints it."""
        command = [str(Path(sys.executable).with_name("waybill")), "dev", "status", "--json"]
        environment = {**os.environ, "WAYBILL_HOME": str(self.home)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        found: str = next(one for one in json.loads(done.stdout)["parts"] if one["part"] == part)["state"]
        return found

    def told(self) -> str:
        return (self.home / "logs" / "supervisor.log").read_text()

    def times_ready(self, part: str) -> int:
        """How often the supervisor has started it again."""
        return len(re.findall(rf"Z {part} \S+ ready", self.told()))

    def idle_workers(self) -> list[psutil.Process]:
        """Of the executor: processes that wait for a task."""
        children = psutil.Process(self.pid(stack.SCHEDULER)).children(recursive=True)
        return [one for one in children if "<idle>" in " ".join(one.cmdline())]

    def _session(self) -> Airflow:
        running = self.running
        return Airflow(running.airflow_url, running.airflow_user, running.airflow_password)

    def _is_known(self) -> bool:
        try:
            with self._session() as client:
                return not client.dag("asks").is_stale
        except WaybillError:
            return False

    def _triggered(self, run_id: str) -> bool:
        try:
            with self._session() as client:
                client.trigger("asks", run_id=run_id)
        except Unreachable:
            return False
        return True


@pytest.fixture
def installation(worker_folder: Path, request: pytest.FixtureRequest) -> Iterator[Installation]:
    one = Installation(worker_folder / request.node.name[:40] / ".waybill", getattr(request, "param", ""))
    yield one
    one.end()


def test_tasks_use_the_engine_that_runs_wherever_it_had_to_move(installation: Installation, row: FaultRow) -> None:
    row.describe("engine stopped, then killed, its port taken by another program", where="supervised stack")
    installation.start(*PARTS)
    address = ("127.0.0.1", installation.running.part(stack.ENGINE).ports["grpc"])
    first, scheduler = installation.pid(stack.ENGINE), installation.pid(stack.SCHEDULER)
    os.kill(first, signal.SIGSTOP)
    until(lambda: installation.shown(stack.ENGINE) == "not answering", "dev status tells the truth")
    row.strikes()
    os.kill(first, signal.SIGKILL)
    with taken(address):
        until(lambda: installation.times_ready(stack.ENGINE) == 1, "the engine is started again")
    assert installation.running.part(stack.ENGINE).ports["grpc"] != address[1]
    _agrees(installation)
    row.moves_again()
    os.kill(installation.pid(stack.ENGINE), signal.SIGKILL)
    until(lambda: installation.times_ready(stack.ENGINE) == 2, "the engine is started again")
    _agrees(installation)
    assert installation.pid(stack.SCHEDULER) == scheduler, "nothing of Airflow has to be started anew for that"


def taken(address: tuple[str, int]) -> socket.socket:
    """The port, as soon as somebody else can have it."""

    def listening() -> socket.socket | None:
        try:
            return socket.create_server(address)
        except OSError:
            return None

    return until(listening, "the port is free")


def _agrees(installation: Installation) -> None:
    """A task uses the port that the engine of the record listens on."""
    answer = installation.begin()
    assert installation.shown(stack.ENGINE) == "running"
    port = installation.running.part(stack.ENGINE).ports["grpc"]
    assert f"localhost:{port}/" in until(lambda: answer.exists() and answer.read_text(), "the task has answered")
    listening = {one.laddr.port for one in psutil.net_connections("tcp") if one.status == psutil.CONN_LISTEN}
    assert port in listening


AIRFLOW_S_OWN = "airflow.executors.local_executor.LocalExecutor"


@pytest.mark.parametrize("installation", [AIRFLOW_S_OWN], indirect=True)
def test_an_executor_whose_workers_wait_for_a_dead_one_is_mended(installation: Installation, row: FaultRow) -> None:
    row.describe("SIGKILL of the idle worker that reads the queue", where="LocalExecutor of Airflow, supervised")
    installation.start(stack.POSTGRESQL, *stack.AIRFLOW_PARTS)
    scheduler = installation.pid(stack.SCHEDULER)
    answer = _all_wait_for_a_dead_one(installation)
    row.strikes()
    until(lambda: "starts no tasks" in installation.told(), "the supervisor says so")
    until(lambda: installation.pid(stack.SCHEDULER) != scheduler, "another scheduler")
    until(answer.exists, "the task has started")
    row.moves_again()


def _all_wait_for_a_dead_one(installation: Installation) -> Path:
    """Kills the worker that holds the queue's lock: the one that waits in a read, while the others wait for it."""
    until(lambda: len(installation.idle_workers()) == 4, "four workers")
    for worker in installation.idle_workers():
        if _reads(worker.pid):
            os.kill(worker.pid, signal.SIGKILL)
    answer = installation.begin()
    limit = time.monotonic() + 10
    while time.monotonic() < limit:
        assert not answer.exists(), "it shows nothing: the queue was not blocked"
        time.sleep(0.5)
    return answer


def _reads(pid: int) -> bool:
    """Whether the process is in a read(2)."""
    return Path(f"/proc/{pid}/syscall").read_text().split()[0] == "0"


def test_a_part_that_ends_while_another_waits_for_it_is_restarted(installation: Installation, row: FaultRow) -> None:
    """A broker is ready when its name server knows it. Without one the supervisor would wait for the whole time that a
    start may take, and start nothing else meanwhile."""
    row.describe("name server stopped, broker killed, name server killed while it starts", where="supervised stack")
    installation.start(stack.NAME_SERVER, stack.BROKER, stack.POSTGRESQL)
    broker, name_server = installation.pid(stack.BROKER), installation.pid(stack.NAME_SERVER)
    os.kill(name_server, signal.SIGSTOP)
    os.kill(broker, signal.SIGKILL)
    until(lambda: installation.pid(stack.BROKER) != broker, "the broker is being started")
    os.kill(installation.pid(stack.POSTGRESQL), signal.SIGKILL)
    row.strikes()
    os.kill(name_server, signal.SIGKILL)
    for part in (stack.NAME_SERVER, stack.BROKER, stack.POSTGRESQL):
        until(lambda part=part: installation.times_ready(part) == 1, f"the {part} is started again")
    row.moves_again()


def test_killed_idle_workers_hold_up_nobody(installation: Installation, row: FaultRow) -> None:
    row.describe("SIGKILL of idle workers of the executor, one after the other", where="the executor of the stack")
    installation.start(stack.POSTGRESQL, *stack.AIRFLOW_PARTS)
    scheduler = installation.pid(stack.SCHEDULER)
    for _ in range(3):
        for worker in installation.idle_workers():
            row.strikes()
            worker.kill()
            answer = installation.begin()
            until(answer.exists, "the task has started")
            row.moves_again()
    assert installation.pid(stack.SCHEDULER) == scheduler
    assert "starts no tasks" not in installation.told()


def test_a_task_that_a_worker_took_to_its_death_is_queued_again(installation: Installation, row: FaultRow) -> None:
    """Others go on meanwhile, so that the scheduler is not to blame."""
    row.describe("SIGKILL of the worker that has a task which could not say yet that it runs", where="supervised stack")
    installation.start(stack.POSTGRESQL, *stack.AIRFLOW_PARTS)
    scheduler = installation.pid(stack.SCHEDULER)
    workers = until(lambda: len(found := installation.idle_workers()) == 4 and found, "four workers")
    for worker in workers:
        worker.suspend()
    answer = installation.begin()
    api_server = psutil.Process(installation.pid(stack.API_SERVER))
    stopped = [api_server, *api_server.children(recursive=True)]
    for process in stopped:
        process.suspend()
    for worker in workers:
        worker.resume()
    taken = until(lambda: [one for one in workers if "<idle>" not in " ".join(one.cmdline())], "a worker has it")
    for worker in taken:
        for process in (*worker.children(recursive=True), worker):
            process.kill()
    row.strikes()
    for process in stopped:
        process.resume()
    assert not answer.exists()

    def started() -> bool:
        other = installation.begin()
        until(other.exists, "another task has started")
        return answer.exists()

    until(started, "the task has started")
    row.moves_again()
    assert installation.pid(stack.SCHEDULER) == scheduler
    assert "starts no tasks" not in installation.told()
