"""The routes of RocketMQ Connect: paths, envelopes, names and words as its own server has them."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
import uvicorn

from connect_core.api import guarding
from connect_core.api.app import made
from connect_core.api.guarding import MAX_BYTES
from connect_core.config.references import MASK
from connect_core.errors import Failure
from connect_core.ledger import Ledger
from tests.faults.kit.processes import wait_for

SOURCE = {
    "connector.class": "org.apache.rocketmq.connect.file.FileSourceConnector",
    "filename": "logs/a.log",
    "connect.topicname": "fileTopic",
}
SINK = {
    "connector.class": "org.apache.rocketmq.connect.file.FileSinkConnector",
    "filename": "out/a.txt",
    "connect.topicnames": "fileTopic",
}


@contextmanager
def served(*, gets_change: bool, login: bool = False) -> Iterator[httpx.Client]:
    application = made(gets_change=gets_change, login=login)
    server = uvicorn.Server(uvicorn.Config(application, port=0, log_level="warning"))
    thread = Thread(target=server.run)
    thread.start()
    try:
        wait_for(lambda: server.started, "the server listens")
        [listener] = server.servers[0].sockets
        with httpx.Client(
            base_url=f"http://localhost:{listener.getsockname()[1]}", trust_env=False, verify=False
        ) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def server() -> Iterator[httpx.URL]:
    """One for all tests of a module: it looks for its ledger at each request."""
    with served(gets_change=True) as client:
        yield client.base_url


@pytest.fixture
def client(server: httpx.URL, folder: Path) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server, trust_env=False, verify=False) as client:
        yield client


def got(client: httpx.Client, path: str, **query: str) -> Any:
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def create(client: httpx.Client, name: str, config: dict[str, Any]) -> Any:
    return client.post(f"/connectors/{name}", json=config).json()


def states(client: httpx.Client) -> dict[str, str]:
    return {name: one["status"]["connector"]["state"] for name, one in got(client, "/connectors/list")["body"].items()}


def test_a_connector_from_its_creation_to_its_end(client: httpx.Client) -> None:
    assert got(client, "/connectors/list") == {"status": 200, "body": {}}
    assert create(client, "in", SOURCE) == {"status": 200, "body": SOURCE}
    info = {"name": "in", "config": SOURCE, "tasks": [{"connector": "in", "task": 0}], "type": "SOURCE"}
    assert got(client, "/connectors/in/config") == {"status": 200, "body": info}
    task = {"id": 0, "state": "RUNNING", "trace": None, "workerId": "waybill"}
    connector = {"state": "RUNNING", "trace": None, "workerId": "waybill"}
    status = {"name": "in", "connector": connector, "tasks": [task], "type": "SOURCE"}
    assert got(client, "/connectors/in/status") == {"status": 200, "body": status}
    assert got(client, "/connectors/list")["body"] == {"in": {"status": status, "info": info}}
    assert got(client, "/connectors/in/tasks/0/status") == {"status": 200, "body": task}
    [told] = got(client, "/connectors/in/tasks")["body"]
    assert told["id"] == {"connector": "in", "task": 0}
    assert told["config"] == SOURCE | {
        "task.id": "0",
        "task.class": "org.apache.rocketmq.connect.file.FileSourceTask",
    }
    assert got(client, "/connectors/in/pause")["body"] == "Connector [in] paused successfully"
    assert states(client) == {"in": "PAUSED"}
    assert got(client, "/connectors/in/resume")["body"] == "Connector [in] resumed successfully"
    assert states(client) == {"in": "RUNNING"}
    assert got(client, "/connectors/in/stop")["body"] == "Connector [in] deleted successfully"
    assert states(client) == {}
    gone = {"errorCode": 500, "message": "Connector [in] does not exist"}
    assert [got(client, f"/connectors/in/{verb}") for verb in ("stop", "pause", "status", "config")] == [gone] * 4
    assert got(client, "/connectors/in/tasks") == {"status": 200, "body": []}


def test_what_is_created_again_goes_on_as_the_same_connector(client: httpx.Client, folder: Path) -> None:
    create(client, "in", SOURCE)
    with Ledger.open(f"sqlite:///{folder / '.waybill' / 'ledger.db'}") as ledger:
        uid = ledger.connector("in").uid
        got(client, "/connectors/in/stop")
        assert create(client, "in", SOURCE)["status"] == 200
        found = ledger.connector("in")
        assert (found.uid, found.target_state, found.revision) == (uid, "running", 1)
        got(client, "/connectors/in/pause")
        assert create(client, "in", SOURCE | {"errors.tolerance": "all"})["status"] == 200
        assert states(client) == {"in": "PAUSED"}
        assert ledger.connector("in").revision == 2


def test_the_same_again_is_refused_and_another_configuration_changes_it(client: httpx.Client) -> None:
    assert got(client, "/connectors/in", config=json.dumps(SOURCE))["status"] == 200
    again = {"errorCode": 500, "message": "Connector with same config already exist."}
    assert create(client, "in", SOURCE) == again
    assert create(client, "in", SOURCE | {"name": "in"}) == again
    assert got(client, "/connectors/in", config=json.dumps(SOURCE)) == again
    assert create(client, "in", SOURCE | {"errors.tolerance": "all"})["status"] == 200
    assert create(client, "in", SOURCE | {"errors.tolerance": "all", "errors.retry.timeout": 5})["status"] == 200
    assert got(client, "/connectors/in/config")["body"]["config"]["errors.retry.timeout"] == "5"


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("", 400, "Failed! query param 'config' is required "),
        ("  ", 400, "Failed! query param 'config' is required "),
        ("{", 400, "Failed! query param 'config' is malformed"),
        ("[1]", 400, "Failed! query param 'config' is malformed"),
        ("[" * 100_000, 400, "Failed! query param 'config' is malformed"),
        ('{"filename": "a"}', 500, "Request config key: connector.class"),
        ('{"version": 1, "connector.class": "a"}', 500, "waybill apply"),
        (json.dumps(SOURCE | {"filename": None}), 500, "The value of filename is null"),
        (json.dumps(SOURCE | {"connector.class": "Nowhere"}), 500, "connector.class: there is no 'Nowhere' here"),
        (json.dumps({"connector.class": "FileSink", "filename": "out/a"}), 500, "connect.topicnames: is missing"),
    ],
)
def test_what_is_no_configuration_is_refused_with_its_key(
    text: str, code: int, words: str, client: httpx.Client
) -> None:
    told = client.post("/connectors/in", content=text)
    assert (told.status_code, told.json()["errorCode"]) == (200, code)
    assert words in told.json()["message"]
    assert states(client) == {}


def test_a_secret_is_shown_nowhere(client: httpx.Client, folder: Path) -> None:
    secrets = {
        "ssl.keystore.key": "-----BEGIN canary",
        "token": "canary",
        "basic.auth.user.info": "u:canary",
        "schema.registry.url": "https://u:canary@h",
    }
    hidden = {
        "ssl.keystore.key": MASK,
        "token": MASK,
        "basic.auth.user.info": MASK,
        "schema.registry.url": f"https://u:{MASK}@h",
    }
    given = SOURCE | {f"value.converter.{name}": value for name, value in secrets.items()} | {"name": "other"}
    assert create(client, "in", given)["body"].items() >= {f"value.converter.{n}": v for n, v in hidden.items()}.items()
    paths = ("config", "tasks", "status")
    shown = [client.get(f"/connectors/in/{path}").text for path in paths]
    shown += [client.get(path).text for path in ("/connectors/list", "/allocated/tasks", "/getConfigInfo")]
    assert "canary" not in "".join(shown)
    assert b"canary" not in (folder / ".waybill" / "ledger.db").read_bytes()


def test_all_of_them_at_once(client: httpx.Client) -> None:
    for verb, word in (("stop", "deleted"), ("pause", "paused"), ("resume", "resumed")):
        none = f"No connector needs to be {word}, please add connector first"
        assert got(client, f"/connectors/{verb}/all") == {"status": 200, "body": none}
    create(client, "in", SOURCE)
    create(client, "out", SINK)
    assert got(client, "/connectors/pause/all")["body"] == "2 connectors are suspended"
    assert states(client) == {"in": "PAUSED", "out": "PAUSED"}
    assert got(client, "/connectors/resume/all")["body"] == "2 connectors are resumed"
    assert got(client, "/connectors/stop/all")["body"] == "[in, out] connectors are deleted"
    create(client, "in", SOURCE)
    assert got(client, "/connectors/stopAll")["body"] == "[in] connectors are deleted"
    assert states(client) == {}


def test_a_task_that_fails_says_why_and_a_connector_that_needs_somebody_has_failed(
    client: httpx.Client, folder: Path
) -> None:
    create(client, "in", SOURCE)
    with Ledger.open(f"sqlite:///{folder / '.waybill' / 'ledger.db'}") as ledger:
        run = ledger.begin_run(ledger.connector("in").uid, "live", task=0, engine="spark")
        why = Failure("Refused", "The broker says no", "fileTopic", "Give it the right", "Refused")
        ledger.end_run(run, state="failed", failure=why, summary={})
    told = got(client, "/connectors/in/status")["body"]
    assert told["connector"] == {"state": "FAILED", "trace": None, "workerId": "spark"}
    [task] = told["tasks"]
    assert (task["state"], task["workerId"]) == ("FAILED", "spark")
    assert "The broker says no [fileTopic]. Give it the right" in task["trace"]
    assert [one["connectorName"] for one in got(client, "/allocated/tasks")["body"]["errorTasks"]] == ["in"]
    assert got(client, "/getClusterInfo") == {"status": 200, "body": ["spark"]}


def test_what_its_command_line_calls_is_there(client: httpx.Client) -> None:
    create(client, "in", SOURCE)
    assert got(client, "/getConfigInfo")["body"]["connectorConfigs"] == {"in": SOURCE}
    assert got(client, "/getAllocatedInfo")["body"] == {
        "workers": ["waybill"],
        "connectors": ["in"],
        "tasks": ["in-0"],
    }
    named = got(client, "/getAllocatedConnectors")["in"]["properties"]
    assert (named["topic"], named["update-timestamp"].isdecimal()) == ("fileTopic", True)
    [task] = got(client, "/getAllocatedTasks")["pendingTasks"]
    assert (task["connectorName"], task["state"]) == ("in", "RUNNING")
    assert task["configs"]["properties"]["task-class"].endswith(".FileSourceTask")
    assert task["configs"]["properties"]["task-id"] == "0"


def test_plugins_and_their_keys(client: httpx.Client) -> None:
    every = got(client, "/plugin/list")["body"]
    plugins = got(client, "/plugin/list/connectors")["body"]
    assert every[: len(plugins)] == plugins
    assert {one["type"] for one in every[len(plugins) :]} == {"TRANSFORMATION", "CONVERTER"}
    assert {"FileSourceConnector", "MqttSinkConnector"} <= {one["className"].rpartition(".")[2] for one in plugins}
    assert {one["type"] for one in plugins} == {"SOURCE", "SINK"}
    assert got(client, "/plugin/reload") == {"status": 200, "body": "Plugin reload succeeded"}
    (keys,) = got(client, "/plugin/config", **{"connector.class": "FileSinkConnector"})["body"].values()
    assert {key["name"]: key["required"] for key in keys} == {"filename": True, "file": False}
    wrong = {"connector.class": "FileSink", "filename": "out/a", "nonsense": "1"}
    told = got(client, "/plugin/config/validate", config=json.dumps(wrong))["body"]
    assert {one["key"] for one in told["errors"]} == {"connect.topicnames", "nonsense"}
    assert client.post("/plugin/config/validate", json=SINK).json()["body"]["errorCount"] == 0
    assert states(client) == {}


def test_a_connector_that_was_written_as_a_native_document_is_shown(client: httpx.Client, applied: Path) -> None:
    told = got(client, "/connectors/copy/config")["body"]
    assert json.loads(told["config"]["waybill.document"])["name"] == "copy"
    assert told["type"] == "SOURCE"
    assert "was written as a native document" in create(client, "copy", SOURCE)["message"]
    assert got(client, "/connectors/copy/config")["body"] == told


def test_a_slash_in_a_name_is_none_of_the_path(client: httpx.Client) -> None:
    create(client, "in", SOURCE)
    for path in ("/connectors/in%2Fstop", "/connectors/in%2fpause"):
        assert client.get(path).status_code == client.post(path, json=SOURCE).status_code == 404
    assert states(client) == {"in": "RUNNING"}


@pytest.mark.usefixtures("folder")
def test_a_get_changes_nothing_where_nobody_has_asked_for_that() -> None:
    with served(gets_change=False) as client:
        assert create(client, "in", SOURCE)["status"] == 200
        for path in ("in", "in/stop", "in/pause", "in/resume", "stop/all", "pause/all", "resume/all", "stopAll"):
            told = client.get(f"/connectors/{path}", params={"config": json.dumps(SINK)})
            assert (told.status_code, told.headers["allow"], told.json()["errorCode"]) == (405, "POST", 405)
            assert "POST /connectors/" in told.json()["message"]
        assert states(client) == {"in": "RUNNING"}
        assert client.post("/connectors/in/pause").json()["body"] == "Connector [in] paused successfully"
        assert client.post("/connectors/stop/all").json()["body"] == "[in] connectors are deleted"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"host": "evil.example"}, 403),
        ({"host": "localhost.evil.example:8082"}, 403),
        ({"host": ""}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"host": "localhost:8082", "origin": "http://localhost:8082", "sec-fetch-site": "same-origin"}, 200),
        ({"host": "127.0.0.1:8082"}, 200),
        ({"host": "[::1]:8082"}, 200),
        ({"sec-fetch-site": "none"}, 200),
    ],
)
def test_pages_of_other_sites_and_other_names_are_refused(
    headers: dict[str, str], code: int, client: httpx.Client
) -> None:
    create(client, "in", SOURCE)
    told = client.get("/connectors/stop/all", headers=headers)
    assert told.status_code == code
    assert (states(client) == {}) is (code == 200)


def test_a_body_that_is_too_long_is_refused_whatever_it_says_of_itself(client: httpx.Client) -> None:
    text = json.dumps(SOURCE | {"note": "x" * MAX_BYTES}).encode()
    said = client.post("/connectors/in", content=text)
    unsaid = client.post("/connectors/in", content=iter([text[:1000], text[1000:]]))
    assert [(one.status_code, one.json()["errorCode"]) for one in (said, unsaid)] == [(413, 413)] * 2
    assert states(client) == {}


def test_a_route_that_is_not_there_is_said_as_they_say_it(client: httpx.Client) -> None:
    told = client.get("/connectors/in/delete")
    assert (told.status_code, told.text) == (404, "Not found")


def test_a_slash_at_the_end_is_none(client: httpx.Client) -> None:
    assert got(client, "/connectors/list/") == {"status": 200, "body": {}}


@pytest.mark.parametrize("path", ["/connectors/in", "/kc/connectors", "/api/v1/check"])
def test_a_body_that_does_not_come_is_not_waited_for(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(guarding, "BODY_S", 0.2)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
    assert b" 408 " in _answered(client, head.encode()).partition(b"\r\n")[0]
    assert states(client) == {}


def test_who_sends_slowly_keeps_nobody_waiting(client: httpx.Client) -> None:
    """Neither by headers nor by bodies that are never whole."""
    heads = (b"GET /connectors/list HTTP/1.1\r\nHost: loc", b"POST /connectors/in HTTP/1.1\r\nHost: localhost\r\n")
    with ExitStack() as stack:
        for number in range(200):
            slow = stack.enter_context(_connected(client))
            slow.sendall(heads[number % 2] + (b"Content-Length: 9\r\n\r\n{" if number % 2 else b""))
        create(client, "in", SOURCE)
        assert states(client) == {"in": "RUNNING"}


def _connected(client: httpx.Client) -> socket.socket:
    return socket.create_connection((client.base_url.host, client.base_url.port or 0), timeout=10)


def _answered(client: httpx.Client, sent: bytes) -> bytes:
    with _connected(client) as slow:
        slow.sendall(sent)
        return slow.recv(1000)
