"""How things are called in Airflow: DAGs, tasks, assets, and the ids of runs. Pure; imports no airflow."""

from __future__ import annotations

LIVE_DAG = "replicate."
BACKFILL_DAG = "backfill."
RECONCILE = "reconcile"


def live_dag(connector: str) -> str:
    return f"{LIVE_DAG}{connector}"


def backfill_dag(connector: str) -> str:
    return f"{BACKFILL_DAG}{connector}"


def connector_of(dag_id: str) -> str | None:
    """The connector that a DAG is for; None for a DAG that is not ours."""
    for prefix in (LIVE_DAG, BACKFILL_DAG):
        if dag_id.startswith(prefix):
            return dag_id.removeprefix(prefix)
    return None


def task_id(number: int) -> str:
    return f"task_{number}"


def attempt_of(dag_id: str, run_id: str) -> str:
    """What all attempts of all tasks of one Airflow run have in common, in the ledger's table of runs."""
    return f"{dag_id} {run_id}"
