"""Inside Airflow: one DAG a connector, the operators in it, the trigger, the plugin, the executor of the local stack.

The only room that imports airflow. What an operator does is a use case of `service`; `orchestration` is the other side,
which asks an Airflow over HTTP. `register` is all that a DAG file needs.
"""

from __future__ import annotations

from typing import Any


def register(namespace: dict[str, Any]) -> None:
    """Puts the DAGs of every connector in the ledger into the namespace of a DAG file."""
    from connect_core.airflow.dags import made

    namespace.update(made())
