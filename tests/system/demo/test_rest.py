"""REST on the stack that the demo leaves: the quick start of RocketMQ Connect, whose records Airflow moves; and the
routes in Airflow's web server, for users of Airflow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from connect_core import stack
from connect_core.errors import ConfigError
from connect_core.ledger import Ledger
from connect_core.orchestration import names
from connect_core.orchestration.rest import Airflow
from tests.faults.kit.processes import wait_for
from tests.system.demo.conftest import Shell
from tests.system.demo.test_airflow import environment

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


USERS = """
import sys
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
for role in sys.argv[1:]:
    print(SimpleAuthManager().generate_jwt(SimpleAuthManagerUser(username=f"a-{role}", role=role)))
"""
"""The stack has one user; these are let in by the same check."""


def test_users_of_airflow_call_the_routes_in_its_web_server(airflow: stack.Stack) -> None:
    pause, document = "/waybill/kc/connectors/of-users/pause", "/waybill/api/v1/connectors/of-users"
    with httpx.Client(base_url=airflow.airflow_url, trust_env=False, timeout=60) as web:
        admin, viewer, user = _tokens(airflow, web)
        for path in ("/connectors/list", "/kc/connectors", "/api/v1/connectors", "/metrics", "/openapi.json"):
            assert web.get(f"/waybill{path}").status_code == 401
        given = {"version": 1, "source": {"file": {"path": "of-users.log"}}, "sink": {"file": {"path": "of-users.out"}}}
        assert [web.put(document, json=given, headers=one).status_code for one in (viewer, user, admin)] == [
            *(403, 403, 201)
        ]
        try:
            wait_for(lambda: _paused(airflow) is False, "the DAG is found")
            for one in (admin, viewer, user):
                assert "of-users" in web.get("/waybill/kc/connectors", headers=one).json()
                assert web.get(f"{document}/status", headers=one).json()["switch"] == "on"
            refused = web.put(pause, headers=viewer)
            assert (refused.status_code, _paused(airflow)) == (403, False)
            assert "Airflow user a-viewer is no operator here" in refused.json()["message"]
            assert (web.put(pause, headers=user).status_code, _paused(airflow)) == (202, True)
            assert web.post(f"{document}/stop", headers=user).json()["state"] == "stopped"
            assert web.post(f"{document}/resume", headers=admin).json()["state"] == "running"
            assert web.delete(document, headers=user).status_code == 403
            _try_the_cookie(web, admin["Authorization"].removeprefix("Bearer "), pause)
            assert web.get(f"{document}/status", headers=viewer).json()["switch"] == "paused"
            with Ledger.open(airflow.database_url) as ledger:
                deeds = {(one.who, one.action) for one in ledger.audit(ledger.connector("of-users").uid)}
            by_admin, by_user = (f"airflow user {one} from 127.0.0.1" for one in ("admin", "a-user"))
            both = {(one, deed) for one in (by_admin, by_user) for deed in ("switch", "target state")}
            assert deeds == {(by_admin, "create"), *both}
        finally:
            gone = web.delete(document, headers={**admin, "If-Match": "*"})
        assert gone.status_code == 200, gone.text


def _tokens(airflow: stack.Stack, web: httpx.Client) -> list[dict[str, str]]:
    """Of an admin, a viewer and a user."""
    script, given = (sys.executable, "-c", USERS, "viewer", "user"), environment(airflow, stack.SCHEDULER)
    made = subprocess.run(script, env=given, capture_output=True, text=True, check=True).stdout.splitlines()[-2:]
    login = {"username": airflow.airflow_user, "password": airflow.airflow_password}
    admin = web.post("/auth/token", json=login).json()["access_token"]
    return [{"Authorization": f"Bearer {one}"} for one in (admin, *made)]


def _try_the_cookie(web: httpx.Client, token: str, pause: str) -> None:
    """A browser adds it to whatever any page asks for, and says where that page is from."""
    cookie, own = {"Cookie": f"_token={token}"}, str(web.base_url).rstrip("/")
    assert web.get("/waybill/kc/connectors", headers=cookie).status_code == 200
    for said in ({"Origin": "https://elsewhere.example"}, {"Sec-Fetch-Site": "cross-site"}, {}):
        assert web.put(pause, headers={**cookie, **said}).status_code == 403
    assert web.get("/waybill/connectors/stopAll", headers=cookie).status_code == 405
    assert web.put(pause, headers={**cookie, "Origin": own}).status_code == 202


def _paused(airflow: stack.Stack) -> bool | None:
    """None for a DAG that is not there."""
    with Airflow(airflow.airflow_url, airflow.airflow_user, airflow.airflow_password) as client:
        try:
            return client.dag(names.live_dag("of-users")).is_paused
        except ConfigError:
            return None


def _lines(file: Path) -> list[str]:
    """In any order: the topic has several queues."""
    return sorted(file.read_text().splitlines()) if file.exists() else []
