"""Airflow: one DAG a connector, the operators in it, and what the command line asks of Airflow.

The only room that imports airflow, and only inside `dags`, `operators`, `retrying`, `triggers` and `plugin`: commands
use `rest` and `control`, which talk to Airflow over HTTP. `register` is all that a DAG file needs.
"""

from __future__ import annotations

from typing import Any


def register(namespace: dict[str, Any]) -> None:
    """Puts the DAGs of every connector in the ledger into the namespace of a DAG file."""
    from connect_core.orchestration.dags import made

    namespace.update(made())
