"""`waybill serve` as scripts for RocketMQ Connect use it: their quick start, a server that is killed, many at once."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer
from typing import Any

import httpx
import pytest

from tests.site import Site

pytestmark = [pytest.mark.server]

COSTLY = pytest.mark.fault(costly=True)
PAGE = Path(__file__).resolve().parents[3] / "docs" / "coming-from-rocketmq-connect.md"
PACKAGE = "org.apache.rocketmq.connect.file."


@contextmanager
def served(site: Site, *options: str) -> Iterator[tuple[httpx.Client, subprocess.Popen[str]]]:
    """The server, and a client of it, until the block ends or somebody kills it."""
    with site.start("serve", "--port", "0", "--gets-change", *options) as process:
        assert process.stderr is not None
        url = re.search(r"http://\S+", process.stderr.readline())
        assert url is not None
        try:
            with httpx.Client(base_url=url[0], trust_env=False, timeout=60) as client:
                yield client, process
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)


def create(client: httpx.Client, name: str, **config: str) -> dict[str, Any]:
    told: dict[str, Any] = client.post(f"/connectors/{name}", json=config).json()
    return told


def source(topic: str, filename: str = "test-source-file.txt", **more: str) -> dict[str, str]:
    return {"connector.class": f"{PACKAGE}FileSourceConnector", "filename": filename, "connect.topicname": topic} | {
        key.replace("_", "."): value for key, value in more.items()
    }


def calls(site: Site, client: httpx.Client) -> list[tuple[str, Callable[[], dict[str, Any]]]]:
    """Each `curl` of the page: its path, and what makes it. The topic is one of this test."""
    found = []
    for line in PAGE.read_text().splitlines():
        if not line.startswith("curl "):
            continue
        words = shlex.split(line)
        path = next(word for word in words if word.startswith("http://")).removeprefix("http://127.0.0.1:8082")
        method = words[words.index("-X") + 1] if "-X" in words else "GET"
        data = words[words.index("-d") + 1].replace("fileTopic", site.topic) if "-d" in words else None
        found.append(
            (path, lambda method=method, path=path, data=data: client.request(method, path, content=data).json())
        )
    return found


def test_the_quick_start_of_the_page(sqlite_site: Site) -> None:
    site = sqlite_site
    lines = [f"line {number}" for number in range(2_000)]
    (site.folder / "test-source-file.txt").write_text("\n".join(lines) + "\n")
    with served(site) as (client, _):
        steps = calls(site, client)
        made = dict(steps)
        names = ["fileSourceConnector", "fileSinkConnector"]
        assert [path for path, _ in steps] == [
            *(f"/connectors/{name}" for name in names),
            "/connectors/list",
            "/connectors/fileSinkConnector/status",
            *(f"/connectors/{name}/stop" for name in reversed(names)),
        ]
        for name in names:
            told = made[f"/connectors/{name}"]()
            assert told["status"] == 200
            site.waybill("run", name)
        assert sorted((site.folder / "test-sink-file.txt").read_text().splitlines()) == sorted(lines)
        assert made["/connectors/list"]()["body"].keys() == set(names)
        status = made["/connectors/fileSinkConnector/status"]()["body"]
        assert {(one["state"], one["workerId"]) for one in status["tasks"]} == {("RUNNING", "spark")}
        for name in reversed(names):
            stopped = made[f"/connectors/{name}/stop"]()
            assert stopped == {"status": 200, "body": f"Connector [{name}] deleted successfully"}
        assert made["/connectors/list"]() == {"status": 200, "body": {}}
        with (site.folder / "test-source-file.txt").open("a") as file:
            file.write("one more\n")
        made["/connectors/fileSourceConnector"]()
        assert "1 delivered, 0 already in the target" in site.waybill("run", "fileSourceConnector")


def test_a_server_that_is_killed_has_created_whole_connectors_or_none(bare_site: Site) -> None:
    answered: list[str] = []

    def create_many() -> None:
        for number in range(1_000):
            assert create(client, f"c{number}", **source("t", f"{number}.txt"))["status"] == 200
            answered.append(f"c{number}")
            if number == 20:
                Timer(0.05, process.kill).start()

    with served(bare_site) as (client, process), pytest.raises(httpx.TransportError):
        create_many()
    assert 20 < len(answered) < 1_000
    with served(bare_site) as (client, _):
        there = client.get("/connectors/list").json()["body"]
        assert set(answered) <= set(there) <= {*answered, f"c{len(answered)}"}
        assert all(one["info"]["config"]["filename"] == f"{name[1:]}.txt" for name, one in there.items())


@pytest.mark.parametrize("ms", [120, *(pytest.param(ms, marks=COSTLY) for ms in (40, 80, 200, 300))])
def test_a_server_that_is_killed_has_applied_a_folder_whole_or_not_and_stopped_all_or_none(
    bare_site: Site, ms: int
) -> None:
    names = [f"c{number}" for number in range(200)]
    ends = {name: {"source": {"file": {"path": f"{name}.log"}}, "sink": {"file": {"path": name}}} for name in names}
    documents = [{"version": 1, "name": name, **ends[name]} for name in names]

    def there() -> list[str]:
        with served(bare_site) as (client, _):
            return sorted(client.get("/connectors/list").json()["body"])

    def killed(call: Callable[[httpx.Client], httpx.Response]) -> None:
        with served(bare_site) as (client, process):
            Timer(ms / 1000, process.kill).start()
            with suppress(httpx.TransportError):
                assert call(client).status_code == 200
            process.wait(60)

    killed(lambda client: client.post("/api/v1/apply", json={"documents": documents}))
    assert there() in ([], sorted(names))
    with served(bare_site) as (client, _):
        assert client.post("/api/v1/apply", json={"documents": documents}).status_code == 200
    assert there() == sorted(names)
    killed(lambda client: client.get("/connectors/stopAll"))
    assert there() in ([], sorted(names))


def test_of_many_changes_at_once_each_that_is_answered_counts(bare_site: Site) -> None:
    with served(bare_site) as (client, _):
        create(client, "in", **source("t"))

        def change(number: int) -> dict[str, Any]:
            return create(client, "in", **source("t", note_number=str(number), errors_retry_timeout=str(number)))

        with ThreadPoolExecutor(8) as threads:
            told = list(threads.map(change, range(100)))
        assert all("note.number" in one["message"] for one in told)  # no key of theirs, and nothing is changed by it

        def known(number: int) -> dict[str, Any]:
            return create(client, "in", **source("t", errors_retry_timeout=str(number)))

        with ThreadPoolExecutor(8) as threads:
            told = list(threads.map(known, range(200)))
        taken = [one["body"]["errors.retry.timeout"] for one in told if "status" in one]
        config = client.get("/connectors/in/config").json()["body"]["config"]
        assert config["errors.retry.timeout"] in taken
    revisions = bare_site.json("connectors", "show", "in", "--revisions")["revisions"]
    assert len(revisions) == 1 + len(taken)
