"""How things are called in Airflow: DAGs, tasks, assets, and the ids of runs. Pure; imports no airflow."""

from __future__ import annotations

import hashlib
import re

LIVE_DAG = "replicate."
BACKFILL_DAG = "backfill."
VERIFY_DAG = "verify."
RECONCILE = "reconcile"
VERIFY = "verify"
ENGINE_CONNECTION = "waybill_engine"
"""The Airflow connection (type spark_connect) that holds the address and the token of the engine."""
RETRIES = 8
"""So often Airflow tries a task again."""


def live_dag(connector: str) -> str:
    return f"{LIVE_DAG}{connector}"


def backfill_dag(connector: str) -> str:
    return f"{BACKFILL_DAG}{connector}"


def verify_dag(connector: str) -> str:
    return f"{VERIFY_DAG}{connector}"


def dag_ids(connector: str) -> tuple[str, ...]:
    """Every DAG that a connector may have."""
    return (live_dag(connector), backfill_dag(connector), verify_dag(connector))


def connector_of(dag_id: str) -> str | None:
    """The connector that a DAG is for; None for a DAG that is not ours."""
    for prefix in (LIVE_DAG, BACKFILL_DAG, VERIFY_DAG):
        if dag_id.startswith(prefix):
            return dag_id.removeprefix(prefix)
    return None


def task_id(number: int) -> str:
    return f"task_{number}"


def attempt_of(dag_id: str, run_id: str) -> str:
    """What all attempts of all tasks of one Airflow run have in common, in the ledger's table of runs."""
    return f"{dag_id} {run_id}"


def backfill_id(run_id: str) -> str:
    """The id of the backfill that an Airflow run begins when nobody gave one: the run's, in signs an id may have; a
    long one ends with its hash, so that two runs whose ids begin alike are two backfills."""
    from connect_core.replication.backfill.request import MAX_ID_LENGTH

    legal = re.sub(r"[^A-Za-z0-9._-]", "-", run_id)
    if len(legal) <= MAX_ID_LENGTH:
        return legal
    mark = f"-{hashlib.blake2b(run_id.encode(), digest_size=4).hexdigest()}"
    return legal[: MAX_ID_LENGTH - len(mark)] + mark
