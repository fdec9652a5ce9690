"""A connector that Airflow runs every two seconds while lines keep coming, and each process that can be killed is.

Afterwards every line is in the topic once, in the order of its file. A row's seconds are those from the kill until a
receipt is settled behind it.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from connect_core import stack
from connect_core.ledger import Ledger
from connect_core.orchestration import names
from tests.faults.kit.airflow import OPTIONS, GrowingFiles, client_of, running_at, wait_for
from tests.faults.rows import FaultRow

pytestmark = [pytest.mark.server, pytest.mark.fault(costly=True), pytest.mark.timeout(900)]

WHERE = "file → RocketMQ, Airflow"


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
    return running_at(home).part(part).process.pid


def test_the_task_process_killed(journey: GrowingFiles, row: FaultRow) -> None:
    row.describe("SIGKILL of Airflow's task process, in mid-range", where=WHERE, database="PostgreSQL")
    journey.begin()
    journey.outlives(row, journey.in_mid_range())


def test_the_supervisor_of_the_task_killed(journey: GrowingFiles, row: FaultRow) -> None:
    row.describe("SIGKILL of the task's supervisor, in mid-range", where=WHERE, database="PostgreSQL")
    journey.begin()
    journey.outlives(row, _parent(journey.in_mid_range()))


def test_a_worker_killed(own_airflow: Path, journey: GrowingFiles, row: FaultRow) -> None:
    row.describe("SIGKILL of a worker, in mid-range", where=WHERE, database="PostgreSQL")
    journey.begin()
    journey.in_mid_range()
    journey.outlives(row, wait_for(lambda: _workers(own_airflow), "a worker")[0])


@pytest.mark.parametrize("part", [stack.ENGINE, *stack.AIRFLOW_PARTS, stack.POSTGRESQL])
def test_a_part_of_the_stack_killed(own_airflow: Path, journey: GrowingFiles, row: FaultRow, part: str) -> None:
    row.describe(f"SIGKILL of the {part}, in mid-range", where=WHERE, database="PostgreSQL")
    journey.begin()
    journey.in_mid_range()
    journey.outlives(row, _pid(own_airflow, part))


def test_everything_killed_and_started_again(own_airflow: Path, journey: GrowingFiles, row: FaultRow) -> None:
    row.describe("SIGKILL of every part at once, then dev up", where=WHERE, database="PostgreSQL")
    journey.begin()
    journey.in_mid_range()
    running = running_at(own_airflow)
    assert running.supervisor is not None
    behind = journey.settled()
    row.strikes()
    for process in [running.supervisor, *(part.process for part in running.parts.values())]:
        for pid in _session_of(process.pid):
            os.kill(pid, signal.SIGKILL)
    stack.up(own_airflow, options=OPTIONS)
    journey.moves_again(row, behind)
    journey.check(row)


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 1)])
def test_the_number_of_tasks_changed_in_mid_run(journey: GrowingFiles, row: FaultRow, before: int, after: int) -> None:
    row.describe(f"tasks {before} → {after} under load", where=WHERE, database="PostgreSQL")
    journey.begin(tasks=before)
    journey.in_mid_range()
    behind = journey.settled()
    row.strikes()
    journey.apply(tasks=after)

    def moved_by_the_new_version() -> bool:
        with Ledger.open(journey.site.database_url) as opened:
            uid = opened.connector(journey.name).uid
            newest = opened.receipts(uid, limit=1)[0].id
            return opened.assignment(uid).tasks == after and newest > behind

    wait_for(moved_by_the_new_version, "receipts of the new tasks")
    row.moves_again()
    journey.check(row)


def test_paused_and_resumed_in_mid_run(own_airflow: Path, journey: GrowingFiles, row: FaultRow) -> None:
    row.describe("paused by Airflow's switch in mid-run, then resumed", where=WHERE, database="PostgreSQL")
    journey.begin()
    journey.in_mid_range()
    row.strikes()
    with client_of(own_airflow) as client:
        client.pause(names.live_dag(journey.name), True)
        wait_for(lambda: not journey.is_at_work(), "the run to end")
        still = journey.settled()
        time.sleep(3)  # longer than the schedule's distance: nothing begins meanwhile
        assert journey.settled() == still
        client.pause(names.live_dag(journey.name), False)
    journey.moves_again(row, still)
    journey.check(row)
