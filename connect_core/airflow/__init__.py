"""Inside Airflow: one DAG a connector, the operators in it, the trigger, the plugin, the executor of the local stack.

The only room that imports airflow. What an operator does is a use case of `service`; `orchestration` is the other side,
which asks an Airflow over HTTP. `register` is all that a DAG file needs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


def register(namespace: dict[str, Any]) -> None:
    """Puts the DAGs of every connector in the ledger into the namespace of a DAG file."""
    from airflow.sdk import get_parsing_context

    from connect_core.airflow.dags import made
    from connect_core.orchestration import parse_requests

    file = namespace.get("__file__")
    if file and get_parsing_context().dag_id is None:  # a task's process reads the file as well, and only its own DAG
        parse_requests.begin(Path(file))
    namespace.update(made())
