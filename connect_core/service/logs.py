"""What a run has logged, read where it is kept: Airflow keeps it of the runs that it begins. Of a run that somebody
began by hand the log went to where it was begun; the ledger keeps why it failed."""

from __future__ import annotations

from connect_core.ledger import Run
from connect_core.orchestration import control, names
from connect_core.sdk.values import Json
from connect_core.service.json_values import fields_of
from connect_core.service.opened import Opened
from connect_core.service.visible import NotFound


def log_of(opened: Opened, name: str, run_id: str = "") -> Json:
    """Of the newest run of a connector, or of one of its runs: its `attempts` in Airflow with their `lines`, and its
    `failure`. Raises NotFound when there is no such run, and Unreachable when its log is in an Airflow that does not
    answer."""
    run = _run(opened, name, run_id)
    told: Json = {
        "connector": name,
        "run": run.id,
        "state": run.state,
        "failure": fields_of(run.failure) if run.failure else None,
        "dag": None,
        "dag_run": None,
        "attempts": [],
    }
    if run.attempt_of is None:
        return told
    dag, _, dag_run = run.attempt_of.partition(" ")
    with control.airflow_of(opened.home, opened.settings) as airflow:
        if airflow is not None:
            task = names.task_id(run.task)
            told["attempts"] = [
                {"attempt": number, "lines": airflow.log(dag, dag_run, task, number)}
                for number in airflow.tries(dag, dag_run, task)
            ]
    return told | {"dag": dag, "dag_run": dag_run}


def _run(opened: Opened, name: str, run_id: str) -> Run:
    uid = opened.ledger.connector(name).uid
    found = opened.ledger.run(uid, run_id) if run_id else next(iter(opened.ledger.runs(uid, limit=1)), None)
    if found is None:
        raise no_run(name, run_id)
    return found


def no_run(name: str, run_id: str = "") -> NotFound:
    """What is said where a connector has not that run, or none."""
    return NotFound(
        f"There is no run {run_id}" if run_id else "It has not run yet",
        where=f"connector {name}",
        next_step=f"List its runs: waybill runs {name}" if run_id else f"Run it: waybill run {name}",
    )
