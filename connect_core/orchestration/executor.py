"""The executor of the local stack: Airflow's own, whose workers have loaded what every task needs before they are
forked. Most of the processor time of a short task would be its imports.

Named in a setting, `AIRFLOW__CORE__EXECUTOR`: every part of Airflow imports this module, so nothing else comes with it.
"""

from __future__ import annotations

from importlib import import_module

from airflow.executors.local_executor import LocalExecutor

NEEDED_BY_TASKS = (
    "airflow.providers.apache.spark.hooks.spark_connect",
    "connect_core.engine.spark_connect",
    "connect_core.orchestration.dags",
    "connect_core.orchestration.work",
    "connect_core.stack",
    "connect_core.systems.file.sink",
    "connect_core.systems.file.source",
    "connect_core.systems.rocketmq.sink",
    "connect_core.systems.rocketmq.source",
)


class WarmLocalExecutor(LocalExecutor):
    """Modules only: no connection and no thread is carried across a fork."""

    def start(self) -> None:
        """In the scheduler's process, of which each worker, and each task, is a fork."""
        for name in NEEDED_BY_TASKS:
            import_module(name)
        super().start()
