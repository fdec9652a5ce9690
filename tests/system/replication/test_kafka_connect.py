"""`waybill serve` as scripts and clients for Kafka Connect use it: the page's commands, and clients of other people as
they are published. These are in build/kafka-connect-clients (`.ci/kafka-connect-clients`)."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from connect_core.errors import Failure
from connect_core.ledger import Ledger
from tests.site import Site
from tests.system.replication.test_rest import served

pytestmark = [pytest.mark.server]

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "coming-from-kafka-connect.md"
CLIENTS = ROOT / "build" / "kafka-connect-clients"
fetched = pytest.mark.skipif(
    not (CLIENTS / "installed").exists(), reason="no clients of Kafka Connect: run .ci/kafka-connect-clients"
)
PACKAGE = "org.apache.kafka.connect.file."
CONFIG = {"connector.class": "FileStreamSource", "tasks.max": "1", "file": "test.txt", "topic": "connect-test"}


# ------------------------------------------------------------------------------------------------------------ the page


def calls(site: Site, client: httpx.Client) -> Iterator[Callable[[], httpx.Response]]:
    """Each `curl` of the page. The topic is one of this test."""
    for line in PAGE.read_text().splitlines():
        if line.startswith("curl "):
            words = shlex.split(line)
            url = next(word for word in words if word.startswith("http://")).removeprefix("http://127.0.0.1:8082")
            method = words[words.index("-X") + 1] if "-X" in words else "GET"
            data = words[words.index("-d") + 1].replace("connect-test", site.topic) if "-d" in words else None
            yield lambda method=method, url=url, data=data: client.request(method, url, content=data)


def test_the_commands_of_the_page(sqlite_site: Site) -> None:
    site = sqlite_site
    lines = [f"line {number}" for number in range(500)]
    (site.folder / "test.txt").write_text("\n".join(lines) + "\n")
    with served(site) as (client, _):
        validate, create, put, expanded, offsets, stop, reset, resume, *deletes = calls(site, client)
        assert validate().json()["error_count"] == 0
        assert (create().status_code, put().status_code) == (201, 201)
        for name in ("local-file-source", "local-file-sink"):
            site.waybill("run", name)
        assert sorted((site.folder / "test.sink.txt").read_text().splitlines()) == sorted(lines)
        found = expanded().json()
        assert {one["status"]["connector"]["state"] for one in found.values()} == {"RUNNING"}
        assert {one["info"]["type"] for one in found.values()} == {"source", "sink"}
        end = (site.folder / "test.txt").stat().st_size
        assert [one["offset"] for one in offsets().json()["offsets"]] == [{"offset": end}]
        assert stop().status_code == 204
        assert reset().status_code == 200
        assert [one["offset"] for one in offsets().json()["offsets"]] == [{"offset": 0}]
        assert resume().status_code == 202
        [partition] = [one["partition"]["partition"] for one in offsets().json()["offsets"]]
        site.waybill("offsets", "undo", "local-file-source", partition, "--yes")
        assert [one["offset"] for one in offsets().json()["offsets"]] == [{"offset": end}]
        assert [one().status_code for one in deletes] == [204, 204]
        assert client.get("/kc/connectors").json() == []


# ---------------------------------------------------------------------------------------------------- published clients


class Client:
    """One of them, in a process of its own."""

    def __init__(self, site: Site, name: str, server: httpx.Client) -> None:
        self._site, self._folder, self.url = site, CLIENTS / name, f"{server.base_url}".rstrip("/") + "/kc"

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = self._site.environment() | {"PYTHONPATH": str(self._folder), "NO_PROXY": "*"}
        command = [sys.executable, "-W", "ignore", *arguments]
        return subprocess.run(
            command, env=environment, cwd=self._site.folder, capture_output=True, text=True, timeout=60, check=False
        )

    def told(self, *arguments: str) -> Any:
        ended = self.run(*arguments)
        assert ended.returncode == 0, ended.stderr + ended.stdout
        return json.loads(ended.stdout) if ended.stdout.strip() else None


@pytest.fixture
def server(bare_site: Site) -> Iterator[httpx.Client]:
    (bare_site.folder / "test.txt").write_text("one\n")
    with served(bare_site) as (client, _):
        yield client


def state(server: httpx.Client, name: str = "in") -> str:
    return str(server.get(f"/kc/connectors/{name}/status").json()["connector"]["state"])


@fetched
def test_kafka_connect_py(bare_site: Site, server: httpx.Client) -> None:
    client = Client(bare_site, "kafka-connect-py", server)

    def kc(*arguments: str) -> Any:
        return client.told("-c", "from kafka_connect.cli import cli; cli()", "--url", client.url, *arguments)

    assert kc("info").keys() == {"version", "commit", "kafka_cluster_id"}
    made = kc("update", "in", "--config-data", json.dumps(CONFIG))
    assert made["config"] == {"name": "in", **CONFIG}
    assert kc("list") == ["in"]
    assert kc("list", "--expand", "status")["in"]["status"]["connector"]["state"] == "RUNNING"
    assert kc("config", "in") == made["config"]
    kc("pause", "in")
    assert state(server) == "PAUSED"
    kc("resume", "in")
    assert state(server) == "RUNNING"
    kc("restart", "in")
    assert kc("task-status", "in", "0")["state"] == "RUNNING"
    assert kc("list-topics", "in") == {"in": {"topics": ["connect-test"]}}
    # its command sends the text of a text here, which Kafka Connect refuses, too: its library sends the configuration
    call = f"KafkaConnect({client.url!r}).validate_connector_config('FileStreamSource', {CONFIG!r})"
    script = f"import json; from kafka_connect import KafkaConnect; print(json.dumps({call}))"
    assert client.told("-c", script)["error_count"] == 0
    assert f"{PACKAGE}FileStreamSourceConnector" in {one["class"] for one in kc("list-plugins")}
    kc("delete", "in")
    assert kc("list") == []


@fetched
def test_kafka_connect_cli(bare_site: Site, server: httpx.Client) -> None:
    client = Client(bare_site, "kafka-connect-cli", server)

    def kc(*arguments: str) -> Any:
        return client.told("-m", "kafka_connect", *arguments, "--url", client.url)

    made = kc("connector", "create", "--name", "in", "--configuration", json.dumps(CONFIG))
    assert made["config"] == {"name": "in", **CONFIG}
    assert kc("connector", "list") == [{"connector": "in", "state": "RUNNING", "failedTasks": []}]
    assert kc("connector", "get", "--name", "in")["state"] == "RUNNING"
    kc("connector", "pause", "--name", "in")
    assert state(server) == "PAUSED"
    assert kc("health-check") is None
    kc("connector", "resume", "--name", "in")
    kc("connector", "update", "--name", "in", "--configuration", json.dumps(CONFIG | {"errors.tolerance": "all"}))
    assert kc("connector", "configuration", "--name", "in")["errors.tolerance"] == "all"
    kc("task", "restart", "--connector", "in", "--task", "0")
    kc("connector", "delete", "--name", "in")
    assert kc("connector", "list") == []


@fetched
def test_kafkaconnect(bare_site: Site, server: httpx.Client) -> None:
    client = Client(bare_site, "kafkaconnect", server)

    def kc(call: str) -> Any:
        script = f"from kafkaconnect.connect import Connect; print(Connect({client.url!r}).{call})"
        return client.told("-c", script)

    made = kc(f"validate_and_create('in', {json.dumps(CONFIG)!r})")
    assert made["config"] == {"name": "in", **CONFIG}
    assert kc("list()") == ["in"]
    assert kc("status('in')")["connector"]["state"] == "RUNNING"
    kc("pause('in')")
    assert state(server) == "PAUSED"
    kc("resume('in')")
    kc("restart('in')")
    kc("remove('in')")
    assert kc("list()") == []


_HEALTH = """
import json, sys
from kafka_connect_healthcheck.health import Health
health = Health(sys.argv[1], None, ["FAILED", "UNASSIGNED"], None, 0, ["connector", "task"])
print(json.dumps(health.get_health_result()))
"""


@fetched
def test_kafka_connect_healthcheck(bare_site: Site, server: httpx.Client) -> None:
    client = Client(bare_site, "kafka-connect-healthcheck", server)
    assert client.told("-c", _HEALTH, client.url)["healthy"]
    server.put("/kc/connectors/in/config", json=CONFIG)
    assert client.told("-c", _HEALTH, client.url)["healthy"]
    with Ledger.open(f"sqlite:///{bare_site.home / 'ledger.db'}") as ledger:
        run = ledger.begin_run(ledger.connector("in").uid, "live", task=0, engine="spark")
        why = Failure("Refused", "the broker says no", family="Refused")
        ledger.end_run(run, state="failed", failure=why, summary={})
    told = client.told("-c", _HEALTH, client.url)
    assert (told["healthy"], {one["type"] for one in told["failures"]}) == (False, {"connector", "task"})


_WATCH = """
import json, sys
from kafka_connect_api.kafka_connect_api import Api, Cluster
cluster = Cluster(Api(url=sys.argv[1]))
one = cluster.connectors["in"]
one.cycle_connector()
one.config = one.config | {"errors.tolerance": "all"}
cluster.set_logger_log_level("connect_core", "INFO")
print(json.dumps([cluster.version, one.exists(), one.state, one.config, [task.state for task in one.tasks]]))
"""


@fetched
def test_kafka_connect_api(bare_site: Site, server: httpx.Client) -> None:
    server.put("/kc/connectors/in/config", json=CONFIG)
    client = Client(bare_site, "kafka-connect-api", server)
    version, *told = client.told("-c", _WATCH, client.url)
    assert version == server.get("/kc").json()["version"]
    assert told == [True, "RUNNING", {"name": "in", **CONFIG, "errors.tolerance": "all"}, ["RUNNING"]]


_WITH_A_TOKEN = """
import json, sys
from kafka_connect_api.kafka_connect_api import Api, Cluster
cluster = Cluster(Api(url=sys.argv[1], username="anybody", password=sys.argv[2]))
print(json.dumps(list(cluster.connectors)))
"""


@fetched
def test_clients_that_know_basic_have_a_token_as_their_password(bare_site: Site) -> None:
    token = bare_site.waybill("tokens", "create", "ci", "--role", "admin").strip()
    with served(bare_site, "--login") as (server, _):
        client = Client(bare_site, "kafka-connect-py", server)
        command = ("-c", "from kafka_connect.cli import cli; cli()", "--url", client.url)
        for wrong in ((), ("--auth", "anybody:wrong")):
            assert "401 Client Error" in client.run(*command, *wrong, "list").stdout
        made = client.told(*command, "--auth", f"anybody:{token}", "update", "in", "--config-data", json.dumps(CONFIG))
        assert made["config"] == {"name": "in", **CONFIG}
        another = Client(bare_site, "kafka-connect-api", server)
        assert another.told("-c", _WITH_A_TOKEN, another.url, token) == ["in"]
        health = Client(bare_site, "kafka-connect-healthcheck", server)
        asking = _HEALTH.replace('"UNASSIGNED"], None', f'"UNASSIGNED"], "anybody:{token}"')
        assert health.told("-c", asking, health.url)["healthy"]
