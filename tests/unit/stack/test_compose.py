"""docker-compose.yml starts what `dev up` starts: versions, settings, ports, memory."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import make_url

import connect_core
from connect_core.stack import airflow, airflow_settings, jars, mqtt_broker, postgresql, rocketmq
from connect_core.stack.__main__ import main
from connect_core.stack.lifecycle import KINDS
from connect_core.stack.parts import Kind

ROOT = Path(connect_core.__file__).parents[1]


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return document


def properties(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_it_has_the_parts_of_the_stack_on_the_host_s_network(compose: dict[str, Any]) -> None:
    assert set(compose["services"]) == set(KINDS)
    assert {service["network_mode"] for service in compose["services"].values()} == {"host"}


@pytest.mark.parametrize("part", ["name-server", "broker"])
def test_rocketmq_is_of_the_default_version(compose: dict[str, Any], part: str) -> None:
    assert compose["services"][part]["image"] == f"apache/rocketmq:{jars.VERSION}"


@pytest.mark.parametrize(
    ("part", "arguments"), [("name-server", rocketmq.NAME_SERVER_JVM), ("broker", rocketmq.BROKER_JVM)]
)
def test_the_arguments_of_java_are_the_same(compose: dict[str, Any], part: str, arguments: tuple[str, ...]) -> None:
    assert tuple(compose["services"][part]["environment"]["JAVA_OPT_EXT"].split()) == arguments


def test_name_server_and_broker_listen_where_dev_up_does(compose: dict[str, Any]) -> None:
    name_server = rocketmq.NameServer.well_known["remoting"]
    assert properties(compose["configs"]["namesrv"]["content"]) == rocketmq.name_server_addresses(name_server)
    own = {**rocketmq.Broker.well_known, "replication": 10912}
    assert properties(compose["configs"]["addresses"]["content"]) == rocketmq.broker_addresses(own, name_server)


def test_the_broker_reads_the_shipped_settings(compose: dict[str, Any]) -> None:
    source, target, _ = compose["services"]["broker"]["volumes"][0].split(":")
    assert (ROOT / source).resolve() == rocketmq.SETTINGS / "broker.conf"
    assert target in compose["services"]["broker"]["command"][-1]


def test_postgresql_has_the_shipped_settings_and_the_ledger(compose: dict[str, Any]) -> None:
    service = compose["services"]["postgresql"]
    given = dict(word.removeprefix("-c").split("=", 1) for word in service["command"][1:])
    assert given == postgresql.postgresql_settings({}) | {"listen_addresses": "127.0.0.1"}
    assert service["image"] == f"postgres:{postgresql.VERSION}"
    assert service["environment"]["POSTGRES_DB"] == postgresql.DATABASE


def test_the_mqtt_broker_is_asked_for_and_reads_the_shipped_settings(compose: dict[str, Any]) -> None:
    service = compose["services"]["mqtt-broker"]
    assert service["profiles"] == ["mqtt"]
    source, target, _ = service["volumes"][0].split(":")
    assert (ROOT / source).resolve() == rocketmq.SETTINGS / "mosquitto.conf"
    assert target in service["command"][-1]
    listener = f"listener {mqtt_broker.MqttBroker.well_known['mqtt']} 127.0.0.1"
    assert listener in compose["configs"]["listener"]["content"].splitlines()
    assert listener in mqtt_broker.mosquitto_document(Path("/tmp"), 1883).splitlines()


def test_the_engine_is_started_by_the_same_code(compose: dict[str, Any]) -> None:
    assert compose["services"]["engine"]["command"][1:4] == ["-m", "connect_core.stack", "engine"]
    assert "requirements.lock" in compose["services"]["engine"]["build"]["dockerfile_inline"]


@pytest.mark.parametrize("kind", airflow.KINDS, ids=lambda kind: kind.name)
def test_airflow_is_started_by_the_same_code_on_the_same_server(compose: dict[str, Any], kind: Kind) -> None:
    service = compose["services"][kind.name]
    assert service["command"][1:] == ["-m", "connect_core.stack", kind.name, ".waybill"]
    assert set(service["depends_on"]) == set(kind.after)
    given = service["environment"]["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]
    assert make_url(given).database == airflow_settings.DATABASE
    assert make_url(given).set(database="waybill") == make_url(service["environment"]["WAYBILL_DATABASE_URL"])


def test_rest_calls_are_answered_by_the_same_code(compose: dict[str, Any]) -> None:
    assert compose["services"]["rest"]["command"][1:] == ["-m", "connect_core.stack", "rest", ".waybill"]
    assert set(compose["services"]["rest"]["depends_on"]) == set(KINDS["rest"].after)


@pytest.mark.parametrize("part", list(KINDS))
def test_stopping_is_given_the_same_time(compose: dict[str, Any], part: str) -> None:
    grace = compose["services"][part].get("stop_grace_period", "10s")  # 10 s is the default of compose
    assert int(grace.removesuffix("s")) >= KINDS[part].stop_grace_s


def test_the_lock_has_what_the_project_names() -> None:
    locked = {line.lower() for line in (ROOT / "requirements.lock").read_text().splitlines() if "==" in line}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    named = {line.lower() for line in project["dependencies"] + extras["airflow"] + extras["dev"]}
    assert named <= locked


def test_tasks_in_containers_find_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No record of a stack says where it is: it is where its container always is."""
    started: list[dict[str, str]] = []
    monkeypatch.setattr(airflow.Component, "prepare", lambda *_: None)
    monkeypatch.setattr(os, "execve", lambda _program, _command, environment: started.append(environment))
    assert main(["scheduler", str(tmp_path)]) == 0
    told = json.loads(started[0]["AIRFLOW_CONN_WAYBILL_ENGINE"])
    assert (told["host"], told["port"]) == ("sc://localhost", KINDS["engine"].well_known["grpc"])
    assert told["password"] == (tmp_path / "engine.token").read_text().strip()
