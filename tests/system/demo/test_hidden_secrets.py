"""Secrets that workers use are nowhere but where they were put: whatever a run writes, shows or starts is looked
through."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from connect_core import stack
from connect_core.orchestration import names
from connect_core.orchestration.rest import Airflow
from tests.site import Site
from tests.system.demo.test_airflow import environment, finished, session, until
from tests.system.demo.test_airflow import is_there as dag_is_there

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]

CANARY = f"kanarienvogel-{uuid.uuid4().hex}"
HEARD = CANARY.encode()


def test_a_secret_is_nowhere_but_where_it_was_put(airflow: stack.Stack) -> None:
    """In documents that work, that fail, and that are refused."""
    home = Site(airflow.home.parent, f"t-{uuid.uuid4().hex[:12]}", [airflow.name_servers], airflow.database_url)
    kept = home.folder / "hidden.json"
    kept.write_text(json.dumps({"key": CANARY}))
    documents = _documents(home, airflow.mqtt_port)
    home.apply_all(documents)
    try:
        with _command_lines() as lines, session(airflow) as client:
            for name in ("hidden-out", "hidden-in"):
                _run(client, name)
            said = home.waybill("--debug", "run", "hidden-away", "--engine", "inline", code=3)
            with httpx.Client(base_url=_rest(airflow), trust_env=False, timeout=30) as rest:
                refused = rest.post("/connectors/hidden-plain", json=_in_plain_text(airflow.mqtt_port)).text
                answers = [said, refused, *_answers(rest, list(documents)), *_of_airflow(airflow, list(documents))]
    finally:
        for name in documents:
            home.waybill("connectors", "delete", name, "--yes", "--force")
    assert "secret in plain text" in refused
    assert len(answers) > 50
    assert len(lines) > 20
    assert [one for one in (*answers, *lines) if CANARY in one] == []
    assert _files_with_it(home.folder) == [kept]
    assert _rows_with_it(airflow.database_url) == []
    assert _rows_with_it(environment(airflow, stack.SCHEDULER)["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]) == []


def _documents(home: Site, mqtt_port: int) -> dict[str, dict[str, Any]]:
    (home.folder / "hidden.log").write_text("one\ntwo\n")
    login = {"user": "somebody", "password": f"${{file:{home.folder / 'hidden.json'}#key}}"}
    mqtt = {"host": "127.0.0.1", "topic": "hidden", **login}
    cluster = {"name_servers": home.name_servers, **login}
    lines = {"file": {"path": "hidden.log"}}
    manual = {"schedule": {"manual": True}}
    return {
        "hidden-in": {"source": lines, "sink": {"rocketmq": {**cluster, "topic": home.topic}}, **manual},
        "hidden-out": {"source": lines, "sink": {"mqtt": {**mqtt, "port": mqtt_port}}, **manual},
        "hidden-away": {"source": lines, "sink": {"mqtt": {**mqtt, "port": 1, "connect_timeout_s": 0.5}}, **manual},
    }


def _in_plain_text(port: int) -> dict[str, object]:
    return {
        "connector.class": "org.apache.rocketmq.connect.mqtt.connector.MqttSinkConnector",
        "mqttBrokerUrl": f"tcp://127.0.0.1:{port}",
        "mqttAccessKey": "somebody",
        "mqttSecretKey": CANARY,
        "connect.topicnames": "a",
        "sinkTopic": "b",
    }


def _run(client: Airflow, name: str) -> None:
    dag = names.live_dag(name)
    until(lambda: dag_is_there(client, dag), f"the DAG {dag} is found")
    client.trigger(dag, run_id="hidden")
    assert finished(client, dag, "hidden").state == "success"


def _rest(airflow: stack.Stack) -> str:
    return f"http://127.0.0.1:{airflow.part(stack.REST).ports['http']}"


def _answers(rest: httpx.Client, connectors: list[str]) -> Iterator[str]:
    """Of every route of the three APIs that is read: of all connectors, and of each of these. No GET changes anything
    but those of RocketMQ Connect, which end with a verb."""
    for below in ("", "/kc", "/api/v1"):
        routes = rest.get(f"{below}/openapi.json").json()["paths"]
        for path in (path for path, methods in routes.items() if "get" in methods):
            before, named, rest_of = path.partition("{")
            behind = rest_of.partition("}")[2]
            if (
                "{" in behind
                or behind.endswith(("/stop", "/pause", "/resume", "/events"))
                or path.lower().endswith("all")
            ):
                continue
            of = connectors if named else [""]
            yield from (rest.get(f"{below}{before}{name}{behind}").text for name in of)


def _of_airflow(airflow: stack.Stack, connectors: list[str]) -> Iterator[str]:
    login = {"username": airflow.airflow_user, "password": airflow.airflow_password}
    with httpx.Client(base_url=airflow.airflow_url, timeout=30) as web:
        web.headers["Authorization"] = f"Bearer {web.post('/auth/token', json=login).json()['access_token']}"
        for dag in map(names.live_dag, connectors):
            yield web.get(f"/api/v2/dagSources/{dag}").text
            yield web.get(f"/api/v2/dags/{dag}/details").text
            yield web.get(f"/api/v2/dags/{dag}/dagRuns/~/taskInstances/~/xcomEntries").text


@contextmanager
def _command_lines() -> Iterator[set[str]]:
    """Of all processes that there are meanwhile."""
    seen: set[str] = set()
    over = Event()

    def look() -> None:
        while not over.wait(0.05):
            for entry in Path("/proc").iterdir():
                if entry.name.isdigit():
                    seen.add(_command_line(entry))

    looking = Thread(target=look)
    looking.start()
    try:
        yield seen
    finally:
        over.set()
        looking.join()


def _command_line(entry: Path) -> str:
    try:
        return (entry / "cmdline").read_bytes().decode(errors="replace")
    except OSError:  # it has ended
        return ""


def _files_with_it(folder: Path) -> list[Path]:
    found = []
    for path in folder.rglob("*"):
        try:
            if path.is_file() and HEARD in path.read_bytes():
                found.append(path)
        except FileNotFoundError:  # a server has removed it
            continue
    return found


def _rows_with_it(database_url: str) -> list[str]:
    engine = sa.create_engine(database_url)
    try:
        tables = sa.inspect(engine).get_table_names()
        assert len(tables) > 10
        with engine.connect() as asking:
            wanted = {"wanted": f"%{CANARY}%"}
            return [
                table
                for table in tables
                if asking.execute(sa.text(f'SELECT 1 FROM "{table}" AS t WHERE t::text LIKE :wanted'), wanted).first()
            ]
    finally:
        engine.dispose()
