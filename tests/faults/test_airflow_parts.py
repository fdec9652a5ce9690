"""Each part of Airflow killed, and all of it at once: it comes back by itself, and work goes on (make faults only).

Nothing is replicated here: what becomes of records when a task or its supervisor dies is in other modules.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from connect_core import stack
from connect_core.errors import Unreachable, WaybillError
from connect_core.orchestration.rest import Airflow, DagRun
from connect_core.stack import postgresql
from tests.faults.rows import FaultRow

pytestmark = [pytest.mark.server, pytest.mark.fault(costly=True), pytest.mark.timeout(600)]

Found = TypeVar("Found")

LIMIT_S = 180
SETTINGS = {
    "AIRFLOW__CORE__PARALLELISM": "4",
    "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "2",
    # On a busy machine a part takes longer to start than the shipped 20 s.
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "150",
}
HEALTHY = dict.fromkeys(("metadatabase", "scheduler", "triggerer", "dag_processor"), "healthy")
DAG = '''"""A task that stands still in its first attempt (airflow dag)."""
import os, time
from datetime import timedelta
from pathlib import Path
from airflow.sdk import dag, task

@dag(dag_id="stands", schedule=None, is_paused_upon_creation=False)
def made():
    @task(retries=3, retry_delay=timedelta(seconds=1))
    def stands(dag_run=None):
        first = Path({folder!r}, dag_run.run_id)
        if first.exists():
            return
        first.with_suffix(".fresh").write_text(str(os.getpid()))
        first.with_suffix(".fresh").rename(first)
        time.sleep(600)
    stands()

made()
'''


class Installation:
    """A supervised Airflow of this module's own, with one DAG."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.firsts = home.parent / "firsts"

    def start(self) -> None:
        self.firsts.mkdir(parents=True, exist_ok=True)
        options = stack.Options(well_known_ports=False, postgresql={"fsync": "off"}, airflow=SETTINGS)
        stack.up(self.home, parts=(stack.POSTGRESQL, *stack.AIRFLOW_PARTS), options=options)

    @property
    def running(self) -> stack.Stack:
        found = stack.load(self.home)
        assert found is not None
        return found

    def session(self) -> Airflow:
        running = self.running
        return Airflow(running.airflow_url, running.airflow_user, running.airflow_password)

    def is_healthy(self) -> bool:
        """By what it says itself. Answers of a part that is being started again are none."""
        try:
            with self.session() as client:
                return client.health() == HEALTHY
        except Unreachable:
            return False

    def is_replaced(self, killed: dict[str, int]) -> bool:
        running = self.running
        return all(
            (part := running.parts.get(name)) is not None and part.process.pid != pid and part.process.is_alive
            for name, pid in killed.items()
        )

    def pids(self, *names: str) -> dict[str, int]:
        return {name: self.running.part(name).process.pid for name in names}

    def begin_run(self, run_id: str) -> int:
        """Starts a run; the pid of its task, once that stands still."""
        with self.session() as client:
            client.trigger("stands", run_id=run_id)
        return int(until(lambda: self._first_of(run_id), "the task stands still"))

    def has_ended(self, run_id: str) -> DagRun | None:
        try:
            with self.session() as client:
                run = client.run("stands", run_id)
        except WaybillError:
            return None
        return run if run.ended_at else None

    def finish(self, run_id: str) -> None:
        """A run whose task did not die goes on for ten minutes: it is failed by hand."""
        with self.session() as client:
            client.fail_run("stands", run_id)

    def _first_of(self, run_id: str) -> str | None:
        path = self.firsts / run_id
        return path.read_text() if path.exists() else None


@pytest.fixture(scope="module")
def installation(worker_folder: Path) -> Iterator[Installation]:
    one = Installation(worker_folder / "airflow-parts" / ".waybill")
    one.start()
    (one.home / "airflow" / "dags" / "stands.py").write_text(DAG.format(folder=str(one.firsts)))
    with one.session() as client:
        until(lambda: _is_known(client), "the DAG is found")
    yield one
    stack.down(one.home)
    postgresql.forget(one.home)


