"""What runs in a pod of the KubernetesExecutor, without Airflow's servers: `pod_task.py CONNECTOR RUN_ID`.

A first process passes SIGTERM on to a second one, which takes its task from the file in the DAG folder and executes it,
as Airflow's supervisor and task runner do. There is no api-server to ask: the DAG is never paused.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from pathlib import Path
from types import SimpleNamespace


def main(connector: str, run_id: str) -> int:
    task = os.fork()
    if task == 0:
        execute(connector, run_id)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: os.kill(task, signal.SIGTERM))
    return os.waitstatus_to_exitcode(os.waitpid(task, 0)[1])


def execute(connector: str, run_id: str) -> None:
    os.environ["_AIRFLOW_PARSING_CONTEXT_DAG_ID"] = f"replicate.{connector}"
    from airflow.configuration import conf
    from airflow.sdk.exceptions import DownstreamTasksSkipped
    from airflow.sdk.execution_time import task_runner

    task_runner.SUPERVISOR_COMMS = SimpleNamespace(send=lambda _: None)  # type: ignore[assignment]
    dag = runpy.run_path(str(Path(conf.get("core", "dags_folder"), "replication.py")))[f"replicate.{connector}"]
    operator = dag.get_task("task_0")
    signal.signal(signal.SIGTERM, lambda *_: operator.on_kill())
    run = SimpleNamespace(run_type="manual")
    context = {"dag": dag, "dag_run": run, "run_id": run_id, "params": dag.params.dump(), "logical_date": None}
    try:
        operator.execute(context)
    except DownstreamTasksSkipped:
        print("nothing was there to move")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
