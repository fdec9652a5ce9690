"""conf/kubernetes: the pod template and the values of the Helm chart make the same pods, name what the code reads, and
set nothing that the chart does not know.

`AIRFLOW_CHART` may name the folder of a chart (`helm pull apache-airflow/airflow --version 1.22.0 --untar`): then the
values are checked against its whole schema too, and where `helm` is there, what it makes of them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from connect_core.config.connections import folders_for
from connect_core.config.engines import engine_named
from connect_core.config.home import folder_of
from connect_core.config.settings import PREFIX, Settings
from connect_core.stack.rocketmq import settings_of

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "conf" / "kubernetes"
CHART = os.environ.get("AIRFLOW_CHART", "")

# Looked up in values.schema.json of the chart, shortly before its 1.22. It takes any key below `workers.kubernetes`,
# and at many other places.
KNOWN = {
    "executor",
    "airflowVersion",
    "defaultAirflowRepository",
    "defaultAirflowTag",
    "postgresql.enabled",
    "data.metadataSecretName",
    "fernetKeySecretName",
    "apiSecretKeySecretName",
    "jwtSecretName",
    "secret[].envName",
    "secret[].secretName",
    "secret[].secretKey",
    "extraEnvFrom",
    "env[].name",
    "env[].value",
    "volumes[]",
    "volumeMounts[]",
    "workers.kubernetes.terminationGracePeriodSeconds",
    "workers.kubernetes.env[].name",
    "workers.kubernetes.env[].value",
    "workers.kubernetes.resources.requests.cpu",
    "workers.kubernetes.resources.requests.memory",
    "workers.kubernetes.resources.limits.memory",
    "workers.kubernetes.securityContexts.pod",
    "workers.kubernetes.securityContexts.container",
    "workers.kubernetes.extraVolumes[]",
    "workers.kubernetes.extraVolumeMounts[]",
}
OF_KUBERNETES = (
    "volumes[]",
    "volumeMounts[]",
    "workers.kubernetes.securityContexts.pod",
    "workers.kubernetes.securityContexts.container",
    "workers.kubernetes.extraVolumes[]",
    "workers.kubernetes.extraVolumeMounts[]",
)
"""Kubernetes' own objects, which the provider reads in the pod template (tests/system/stack/test_pod_template.py)."""


@cache
def template() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((FOLDER / "pod_template.yaml").read_text())
    return document


@cache
def values() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((FOLDER / "values.yaml").read_text())
    return document


def container() -> dict[str, Any]:
    [only] = template()["spec"]["containers"]
    return dict(only)


