"""`waybill rmqconnect`: the eleven commands of connectAdmin, against a server that answers over HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from tests.unit.api.test_rocketmq_connect import SINK, SOURCE, served, server
from tests.unit.cli.conftest import Typed, Waybill

__all__ = ["server"]


@pytest.fixture
def admin(waybill: Waybill, folder: Path, server: httpx.URL) -> Waybill:
    """The command, and the file that says where the server is."""
    (folder / "connect.conf").write_text(f"# where it is\nhttpAddr = {server.host}\nhttpPort={server.port}\n")

    def typed(*words: str) -> Typed:
        found = waybill("rmqconnect", "-s", "connect.conf", *words)
        assert found.code == 0, found.err
        return found

    return typed


def test_a_connector_by_the_commands(admin: Waybill, waybill: Waybill, folder: Path) -> None:
    (folder / "in.json").write_text(json.dumps(SOURCE))
    (folder / "out.json").write_text(json.dumps(SINK | {"errors.tolerance": "all & more"}))
    assert admin("createConnector", "-c", "in", "-p", "in.json").json == {"status": 200, "body": SOURCE}
    refused = admin("createConnector", "-c", "out", "-p", "out.json").json
    assert "'all & more' is neither none nor all" in refused["message"]
    assert admin("queryConnectorConfig", "--connectorName", "in").json["body"]["config"] == SOURCE
    assert admin("QUERYCONNECTORSTATUS", "-c", "in").json["body"]["connector"]["state"] == "RUNNING"
    assert admin("getClusterInfo").json["body"] == ["waybill"]
    assert admin("getAllocatedInfo").json["body"]["tasks"] == ["in-0"]
    assert admin("getConfigInfo").json["body"]["connectorConfigs"] == {"in": SOURCE}
    assert admin("reloadPlugins").json["body"] == "Plugin reload succeeded"
    heading, row = admin("getAllocatedConnectors").out.splitlines()
    assert heading == f"{'connectorName':25} {'status':15} {'topic':17} {'update-timestamp':25}"
    assert row.split()[:3] == ["in", "RUNNING", "fileTopic"]
    heading, row = admin("getAllocatedTasks").out.splitlines()
    assert heading.split() == ["taskName", "connectorName", "status", "topic", "update-timestamp", "taskId"]
    assert [*row.split()[:4], row.split()[-1]] == ["FileSourceTask", "in", "RUNNING", "fileTopic", "0"]
    for name in ("in/stop", "..", "../x"):
        wrong = waybill("rmqconnect", "-s", "connect.conf", "createConnector", "-c", name, "-p", "in.json")
        assert (wrong.code, "is no name of a connector" in wrong.err) == (2, True)
    assert admin("stopConnector", "-c", "in").json["body"] == "Connector [in] deleted successfully"
    assert admin("stopAll").json["body"].startswith("No connector needs to be deleted")


def test_a_server_that_is_not_there_is_said(waybill: Waybill, folder: Path) -> None:
    (folder / "connect.conf").write_text("httpPort=1\n")
    typed = waybill("rmqconnect", "-s", "connect.conf", "stopAll")
    assert (typed.code, "The server does not answer" in typed.err, "waybill serve" in typed.err) == (3, True, True)
    (folder / "connect.conf").write_text("httpPort=many\n")
    assert "The httpPort 'many' is no number" in waybill("rmqconnect", "-s", "connect.conf", "stopAll").err
    assert "cannot be read" in waybill("rmqconnect", "-s", "nowhere.conf", "stopAll").err


@pytest.mark.usefixtures("folder")
def test_a_server_that_lets_no_get_change_anything_says_what_does(waybill: Waybill, folder: Path) -> None:
    with served(gets_change=False) as client:
        assert isinstance(client, httpx.Client)
        (folder / "connect.conf").write_text(f"httpAddr=localhost\nhttpPort={client.base_url.port}\n")
        typed = waybill("rmqconnect", "-s", "connect.conf", "stopAll")
        assert (typed.code, typed.json["errorCode"]) == (0, 405)
