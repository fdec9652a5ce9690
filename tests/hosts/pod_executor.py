"""An executor of Airflow that starts a pod of this machine for each task, where Airflow's asks Kubernetes for one.

The scheduler loads it by its name. `WAYBILL_TEST_PODS` is a folder of the test: `given.json` has the Secrets and the
variables that tests alone set; `fault`, while it is there, the step at which a pod is to stand still. Each pod has a
folder there, a log, and a file with the number of its process.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airflow.executors.base_executor import BaseExecutor
from airflow.utils.state import TaskInstanceState

from tests.hosts import pods


class PodExecutor(BaseExecutor):
    """What ends badly, or is killed, has failed; as Airflow's own it never looks into a pod."""

    def start(self) -> None:
        self._folder = Path(os.environ[pods.OF_EXECUTOR])
        self._pods: dict[Any, pods.Pod] = {}
        self._made = 0

    def _process_workloads(self, workload_items: Sequence[Any]) -> None:
        for workload in workload_items:
            del self.queued_tasks[workload.key]
            self.running.add(workload.key)
            self._pods[workload.key] = self._pod(workload.model_dump_json())

    def _pod(self, workload: str) -> pods.Pod:
        self._made += 1
        given = json.loads((self._folder / "given.json").read_text())
        asked = self._folder / "fault"
        fault = asked.read_text() if asked.exists() else ""
        folder = self._folder / f"pod-{self._made:03}"
        folder.mkdir()
        words = ["-m", "airflow.sdk.execution_time.execute_workload", "--json-string", workload]
        with (self._folder / f"pod-{self._made:03}.log").open("w") as log:
            pod = pods.start(folder, words, given["secrets"], {}, given["extra"], fault, log)
        (self._folder / f"pod-{self._made:03}.pid").write_text(str(pod.process.pid))
        return pod

    def sync(self) -> None:
        for key, pod in list(self._pods.items()):
            if (code := pod.process.poll()) is not None:
                self.change_state(key, TaskInstanceState.FAILED if code else TaskInstanceState.SUCCESS)
                del self._pods[key]

    def end(self) -> None:
        self.terminate()

    def terminate(self) -> None:
        for pod in self._pods.values():
            pod.process.kill()