def by_name(entries: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    found = {entry["name"]: entry for entry in entries}
    assert len(found) == len(entries)
    return found


def paths(value: Any, path: str = "") -> Iterator[str]:
    """Of each value that is set, its keys; the items of a list have one path."""
    if path in OF_KUBERNETES or (not isinstance(value, dict) and not isinstance(value, list)):
        yield path
    elif isinstance(value, dict):
        for key, child in value.items():
            yield from paths(child, f"{path}.{key}" if path else key)
    else:
        for child in value:
            yield from paths(child, f"{path}[]")


def settings(config: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Sections of airflow.cfg as variables."""
    return {
        f"AIRFLOW__{section.upper()}__{key.upper()}": str(value)
        for section, keys in config.items()
        for key, value in keys.items()
    }


def test_the_executor_finds_its_container_and_the_image_s_first_process_stays() -> None:
    assert container()["name"] == "base"
    assert not container().keys() & {"command", "args"}
    assert template()["spec"]["restartPolicy"] == "Never"


def test_a_pod_is_no_root_and_writes_only_to_volumes_that_go_with_it() -> None:
    assert template()["spec"]["securityContext"]["runAsNonRoot"]
    assert container()["securityContext"]["readOnlyRootFilesystem"]
    volumes = by_name(template()["spec"]["volumes"])
    written = [mount["name"] for mount in container()["volumeMounts"] if not mount.get("readOnly")]
    assert [name for name in written if "emptyDir" not in volumes[name]] == []


def test_a_stop_has_longer_than_the_lease_of_the_task() -> None:
    """A lane ends before its lease does; then its receipts are settled."""
    assert template()["spec"]["terminationGracePeriodSeconds"] > 2 * Settings.model_validate(defaults()).lease_ttl_s


def defaults() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((ROOT / "conf" / "defaults.yaml").read_text())
    return document


def test_the_chart_makes_the_same_pods() -> None:
    spec, given = template()["spec"], values()["workers"]["kubernetes"]
    assert given["terminationGracePeriodSeconds"] == spec["terminationGracePeriodSeconds"]
    assert given["securityContexts"] == {
        "pod": spec["securityContext"],
        "container": container()["securityContext"],
    }
    assert given["resources"] == container()["resources"]
    own = {name: volume for name, volume in by_name(spec["volumes"]).items() if name != "logs"}
    assert by_name(values()["volumes"] + given["extraVolumes"]) == own
    mounts = {name: mount for name, mount in by_name(container()["volumeMounts"]).items() if name != "logs"}
    assert by_name(values()["volumeMounts"] + given["extraVolumeMounts"]) == mounts
    assert yaml.safe_load(values()["extraEnvFrom"]) == container()["envFrom"]


def test_the_chart_gives_its_pods_the_same_variables() -> None:
    """Those of Airflow's sections come with its airflow.cfg."""
    given = values()
    plain = {one["name"]: one["value"] for one in given["env"] + given["workers"]["kubernetes"]["env"]}
    secret = {
        one["envName"]: {"secretKeyRef": {"name": one["secretName"], "key": one["secretKey"]}}
        for one in given["secret"]
    }
    config = settings(given["config"])
    there = {**plain, **secret, **config, "AIRFLOW__CORE__EXECUTOR": given["executor"]}
    # The chart works it out from the name of its release, `airflow` on the page.
    there["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] = "http://airflow-api-server:8080/execution/"
    told = {one["name"]: one.get("value", one.get("valueFrom")) for one in container()["env"]}
    assert {name: there.get(name) for name in told} == told


def test_airflow_has_the_shipped_settings_but_for_what_a_pod_takes_longer_for() -> None:
    config = settings(values()["config"])
    batch = config.pop("AIRFLOW__KUBERNETES_EXECUTOR__WORKER_PODS_CREATION_BATCH_SIZE")
    assert int(batch) > 1
    queued = config.pop("AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT")
    shipped = settings_of("airflow.env")
    assert int(queued) > int(shipped.pop("AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT"))
    assert config == shipped


def test_every_variable_is_one_that_is_read() -> None:
    from airflow.configuration import conf

    ours = {PREFIX + name.upper() for name in Settings.model_fields} | {"WAYBILL_HOME", "WAYBILL_DATABASE_URL"}
    names = {one["name"] for one in container()["env"]} | set(settings(values()["config"]))
    assert {name for name in names if name.startswith(PREFIX)} <= ours
    of_airflow = [
        name.removeprefix("AIRFLOW__").lower().split("__", 1) for name in names if name.startswith("AIRFLOW_")
    ]
    of_provider = ["kubernetes_executor"]  # the provider's own section: see the test with the provider
    described = conf.configuration_description
    assert [key for key in of_airflow if key[0] not in of_provider and key[1] not in described[key[0]]["options"]] == []


def test_the_folders_are_where_the_code_looks() -> None:
    mounts = {mount["name"]: mount["mountPath"] for mount in container()["volumeMounts"]}
    environ = {"WAYBILL_HOME": mounts["waybill-home"]}
    assert {"name": "WAYBILL_HOME", "value": mounts["waybill-home"]} in container()["env"]
    assert mounts["waybill-connections"] == str(folders_for(None, Path(mounts["waybill-home"]))[-1])
    assert mounts["waybill-engines"] == str(folder_of(None, environ) / "conf" / "engines")
    assert engine_named(by_name(container()["env"])["WAYBILL_ENGINE"]["value"], None).kind == "inline"


def test_every_value_is_one_that_the_chart_knows() -> None:
    assert {path for path in paths(values()) if not path.startswith("config.")} == KNOWN


def test_the_page_creates_what_the_values_name() -> None:
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    created = {
        name: set(re.findall(r"--from-literal=([\w-]+)=", rest))
        for name, rest in re.findall(r"kubectl create secret generic (\S+) (.*)", page)
    }
    given = values()
    assert [one for one in given["secret"] if one["secretKey"] not in created[one["secretName"]]] == []
    assert created[given["data"]["metadataSecretName"]] == {"connection"}
    assert created[given["fernetKeySecretName"]] == {"fernet-key", "api-secret-key", "jwt-secret"}
    assert {one["secretRef"]["name"] for one in container()["envFrom"]} < created.keys()
    maps = {volume["configMap"]["name"] for volume in template()["spec"]["volumes"] if "configMap" in volume}
    assert maps == set(re.findall(r"kubectl create configmap (\S+) ", page))


def test_the_image_is_what_the_checkout_pins() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [airflow] = [one for one in project["optional-dependencies"]["airflow"] if one.startswith("apache-airflow==")]
    release = airflow.partition("==")[2]
    text = (FOLDER / "Dockerfile").read_text()
    assert f"FROM apache/airflow:{release}-python3.11\n" in text
    assert values()["airflowVersion"] == release
    image = f"{values()['defaultAirflowRepository']}:{values()['defaultAirflowTag']}"
    assert values()["defaultAirflowTag"] == project["version"]
    assert container()["image"] == image
    assert f"-t {image} ." in text


def test_the_image_has_the_java_of_docker_compose_and_the_versions_of_the_lock() -> None:
    text = (FOLDER / "Dockerfile").read_text()
    compose = (ROOT / "docker-compose.yml").read_text()
    [packages] = set(re.findall(r"--no-install-recommends (.*?) && rm", compose))
    assert f"--no-install-recommends {packages} && rm" in text
    assert "--constraint /locks/requirements.lock --constraint /locks/kubernetes.lock" in text
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras["kubernetes"]) <= set((ROOT / "tests" / "kubernetes.lock").read_text().splitlines())


@pytest.mark.skipif(not CHART, reason="AIRFLOW_CHART names no chart")
def test_the_chart_s_own_schema_takes_the_values_and_knows_each() -> None:
    from jsonschema import Draft7Validator

    schema = json.loads(Path(CHART, "values.schema.json").read_text())
    assert [error.message for error in Draft7Validator(schema).iter_errors(values())] == []
    assert [path for path in paths(values()) if not _knows(schema, schema, path)] == []


def _knows(whole: dict[str, Any], schema: dict[str, Any], path: str) -> bool:
    here, _, rest = path.partition(".")
    key = here.removesuffix("[]")
    if "$ref" in schema:
        schema = {**schema, **whole["definitions"][schema["$ref"].rpartition("/")[2]]}
    below = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
    if not isinstance(below, dict):
        return False
    if here.endswith("[]"):
        below = below["items"]
    return not rest or _knows(whole, below, rest)


@pytest.mark.skipif(not CHART or not shutil.which("helm"), reason="AIRFLOW_CHART names no chart, or helm is missing")
def test_what_the_chart_makes_of_the_values_is_the_pod_template() -> None:
    command = ["helm", "template", "airflow", CHART, "--values", str(FOLDER / "values.yaml")]
    made = yaml.safe_load_all(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    [text] = [
        one["data"]["pod_template_file.yaml"] for one in made if one and "pod_template_file.yaml" in one.get("data", {})
    ]
    pod = yaml.safe_load(text)
    [base], spec = pod["spec"]["containers"], template()["spec"]
    for key in ("securityContext", "terminationGracePeriodSeconds", "restartPolicy"):
        assert pod["spec"][key] == spec[key]
    for key in ("name", "image", "imagePullPolicy", "securityContext", "resources", "envFrom"):
        assert base[key] == container()[key]
    volumes = {name: one for name, one in by_name(pod["spec"]["volumes"]).items() if name != "config"}
    assert volumes == by_name(spec["volumes"])
    mounts = {name: one for name, one in by_name(base["volumeMounts"]).items() if name != "config"}
    assert mounts == by_name(container()["volumeMounts"])
    variables = [one for one in container()["env"] if not re.match("AIRFLOW__(WORKERS|CORE__EXECUTION)", one["name"])]
    assert [one for one in variables if one not in base["env"]] == []
