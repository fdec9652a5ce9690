"""Airflow's KubernetesExecutor reads conf/kubernetes/pod_template.yaml, and makes a task's pod of it.

The provider is in build/kubernetes (`.ci/kubernetes`), for a process of its own: here it is not installed. Marked as
what needs a server, so that CI does not pass without it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
TEMPLATE = ROOT / "conf" / "kubernetes" / "pod_template.yaml"
VALUES = ROOT / "conf" / "kubernetes" / "values.yaml"
PROVIDER = ROOT / "build" / "kubernetes"
PAGE = ROOT / "docs" / "kubernetes.md"

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(not (PROVIDER / "installed").exists(), reason="no Kubernetes provider: run .ci/kubernetes"),
]

_READ = """
import json, sys
import airflow.providers
airflow.providers.__path__.append(sys.argv[1] + "/airflow/providers")
from airflow import settings
from airflow.providers.cncf.kubernetes.executors.kubernetes_executor_utils import get_base_pod_from_template
from airflow.providers.cncf.kubernetes.get_provider_info import get_provider_info
from airflow.providers.cncf.kubernetes.pod_generator import PodGenerator

hook = {}
exec(sys.argv[3], hook)
settings.pod_mutation_hook = hook.get("pod_mutation_hook", lambda pod: None)

def made(dag_id):
    return PodGenerator.construct_pod(
        dag_id=dag_id, task_id="task_0", pod_id="replicate-task-0-abc", try_number=2, kube_image="other/image:1",
        date=None,
        args=["python", "-m", "airflow.sdk.execution_time.execute_workload", "--json-string", "{}"],
        pod_override_object=None, base_worker_pod=get_base_pod_from_template(sys.argv[2], None), namespace="etl",
        scheduler_job_id="7", run_id="manual__1", with_mutation_hook=True,
    )

read = PodGenerator.serialize_pod(PodGenerator.deserialize_model_file(sys.argv[2]))
pods = {name: PodGenerator.serialize_pod(made(name)) for name in ("replicate.orders-copy", "replicate.lines-in")}
options = list(get_provider_info()["config"]["kubernetes_executor"]["options"])
print(json.dumps({"read": read, "pods": pods, "options": options}))
"""


def hook_of_the_page() -> str:
    return PAGE.read_text().partition("```python\n")[2].partition("```")[0]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the provider makes of the template, and of tasks of two connectors with the hook of the page."""
    environment = {**os.environ, "PYTHONPATH": str(PROVIDER), "AIRFLOW_HOME": str(tmp_path_factory.mktemp("airflow"))}
    command = [sys.executable, "-c", _READ, str(PROVIDER), str(TEMPLATE), hook_of_the_page()]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_nothing_in_the_template_is_unknown_to_kubernetes(read: dict[str, Any]) -> None:
    """The client drops silently what it does not know."""
    assert read["read"] == yaml.safe_load(TEMPLATE.read_text())


def test_a_task_s_pod_is_the_template_with_the_image_and_the_command_of_the_executor(read: dict[str, Any]) -> None:
    written, pod = yaml.safe_load(TEMPLATE.read_text())["spec"], read["pods"]["replicate.orders-copy"]["spec"]
    [base], [container] = written.pop("containers"), pod.pop("containers")
    assert pod == written
    assert container.pop("args")[:3] == ["python", "-m", "airflow.sdk.execution_time.execute_workload"]
    assert container.pop("image") == "other/image:1"
    assert container.pop("env") == [*base.pop("env"), {"name": "AIRFLOW_IS_K8S_EXECUTOR_POD", "value": "True"}]
    del base["image"]
    assert container == base


def test_the_hook_of_the_page_sends_one_connector_to_its_node(read: dict[str, Any]) -> None:
    other, bound = (read["pods"][name]["spec"] for name in ("replicate.orders-copy", "replicate.lines-in"))
    assert "nodeSelector" not in other
    assert bound["nodeSelector"] == {"kubernetes.io/hostname": "node-7"}
    added = [volume for volume in bound["volumes"] if volume not in other["volumes"]]
    assert [volume["hostPath"]["path"] for volume in added] == ["/var/log/app"]
    mounts = bound["containers"][0]["volumeMounts"]
    assert [mount["mountPath"] for mount in mounts if mount["name"] == added[0]["name"]] == ["/var/log/app"]


def test_the_provider_knows_the_settings_of_its_section(read: dict[str, Any]) -> None:
    assert set(yaml.safe_load(VALUES.read_text())["config"]["kubernetes_executor"]) <= set(read["options"])
