"""From the moment at which a run is due, or is asked for, to its task: Airflow's part of the freshness of a record.

Two moments are looked for: the start of the task's process as Airflow has it, and the run in the ledger, which begins
with the lease. Each run has a line to move, since runs with nothing to do are forgotten. All of it is one machine's
clock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from connect_core.ledger import Ledger
from connect_core.orchestration import names
from tests.bench.airflow import Start, Web, web
from tests.bench.place import Place, until
from tests.bench.telling import Row, row, s, spread

RUNS = 20
EVERY_S = (2, 10)
_LINES_EVERY_S = 0.5
_LIMIT_S = 600.0


def starts(place: Place, runs: int = RUNS) -> list[Row]:
    with web(place) as airflow:
        return [*(_scheduled(place, airflow, every_s, runs) for every_s in EVERY_S), _triggered(place, airflow, runs)]


def _scheduled(place: Place, airflow: Web, every_s: int, runs: int) -> Row:
    name = f"start-{every_s}s"
    with _connector(place, name, {"every": f"{every_s}s"}):
        limit_s = runs * every_s * 2 + _LIMIT_S
        begun = until(lambda: _begun(airflow, name, runs + 1), f"{runs} runs of {name}", limit_s)[1 : runs + 1]
        in_ledger = _in_ledger(place, name, begun)
    what = f"schedule every {every_s} s, due to task started"
    return _told(what, [one.lag_s for one in begun], [(at - one.due).total_seconds() for one, at in in_ledger])


def _triggered(place: Place, airflow: Web, runs: int) -> Row:
    """One after the other, each when the one before has ended. The first one is not counted: it makes the topic."""
    name = "start-by-hand"
    asked: list[datetime] = []
    with _connector(place, name, {"manual": True}):
        until(lambda: airflow.tasks(names.live_dag(name)), f"the DAG of {name}", _LIMIT_S)
        for number in range(runs + 1):
            asked.append(datetime.now(UTC))
            run_id = f"by-hand-{number}"
            airflow.post(f"/api/v2/dags/{names.live_dag(name)}/dagRuns", logical_date=None, dag_run_id=run_id)
            until(lambda run_id=run_id: _has_ended(airflow, name, run_id), f"the end of {run_id}", _LIMIT_S)
        begun = sorted(_begun(airflow, name, runs + 1), key=lambda one: int(one.run_id.rpartition("-")[2]))[1:]
        in_ledger = _in_ledger(place, name, begun)
    wanted = dict(zip((one.run_id for one in begun), asked[1:], strict=True))
    to_task = [(one.begun - wanted[one.run_id]).total_seconds() for one in begun if one.begun]
    to_ledger = [(at - wanted[one.run_id]).total_seconds() for one, at in in_ledger]
    return _told("triggered by REST, asked to task started", to_task, to_ledger)


def _told(what: str, to_task: list[float], to_ledger: list[float]) -> Row:
    return row(what, spread(to_task, s), f"run in the ledger {spread(to_ledger, s)}; {len(to_task)} runs")


def _begun(airflow: Web, name: str, wanted: int) -> list[Start]:
    """None before that many have."""
    found = [one for one in airflow.starts(name) if one.begun]
    return found if len(found) >= wanted else []


def _has_ended(airflow: Web, name: str, run_id: str) -> bool:
    run = airflow.get(f"/api/v2/dags/{names.live_dag(name)}/dagRuns/{run_id}")
    return run["state"] in ("success", "failed")


def _in_ledger(place: Place, name: str, begun: list[Start]) -> list[tuple[Start, datetime]]:
    """With the moment at which each run took its lease. Of the newest one that moment may be yet to come."""
    found = []
    with Ledger.open(place.running.database_url) as ledger:
        uid = ledger.connector(name).uid
        for one in begun:
            of = names.attempt_of(one.dag_id, one.run_id)
            found += [(one, run.started_at) for run in ledger.runs_of(uid, of)[:1]]
    return found


@contextmanager
def _connector(place: Place, name: str, schedule: dict[str, object]) -> Iterator[None]:
    """Into its file comes a line every half second as long as the block lasts."""
    log = place.folder / f"{name}.log"
    log.write_text("the first line\n")
    sink = {"rocketmq": {"connection": "main", "topic": name, "queues": 1}}
    place.apply(name, {"file": {"path": str(log)}}, sink, schedule=schedule)
    over = threading.Event()
    writer = threading.Thread(target=_write, args=(log, over), daemon=True)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join()
        place.delete(name)


def _write(log: Path, over: threading.Event) -> None:
    with log.open("a", buffering=1) as file:
        while not over.wait(_LINES_EVERY_S):
            file.write("another line\n")
