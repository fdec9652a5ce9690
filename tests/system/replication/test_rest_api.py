"""Waybill's own API on a real server: a connector from its document to its verification, the page on it, and a server
that is killed while it works."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.faults.kit.processes import go_on, is_alive, wait_for
from tests.servers import wait_until_stopped
from tests.site import Site
from tests.system.replication.test_rest import served

PAGE = Path(__file__).resolve().parents[3] / "docs" / "rest.md"
LINES = [f"line {number}" for number in range(100)]


@pytest.fixture
def site(bare_site: Site) -> Site:
    """With a log of some lines; runs of its server are here."""
    bare_site.settings["WAYBILL_ENGINE"] = "inline"
    (bare_site.folder / "in.log").write_text("".join(f"{line}\n" for line in LINES))
    return bare_site


@contextmanager
def api(site: Site) -> Iterator[tuple[httpx.Client, subprocess.Popen[str]]]:
    with served(site) as (client, process):
        client.base_url = client.base_url.join("/api/v1")
        yield client, process


def put(client: httpx.Client, site: Site) -> None:
    ends = {"source": {"file": {"path": "in.log"}}, "sink": {"file": {"path": "out.log"}}}
    answer = client.put("/connectors/copy", json={"version": 1, **ends})
    assert answer.status_code == 201, answer.text


def begin(client: httpx.Client, path: str, body: Any = None) -> str:
    """Its place below the API."""
    answer = client.post(f"/connectors/copy/{path}", json=body)
    assert answer.status_code == 202, answer.text
    return answer.headers["location"].removeprefix("/api/v1")


def followed(client: httpx.Client, at: str) -> list[dict[str, Any]]:
    """What its events tell until it is over."""
    text = client.get(f"{at}/events").text
    return [json.loads(line) for line in re.findall(r"^data: (.*)$", text, re.MULTILINE)]


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def stopped_worker(site: Site) -> int:
    """The pid of the one that stands still behind its batch."""
    taken = site.home / "faults" / "batch-written.taken"
    wait_for(taken.exists, "a worker has written its batch")
    pid = int(taken.read_text())
    wait_until_stopped(pid)
    return pid


def test_a_connector_from_its_document_to_its_verification(site: Site) -> None:
    with api(site) as (client, _):
        put(client, site)
        told = followed(client, begin(client, "runs"))
        assert (told[-1]["state"], told[-1]["result"]["delivered"]) == ("succeeded", len(LINES))
        [receipt] = client.get("/connectors/copy/receipts").json()["receipts"]
        assert receipt["run"] == told[-1]["result"]["tasks"][0]["run"]
        told = followed(client, begin(client, "verifications"))
        assert [one["step"] for one in told] == sorted({one["step"] for one in told})
        assert (told[-1]["state"], told[-1]["result"]["same"]) == ("succeeded", 1)
    assert lines(site.folder / "out.log") == LINES
    assert [run["id"] for run in site.json("runs", "copy")["runs"]] == [receipt["run"]]


def test_an_operation_whose_server_was_killed_is_continued_and_each_line_is_there_once(site: Site) -> None:
    again = site.folder / "again.log"
    with api(site) as (client, process):
        put(client, site)
        followed(client, begin(client, "runs"))
        partition = client.get("/connectors/copy/offsets").json()["offsets"][0]["partition"]
        site.fault("batch-written", "stop")
        wanted = {"ranges": [f"{partition}:-"], "sink": {"path": str(again)}}
        at = begin(client, "backfills", wanted)
        worker = stopped_worker(site)
        assert client.get(at).json()["state"] == "running"
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    wait_for(lambda: not is_alive(worker), "the worker ends with the operation, and that with its server")
    with api(site) as (client, _):
        told = client.get(at).json()
        assert (told["state"], told["problem"]["detail"]) == ("interrupted", "The server that worked on it has ended")
        found = re.search(r"POST /api/v1/(\S+) with (\{.*?\})", told["problem"]["next_step"])
        assert found is not None
        answer = client.post(f"/{found[1]}", content=found[2], headers={"content-type": "application/json"})
        assert answer.status_code == 202, answer.text
        told = followed(client, answer.headers["location"].removeprefix("/api/v1"))[-1]
        assert (told["state"], told["result"]["state"]) == ("succeeded", "done")
    assert lines(again) == LINES


def test_what_is_cancelled_while_it_works_ends_and_nothing_is_lost(site: Site) -> None:
    with api(site) as (client, _):
        put(client, site)
        site.fault("batch-written", "stop")
        at = begin(client, "runs")
        worker = stopped_worker(site)
        assert client.delete(at).json()["state"] == "cancelled"
        wait_for(lambda: not is_alive(worker), "the worker ends with the operation")
        assert followed(client, begin(client, "runs"))[-1]["state"] == "succeeded"
        assert lines(site.folder / "out.log") == LINES
        partition = client.get("/connectors/copy/offsets").json()["offsets"][0]["partition"]
        site.fault("batch-written", "stop")
        at = begin(client, "backfills", {"ranges": [f"{partition}:-"], "sink": {"path": "again.log"}})
        worker = stopped_worker(site)
        assert client.delete(at).json()["state"] == "cancelled"
        [stream] = site.json("backfills", "list", "copy")["backfills"]
        assert stream["state"] == "cancelled"
        go_on(worker)
        assert client.get(at).json()["state"] == "cancelled"


def test_the_server_ends_at_once_though_somebody_follows(site: Site) -> None:
    with api(site) as (client, process):
        put(client, site)
        site.fault("batch-written", "stop")
        at = begin(client, "runs")
        worker = stopped_worker(site)
        with client.stream("GET", f"{at}/events") as stream:
            assert next(stream.iter_lines()).startswith("id: ")
            process.send_signal(signal.SIGINT)
            process.wait(30)
    wait_for(lambda: not is_alive(worker), "the worker ends with the server")
    with api(site) as (client, _):
        assert client.get(at).json()["state"] == "interrupted"


def test_the_page_is_what_happens(bare_site: Site) -> None:
    bare_site.settings["WAYBILL_ENGINE"] = "inline"
    text = PAGE.read_text()
    [first, *_] = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    assert bash(bare_site, first.replace("waybill serve --port 8082\n", "")) == ""
    rest = text.partition(first)[2]
    found = re.findall(r"```sh\n(.*?)```\s*```text\n(.*?)```", rest, re.DOTALL)
    assert len(found) == rest.count("```sh\n")
    with served(bare_site) as (client, _):
        for commands, expected in found:
            done = bash(bare_site, commands.replace("http://127.0.0.1:8082", str(client.base_url).rstrip("/")))
            assert done.replace("\r", "") == expected


def bash(site: Site, commands: str) -> str:
    script = ["bash", "-euo", "pipefail", "-c", commands]
    done = subprocess.run(script, cwd=site.folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