@pytest.mark.parametrize("part", stack.AIRFLOW_PARTS)
def test_a_killed_part_is_started_again_and_healthy(installation: Installation, part: str, row: FaultRow) -> None:
    row.describe(f"SIGKILL of Airflow's {part}, nothing running", where="supervised stack, until it says healthy")
    killed = installation.pids(part)
    row.strikes()
    os.kill(killed[part], 9)
    until(lambda: installation.is_replaced(killed) and installation.is_healthy(), f"the {part} is healthy again")
    row.moves_again()
    run_id = f"behind-{part}-{killed[part]}"
    (installation.firsts / run_id).write_text("0")
    with installation.session() as client:
        client.trigger("stands", run_id=run_id)
    assert until(lambda: installation.has_ended(run_id), "a run begun behind it has ended").state == "success"


def test_what_a_killed_scheduler_ran_dies_with_it_and_runs_again(installation: Installation, row: FaultRow) -> None:
    row.describe(
        "SIGKILL of Airflow's scheduler, a task running", where="supervised stack, until the next attempt ended"
    )
    killed = installation.pids(stack.SCHEDULER)
    run_id = f"orphan-{killed[stack.SCHEDULER]}"
    task = installation.begin_run(run_id)

    def died() -> bool:
        replaced, alive = installation.is_replaced(killed), _is_alive(task)  # in this order
        assert not (replaced and alive), "it must be dead before another scheduler is there"
        return not alive

    row.strikes()
    os.kill(killed[stack.SCHEDULER], 9)
    until(died, "its task is dead")
    assert until(lambda: installation.has_ended(run_id), "its run has ended").state == "success"
    row.moves_again()


def test_a_task_outlives_its_killed_api_server(installation: Installation, row: FaultRow) -> None:
    row.describe("SIGKILL of Airflow's api-server, a task running", where="supervised stack, until it says healthy")
    killed = installation.pids(stack.API_SERVER)
    run_id = f"lonely-{killed[stack.API_SERVER]}"
    task = installation.begin_run(run_id)
    row.strikes()
    os.kill(killed[stack.API_SERVER], 9)
    until(lambda: installation.is_replaced(killed) and installation.is_healthy(), "the api-server is healthy again")
    row.moves_again()
    assert _is_alive(task)
    with installation.session() as client:
        assert client.run("stands", run_id).state == "running"
    installation.finish(run_id)
    until(lambda: not _is_alive(task), "a task of a failed run is told to end")


def test_everything_killed_at_once_comes_back(installation: Installation, row: FaultRow) -> None:
    row.describe(
        "SIGKILL of PostgreSQL and all of Airflow, a task running", where="supervised stack, until it says healthy"
    )
    killed = installation.pids(stack.POSTGRESQL, *stack.AIRFLOW_PARTS)
    run_id = f"all-{killed[stack.SCHEDULER]}"
    task = installation.begin_run(run_id)
    row.strikes()
    for pid in killed.values():
        os.kill(pid, 9)
    until(lambda: installation.is_replaced(killed) and installation.is_healthy(), "all of it is healthy again")
    row.moves_again()
    assert not _is_alive(task)
    assert until(lambda: installation.has_ended(run_id), "its run has ended").state == "success"


def test_down_and_up_again_in_the_middle_of_a_run(installation: Installation, row: FaultRow) -> None:
    row.describe("dev down and dev up, a task running", where="from the end of dev down, until it says healthy")
    run_id = f"down-{installation.pids(stack.SCHEDULER)[stack.SCHEDULER]}"
    task = installation.begin_run(run_id)
    stack.down(installation.home)
    assert not _is_alive(task)
    row.strikes()
    installation.start()
    until(installation.is_healthy, "all of it is healthy again")
    row.moves_again()
    assert until(lambda: installation.has_ended(run_id), "its run has ended").state == "success"


def until(look: Callable[[], Found | None], what: str) -> Found:
    """What `look` finds, within three minutes."""
    limit = time.monotonic() + LIMIT_S
    while not (found := look()):
        assert time.monotonic() < limit, f"not within {LIMIT_S} s: {what}"
        time.sleep(0.1)
    return found


def _is_known(client: Airflow) -> bool:
    try:
        return not client.dag("stands").is_stale
    except WaybillError:
        return False


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
