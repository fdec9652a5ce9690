"""The quick start of RocketMQ Connect on the stack that the demo leaves: Airflow moves what a script has asked for."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from connect_core import stack
from tests.faults.kit.processes import wait_for
from tests.system.demo.conftest import Shell

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]

PACKAGE = "org.apache.rocketmq.connect.file."


def test_a_script_for_rocketmq_connect_moves_a_file(airflow: stack.Stack, shell: Shell) -> None:
    folder, topic = airflow.home.parent, "rest-quick-start"
    (folder / "quick-start-in.txt").write_text("one\ntwo\n")
    port = airflow.part(stack.REST).ports["http"]
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as client:
        for name, config in {
            "quick-in": {"filename": "quick-start-in.txt", "connect.topicname": topic},
            "quick-out": {"filename": "quick-start-out.txt", "connect.topicnames": topic},
        }.items():
            kind = "Source" if name == "quick-in" else "Sink"
            given = {"connector.class": f"{PACKAGE}File{kind}Connector", **config}
            assert client.post(f"/connectors/{name}", json=given).json() == {"status": 200, "body": given}
        try:
            target = folder / "quick-start-out.txt"
            wait_for(lambda: _lines(target) == ["one", "two"], "Airflow has moved the lines")
            with (folder / "quick-start-in.txt").open("a") as file:
                file.write("three\n")
            wait_for(lambda: _lines(target) == ["one", "three", "two"], "what comes later is moved, too")
            told = client.get("/connectors/quick-out/status").json()["body"]
            assert [(one["state"], one["workerId"]) for one in told["tasks"]] == [("RUNNING", "spark")]
        finally:
            for name in ("quick-in", "quick-out"):
                assert client.get(f"/connectors/{name}/stop").json()["status"] == 200
        assert not {"quick-in", "quick-out"} & client.get("/connectors/list").json()["body"].keys()
    for name in ("quick-in", "quick-out"):
        done = shell.run(f".venv/bin/waybill connectors delete {name} --yes")
        assert done.returncode == 0, done.stderr


def _lines(file: Path) -> list[str]:
    """In any order: the topic has several queues."""
    return sorted(file.read_text().splitlines()) if file.exists() else []
