"""The routes of Kafka Connect: paths, methods, bodies and status codes as its own server has them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import httpx
import pytest

from connect_core.api.guarding import MAX_BYTES
from connect_core.errors import Failure
from connect_core.ledger import Ledger
from connect_core.orchestration import control
from connect_core.orchestration.rest import Dag
from connect_core.service import kafka_connectors
from connect_core.version import code_version
from tests.unit.api.test_rocketmq_connect import served

SOURCE = {
    "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
    "tasks.max": "1",
    "file": "in.txt",
    "topic": "lines",
}
SINK = {
    "connector.class": "FileStreamSink",
    "tasks.max": "1",
    "file": "out.txt",
    "topics": "lines",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}
LINES = ("one\n", "two\n", "three\n")


@pytest.fixture(scope="module")
def server() -> Iterator[httpx.URL]:
    """One for all tests of a module: it looks for its ledger at each request."""
    with served(gets_change=False) as client:
        yield client.base_url


@pytest.fixture
def client(server: httpx.URL, folder: Path) -> Iterator[httpx.Client]:
    (folder / "in.txt").write_text("".join(LINES))
    (folder / "conf" / "connections").mkdir(parents=True)
    (folder / "conf" / "connections" / "main.yaml").write_text("rocketmq: {name_servers: ['127.0.0.1:1']}")
    with httpx.Client(base_url=server.join("/kc"), trust_env=False, verify=False) as client:
        yield client


def got(client: httpx.Client, path: str, **query: Any) -> Any:
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def created(client: httpx.Client, name: str = "in", config: dict[str, str] = SOURCE, **more: str) -> Any:
    answer = client.post("/connectors", json={"name": name, "config": config, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


def refused(answer: httpx.Response, code: int) -> str:
    assert answer.status_code == code, answer.text
    told = answer.json()
    assert told.keys() == {"error_code", "message"}
    assert told["error_code"] == code
    return str(told["message"])


def state(client: httpx.Client, name: str = "in") -> str:
    return str(got(client, f"/connectors/{name}/status")["connector"]["state"])


def ledger(folder: Path) -> Ledger:
    return Ledger.open(f"sqlite:///{folder / '.waybill' / 'ledger.db'}")


def test_who_answers(client: httpx.Client) -> None:
    assert got(client, "") == got(client, "/")
    told = got(client, "/")
    assert told.keys() == {"version", "commit", "kafka_cluster_id"}
    assert code_version() == f"{told['version']}+{told['commit']}"
    created(client)
    assert got(client, "/")["kafka_cluster_id"]


def test_a_connector_from_its_creation_to_its_end(client: httpx.Client) -> None:
    assert got(client, "/connectors") == []
    answer = client.post("/connectors", json={"name": "in", "config": SOURCE})
    assert (answer.status_code, answer.headers["location"]) == (201, "/kc/connectors/in")
    config = {"name": "in", **SOURCE}
    info = {"name": "in", "config": config, "tasks": [{"connector": "in", "task": 0}], "type": "source"}
    assert answer.json() == got(client, "/connectors/in") == info
    assert got(client, "/connectors/in/config") == config
    task = {"id": 0, "state": "RUNNING", "worker_id": "waybill"}
    connector = {"state": "RUNNING", "worker_id": "waybill"}
    status = {"name": "in", "connector": connector, "tasks": [task], "type": "source"}
    assert got(client, "/connectors/in/status") == status
    assert got(client, "/connectors/in/tasks/0/status") == task
    [told] = got(client, "/connectors/in/tasks")
    assert told == {"id": {"connector": "in", "task": 0}, "config": config | {"task.id": "0"}}
    assert got(client, "/connectors/in/tasks-config") == {"in-0": told["config"]}
    assert got(client, "/connectors") == ["in"]
    assert got(client, "/connectors", expand=["status", "info"]) == {"in": {"status": status, "info": info}}
    assert got(client, "/connectors", expand="status") == {"in": {"status": status}}
    assert got(client, "/connectors/in/topics") == {"in": {"topics": ["lines"]}}
    gone = client.delete("/connectors/in")
    assert (gone.status_code, gone.content) == (204, b"")
    assert got(client, "/connectors") == []
    assert got(client, "/connectors/in/topics") == {"in": {"topics": []}}


def test_states(client: httpx.Client) -> None:
    created(client)
    for verb, code, now in (("pause", 202, "PAUSED"), ("resume", 202, "RUNNING"), ("stop", 204, "STOPPED")):
        answer = client.put(f"/connectors/in/{verb}")
        assert (answer.status_code, answer.content, state(client)) == (code, b"", now)
    assert got(client, "/connectors/in/tasks") == []
    assert got(client, "/connectors/in/status")["tasks"] == []
    assert got(client, "/connectors") == ["in"]
    assert client.put("/connectors/in/config", json=SOURCE | {"errors.tolerance": "all"}).status_code == 200
    assert state(client) == "STOPPED"
    assert client.put("/connectors/in/resume").status_code == 202
    assert state(client) == "RUNNING"


@pytest.mark.parametrize("wanted", ["RUNNING", "PAUSED", "STOPPED", "stopped"])
def test_what_a_connector_does_first(client: httpx.Client, wanted: str) -> None:
    created(client, initial_state=wanted)
    assert state(client) == wanted.upper()


def test_a_connector_is_created_once(client: httpx.Client) -> None:
    created(client)
    again = client.post("/connectors", json={"name": "in", "config": SOURCE})
    assert refused(again, 409) == "Connector in already exists"
    client.put("/connectors/in/stop")
    refused(client.post("/connectors", json={"name": "in", "config": SOURCE}), 409)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "in"},
        {"config": SOURCE},
        {"name": "", "config": SOURCE},
        {"name": 5, "config": SOURCE},
        {"name": "in", "config": [SOURCE]},
        {"name": "in", "config": {}},
        {"name": "in", "config": SOURCE | {"name": "out"}},
        {"name": "in", "config": SOURCE, "initial_state": "FAILED"},
        {"name": "in", "config": SOURCE, "initial_state": 1},
        {"name": "in", "config": SOURCE, "intial_state": "STOPPED"},
        {"name": "in", "config": SOURCE | {"file": None}},
        {"name": "a b", "config": SOURCE},
        [],
        "in",
        None,
    ],
)
def test_a_body_that_is_refused_creates_nothing(client: httpx.Client, body: Any) -> None:
    assert refused(client.post("/connectors", json=body), 400)
    assert got(client, "/connectors") == []


def test_every_fault_is_told_at_its_key(client: httpx.Client) -> None:
    config = {"connector.class": "FileStreamSource", "fiel": "in.txt", "topic": "lines"}
    words = refused(client.put("/connectors/in/config", json=config), 400)
    assert words.startswith("Connector configuration is invalid and contains the following 2 error(s):\n")
    assert {line.partition(":")[0] for line in words.splitlines()[1:]} == {"fiel", "file"}
    outside = SOURCE | {"file": "/etc/passwd"}
    words = refused(client.put("/connectors/in/config", json=outside), 400)
    assert words.splitlines()[1].startswith("file: /etc/passwd is outside")
    [key] = [
        one["value"] for one in validated(client, "FileStreamSource", outside)["configs"] if one["value"]["errors"]
    ]
    assert key["name"] == "file"
    words = refused(client.put("/connectors/in/config", json=SOURCE | {"connector.class": "Nothing"}), 400)
    assert "FileStreamSourceConnector" in words


def test_a_configuration_is_put_whole_and_patched_by_key(client: httpx.Client, folder: Path) -> None:
    first = client.put("/connectors/in/config", json=SOURCE)
    assert (first.status_code, first.headers["location"]) == (201, "/kc/connectors/in")
    more = SOURCE | {"errors.tolerance": "all", "errors.retry.timeout": 5}
    changed = client.put("/connectors/in/config", json=more)
    assert (changed.status_code, "location" in changed.headers) == (200, False)
    assert changed.json()["config"] == {"name": "in", **more, "errors.retry.timeout": "5"}
    same = client.put("/connectors/in/config", json=got(client, "/connectors/in/config"))
    assert same.status_code == 200
    patched = client.patch("/connectors/in/config", json={"errors.retry.timeout": None, "topic": "others"})
    assert patched.status_code == 200
    assert patched.json()["config"] == {"name": "in", **SOURCE, "errors.tolerance": "all", "topic": "others"}
    assert client.put("/connectors/in/config", json=SOURCE).json()["config"] == {"name": "in", **SOURCE}
    refused(client.patch("/connectors/in/config", json={"file": None}), 400)
    assert got(client, "/connectors/in/config") == {"name": "in", **SOURCE}


def test_what_is_not_there(client: httpx.Client) -> None:
    for path in ("", "/config", "/status", "/tasks", "/tasks-config", "/tasks/0/status", "/offsets"):
        assert "no" in refused(client.get(f"/connectors/no{path}"), 404)
    for verb in ("pause", "resume", "stop", "topics/reset"):
        refused(client.put(f"/connectors/no/{verb}"), 404)
    for verb in ("restart", "tasks/0/restart"):
        refused(client.post(f"/connectors/no/{verb}"), 404)
    refused(client.patch("/connectors/no/config", json={}), 404)
    refused(client.patch("/connectors/no/offsets", json={"offsets": []}), 404)
    refused(client.delete("/connectors/no/offsets"), 404)
    refused(client.delete("/connectors/no"), 404)
    created(client)
    for task in ("1", "-1", "x"):
        refused(client.get(f"/connectors/in/tasks/{task}/status"), 404)
        refused(client.post(f"/connectors/in/tasks/{task}/restart"), 404)
    refused(client.get("/nothing"), 404)
    refused(client.delete("/connectors"), 405)
    refused(client.get("/connectors/a%2Fstop"), 404)


def fail(folder: Path, *, task: int = 0) -> None:
    with ledger(folder) as opened:
        uid = opened.connector("in").uid
        run = opened.begin_run(uid, "live", task=task, engine="spark, 4.0")
        why = Failure("Refused", "the server said no", family="Refused")
        opened.end_run(run, state="failed", failure=why, summary={})


def test_a_failure_has_its_trace_and_a_restart_needs_a_scheduler(client: httpx.Client, folder: Path) -> None:
    created(client)
    assert client.post("/connectors/in/restart").status_code == 204
    fail(folder)
    status = got(client, "/connectors/in/status")
    assert (status["connector"]["state"], status["tasks"][0]["state"]) == ("FAILED", "FAILED")
    assert "the server said no" in status["connector"]["trace"]
    assert "the server said no" in status["tasks"][0]["trace"]
    assert status["tasks"][0]["worker_id"] == "spark"
    assert "waybill run in" in refused(client.post("/connectors/in/restart"), 500)
    assert "waybill run in" in refused(client.post("/connectors/in/tasks/0/restart"), 500)
    client.put("/connectors/in/pause")
    assert client.post("/connectors/in/restart").status_code == 204


def test_a_restart_with_its_tasks_shows_what_it_does(client: httpx.Client) -> None:
    created(client)
    answer = client.post("/connectors/in/restart", params={"includeTasks": "true", "onlyFailed": "true"})
    assert (answer.status_code, answer.json()) == (202, got(client, "/connectors/in/status"))
    assert client.post("/connectors/in/tasks/0/restart").status_code == 204
    assert client.put("/connectors/in/topics/reset").status_code == 202


class Airflow:
    """What a restart asks of it."""

    def __init__(self) -> None:
        self.queued: list[str] = []

    def dags(self, *, tag: str, prefix: str, only_paused: bool) -> list[Dag]:
        return [] if only_paused else [Dag("replicate.in", is_paused=False, is_stale=False, file_token="")]

    def runs(self, dag_id: str, *, states: tuple[str, ...], limit: int) -> list[str]:
        assert (dag_id, states) == ("replicate.in", ("queued",))
        return self.queued[:limit]

    def trigger(self, dag_id: str) -> None:
        self.queued.append(dag_id)


def test_what_failed_is_begun_again_by_airflow_once(
    client: httpx.Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    created(client)
    airflow = Airflow()
    monkeypatch.setattr(control, "airflow_of", lambda home, settings: nullcontext(airflow))
    assert client.post("/connectors/in/restart").status_code == 204
    assert airflow.queued == []
    fail(folder)
    for _ in range(2):
        answer = client.post("/connectors/in/restart", params={"onlyFailed": "true"})
        assert answer.status_code == 202
        told = answer.json()
        assert (told["connector"]["state"], told["tasks"][0]["state"]) == ("RESTARTING", "RESTARTING")
    assert client.post("/connectors/in/tasks/0/restart").status_code == 204
    assert airflow.queued == ["replicate.in"]


# ------------------------------------------------------------------------------------------------------------- offsets


def at(folder: Path, offset: int | None) -> dict[str, Any]:
    to = None if offset is None else {"offset": offset}
    return {"offsets": [{"partition": {"partition": str(folder / "in.txt")}, "offset": to}]}


def test_offsets_of_a_connector_that_is_stopped(client: httpx.Client, folder: Path) -> None:
    created(client)
    assert got(client, "/connectors/in/offsets") == {"offsets": []}
    for answer in (client.patch("/connectors/in/offsets", json=at(folder, 4)), client.delete("/connectors/in/offsets")):
        assert "STOPPED" in refused(answer, 400)
    client.put("/connectors/in/stop")
    for offset in (4, 8):
        answer = client.patch("/connectors/in/offsets", json=at(folder, offset))
        assert answer.status_code == 200, answer.text
        assert answer.json() == {"message": "The offsets for this connector have been altered successfully"}
        assert got(client, "/connectors/in/offsets") == at(folder, offset)
    shown = got(client, "/connectors/in/offsets")
    assert client.patch("/connectors/in/offsets", json=shown).status_code == 200
    assert client.patch("/connectors/in/offsets", json=at(folder, None)).status_code == 200
    assert got(client, "/connectors/in/offsets") == at(folder, 0)
    client.patch("/connectors/in/offsets", json=at(folder, 8))
    assert client.delete("/connectors/in/offsets").json() == {
        "message": "The offsets for this connector have been reset successfully"
    }
    assert got(client, "/connectors/in/offsets") == at(folder, 0)
    with ledger(folder) as opened:
        steps = opened.offset_history(opened.connector("in").uid, None, 50, "live")
    assert {step.why for step in steps if step.who} == {"by the routes of Kafka Connect"}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"offsets": []},
        {"offsets": {}},
        {"offsets": [5]},
        {"offsets": [{"partition": {}, "offset": {"offset": 1}}]},
        {"offsets": [{"partition": {"partition": "in.txt"}}]},
        {"offsets": [{"partition": {"partition": "nothing.txt"}, "offset": {"offset": 0}}]},
        {"offsets": [{"partition": {"partition": "nothing.txt"}, "offset": None}]},
    ],
)
def test_offsets_that_are_refused(client: httpx.Client, folder: Path, body: Any) -> None:
    created(client, initial_state="STOPPED")
    refused(client.patch("/connectors/in/offsets", json=body), 400)
    assert got(client, "/connectors/in/offsets") in ({"offsets": []}, at(folder, 0))


@pytest.mark.parametrize("offset", [-1, 1 << 63, 1 << 80, 1.5, "4", True, 5, 1_000])
def test_an_offset_that_is_none_is_refused(client: httpx.Client, folder: Path, offset: Any) -> None:
    created(client, initial_state="STOPPED")
    client.patch("/connectors/in/offsets", json=at(folder, 4))
    refused(client.patch("/connectors/in/offsets", json=at(folder, offset)), 400)
    assert got(client, "/connectors/in/offsets") == at(folder, 4)


def test_of_many_offsets_all_are_moved_or_none(client: httpx.Client, folder: Path) -> None:
    created(client, initial_state="STOPPED")
    [good], [bad] = at(folder, 4)["offsets"], at(folder / "more", 0)["offsets"]
    refused(client.patch("/connectors/in/offsets", json={"offsets": [good, bad]}), 400)
    assert got(client, "/connectors/in/offsets") == at(folder, 0)
    refused(client.patch("/connectors/in/offsets", json={"offsets": [good, good]}), 400)


# ------------------------------------------------------------------------------------------------- classes and loggers


CONVERTERS = "io.confluent.connect.avro."


def test_classes_and_their_keys(client: httpx.Client) -> None:
    listed = got(client, "/connector-plugins")
    assert {one["type"] for one in listed} == {"source", "sink"}
    every = got(client, "/connector-plugins", connectorsOnly="false")
    assert every[: len(listed)] == listed
    assert {one["type"] for one in every[len(listed) :]} == {"transformation", "converter", "predicate"}
    for kind, key in [
        ("Cast$Value", "spec"),
        ("TopicNameMatches", "pattern"),
        (f"{CONVERTERS}AvroConverter", "schema.registry.url"),
    ]:
        [must] = [one for one in got(client, f"/connector-plugins/{kind}/config") if one["name"] == key]
        assert (must["required"], must["importance"]) == (True, "HIGH")
    assert {"class": SOURCE["connector.class"], "type": "source"}.items() <= next(
        one for one in listed if one["class"] == SOURCE["connector.class"]
    ).items()
    keys = {one["name"]: one for one in got(client, "/connector-plugins/FileStreamSink/config")}
    assert {"file", "topics", "tasks.max", "transforms", "connector.class"} <= keys.keys()
    assert keys["file"]["required"]
    assert keys["file"]["documentation"] == "the file to write"
    assert not keys["errors.tolerance"]["required"]
    refused(client.get("/connector-plugins/Nothing/config"), 404)


def validated(client: httpx.Client, kind: str, config: Any) -> Any:
    answer = client.put(f"/connector-plugins/{kind}/config/validate", json=config)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_configuration_is_judged_and_nothing_is_created(client: httpx.Client) -> None:
    good = validated(client, "FileStreamSource", SOURCE)
    assert (good["name"], good["error_count"]) == (SOURCE["connector.class"], 0)
    assert good["groups"] == ["Common", "FileStreamSourceConnector"]
    values = {one["value"]["name"]: one["value"] for one in good["configs"]}
    assert values["file"] == {
        "name": "file",
        "value": "in.txt",
        "recommended_values": [],
        "errors": [],
        "visible": True,
    }
    assert all(one["definition"]["name"] == one["value"]["name"] for one in good["configs"])
    bad = validated(client, "FileStreamSource", {"topic": "lines", "nothing": "x"})
    errors = {one["value"]["name"]: one["value"]["errors"] for one in bad["configs"] if one["value"]["errors"]}
    assert (bad["error_count"], errors.keys()) == (2, {"file", "nothing"})
    refused(client.put("/connector-plugins/FileStreamSink/config/validate", json=SOURCE), 400)
    refused(client.put("/connector-plugins/Nothing/config/validate", json={}), 404)
    refused(client.put("/connector-plugins/FileStreamSource/config/validate", json=[]), 400)
    assert got(client, "/connectors") == []


def test_levels_of_loggers(client: httpx.Client) -> None:
    logger = logging.getLogger("connect_core.api.kafka_connect")
    before = logger.level
    try:
        path = f"/admin/loggers/{logger.name}"
        assert client.put(path, json={"level": "debug"}).json() == [logger.name]
        assert logger.level == logging.DEBUG
        told = got(client, path)
        assert told["level"] == "DEBUG"
        assert isinstance(told["last_modified"], int)
        assert got(client, "/admin/loggers")[logger.name] == told
        assert client.put(path, params={"scope": "cluster"}, json={"level": "WARN"}).status_code == 204
    finally:
        logger.setLevel(before)
    assert got(client, "/admin/loggers/root")["level"] in ("WARN", "INFO", "DEBUG")
    refused(client.put(path, json={"level": "LOUD"}), 404)
    refused(client.put(path, json={}), 400)
    for other in ("root", "httpx", "connect_core.nothing"):
        refused(client.put(f"/admin/loggers/{other}", json={"level": "DEBUG"}), 404)
    refused(client.get("/admin/loggers/nothing"), 404)


# ------------------------------------------------------------------------------------------------- secrets, and guards

MQTT = {
    "connector.class": "MqttSourceConnector",
    "mqttBrokerUrl": "tcp://localhost:1883",
    "mqttAccessKey": "${env:WHO}",
    "mqttSecretKey": "${env:WORD}",
    "sourceTopic": "t/#",
    "topic": "lines",
}


def test_a_secret_is_never_shown_and_a_mask_never_stored(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setenv("WHO", "somebody")
    monkeypatch.setenv("WORD", "hush-hush")
    plain = {**MQTT, "mqttSecretKey": "hush-hush"}
    for answer in (
        client.put("/connectors/in/config", json=plain),
        client.put("/connector-plugins/MqttSource/config/validate", json=plain),
        client.post("/connectors", json={"name": "in", "config": plain}),
    ):
        assert "hush" not in answer.text
    masked = {**MQTT, "mqttSecretKey": "********"}
    assert "mqttSecretKey" in refused(client.put("/connectors/in/config", json=masked), 400)
    [wrong] = [
        one["value"]
        for one in validated(client, "MqttSource", masked)["configs"]
        if one["value"]["name"] == "mqttSecretKey"
    ]
    assert wrong["errors"]
    assert wrong["value"] == "********"
    created(client, config=MQTT)
    config = got(client, "/connectors/in/config")
    assert config["mqttSecretKey"] == "${env:WORD}"
    assert client.put("/connectors/in/config", json=config).status_code == 200
    refused(client.patch("/connectors/in/config", json={"mqttSecretKey": "********"}), 400)
    assert got(client, "/connectors/in/config") == config


def test_a_native_document_is_shown_and_not_overwritten(client: httpx.Client, folder: Path, applied: None) -> None:
    [name] = got(client, "/connectors")
    assert "waybill.document" in got(client, f"/connectors/{name}/config")
    refused(client.put(f"/connectors/{name}/config", json=SOURCE), 400)
    refused(client.patch(f"/connectors/{name}/config", json=SOURCE), 400)


def test_what_is_refused_before_any_route(client: httpx.Client) -> None:
    refused(client.get("/connectors", headers={"Host": "example.com"}), 403)
    refused(client.post("/connectors", json={}, headers={"Origin": "https://example.com"}), 403)
    refused(client.post("/connectors", content=b" " * (MAX_BYTES + 1)), 413)
    refused(client.post("/connectors", content=iter([b" " * MAX_BYTES, b" "])), 413)


def test_what_nobody_expected_is_told_without_its_words(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> list[str]:
        raise RuntimeError("hush")

    monkeypatch.setattr(kafka_connectors, "names", broken)
    assert refused(client.get("/connectors"), 500) == "HTTP 500 Internal Server Error"


def test_options_that_nobody_knows_are_hidden_and_may_come_back_so(client: httpx.Client) -> None:
    """They may be secrets by any name. A configuration that was read can be sent again."""
    created(client, config=SOURCE | {"value.converter.jwt": "canary", "value.converter.schemas.enable": "false"})
    shown = got(client, "/connectors/in/config")
    assert (shown["value.converter.jwt"], shown["value.converter.schemas.enable"]) == ("********", "false")
    assert client.put("/connectors/in/config", json=shown).status_code == 200


def test_of_many_changes_at_once_none_is_lost(client: httpx.Client) -> None:
    created(client)

    def put(number: int) -> httpx.Response:
        return client.put("/connectors/in/config", json=SOURCE | {"errors.retry.timeout": str(number)})

    with ThreadPoolExecutor(16) as threads:
        told = list(threads.map(put, range(200)))
    assert {one.status_code for one in told} <= {200, 409}
    taken = {number for number, one in enumerate(told) if one.status_code == 200}
    assert int(got(client, "/connectors/in/config")["errors.retry.timeout"]) in taken


def test_of_many_patches_at_once_each_that_is_answered_stays(client: httpx.Client) -> None:
    created(client)
    keys = ("errors.tolerance", "errors.retry.timeout", "errors.retry.delay.max.ms", "errors.log.enable")
    values = dict(zip(keys, ("all", "7", "8", "true"), strict=True))

    def patch(key: str) -> httpx.Response:
        return client.patch("/connectors/in/config", json={key: values[key]})

    with ThreadPoolExecutor(4) as threads:
        told = dict(zip(keys, threads.map(patch, keys), strict=True))
    assert {one.status_code for one in told.values()} == {200}
    config = got(client, "/connectors/in/config")
    assert all(config[key] == values[key] for key, one in told.items() if one.status_code == 200)


def test_of_many_creations_at_once_one_is_answered(client: httpx.Client) -> None:
    def create(number: int) -> int:
        config = SOURCE | {"errors.retry.timeout": str(number)}
        return client.post("/connectors", json={"name": "in", "config": config}).status_code

    created(client, "other")
    with ThreadPoolExecutor(8) as threads:
        told = list(threads.map(create, range(16)))
    assert sorted(told) == [201, *[409] * 15]
    assert int(got(client, "/connectors/in/config")["errors.retry.timeout"]) == told.index(201)
