"""A connector through the real Airflow: its task killed and tried again, its source broken, then deleted."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from connect_core import ledger, stack
from connect_core.errors import ConfigError
from connect_core.ledger import Ledger
from connect_core.orchestration import names
from connect_core.orchestration.rest import Airflow, Run
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

LINES = 20_000


@pytest.fixture
def home(airflow: stack.Stack) -> Site:
    """The home of the shared stack, as a person has it after `waybill dev up`."""
    ledger.upgrade(airflow.database_url)
    return Site(airflow.home.parent, f"t-{uuid.uuid4().hex[:12]}", [airflow.name_servers], airflow.database_url)


@pytest.fixture
def client(airflow: stack.Stack) -> Iterator[Airflow]:
    with Airflow(airflow.airflow_url, airflow.airflow_user, airflow.airflow_password) as session:
        yield session


@pytest.fixture
def name() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


def eventually(found: Callable[[], Any], within_s: float = 120) -> Any:
    until = time.monotonic() + within_s
    while not (seen := found()):
        assert time.monotonic() < until, f"not within {within_s} s"
        time.sleep(0.2)
    return seen


def finished(client: Airflow, dag_id: str, run_id: str) -> Run:
    run: Run = eventually(lambda: (run := client.run(dag_id, run_id)).state in ("success", "failed") and run, 200)
    return run


def is_known(client: Airflow, dag_id: str) -> bool:
    try:
        return not client.dag(dag_id).is_stale
    except ConfigError:
        return False


def documents(home: Site, name: str) -> dict[str, Any]:
    (home.folder / f"{name}.log").write_text("".join(f"{number}\n" for number in range(LINES)))
    return {
        "source": {"file": {"path": f"{name}.log"}},
        "sink": {"rocketmq": {"name_servers": home.name_servers[0], "topic": home.topic, "queues": 2}},
        "schedule": {"manual": True},
    }


def test_a_task_that_is_killed_is_finished_by_airflow_s_retry(
    airflow: stack.Stack, home: Site, client: Airflow, name: str
) -> None:
    home.apply(name, documents(home, name))
    dag = names.live_dag(name)
    eventually(lambda: is_known(client, dag))
    home.fault("executed")
    client.trigger(dag, run_id="first")
    run = finished(client, dag, "first")

    log = _log(airflow, dag, "first", 2)
    assert run.state == "success", log
    assert sorted(home.messages(), key=int) == [str(number).encode() for number in range(LINES)]
    assert "ended without a word: its process was killed" in log
    assert "an earlier attempt left 1 range open" in log
    assert f"{LINES} records of the open ranges are in the target already" in log
    assert "Traceback" not in log
    with Ledger.open(home.database_url) as opened:
        lost, done = opened.runs_of(opened.connector(name).uid, names.attempt_of(dag, "first"))
    assert (lost.state, done.state) == ("lost", "done")
    assert (done.summary or {})["already"] == LINES
    _look_at_event_and_page(airflow, name, dag)
    _break_the_source(airflow, home, client, name)
    _pause_and_delete(home, client, name)


def _look_at_event_and_page(airflow: stack.Stack, name: str, dag: str) -> None:
    with httpx.Client(base_url=airflow.airflow_url, timeout=30) as web:
        link = f"/api/v2/dags/{dag}/dagRuns/first/taskInstances/reconcile/links"
        assert web.get(link).status_code == 401
        login = {"username": airflow.airflow_user, "password": airflow.airflow_password}
        token = web.post("/auth/token", json=login).json()["access_token"]
        assert web.get("/waybill/receipts", params={"dag_id": dag, "run_id": "first"}).status_code == 401
        web.headers["Authorization"] = f"Bearer {token}"
        page = web.get(web.get(link).json()["extra_links"]["Receipts"])
        events = web.get("/api/v2/assets/events?order_by=-timestamp&limit=50").json()["asset_events"]
    assert f"{LINES:,} records delivered or there already" in page.text
    (extra,) = [event["extra"] for event in events if event["uri"] == f"waybill://{name}/receipts"]
    assert (extra["read"], extra["already"]) == (LINES, LINES)


def _break_the_source(airflow: stack.Stack, home: Site, client: Airflow, name: str) -> None:
    """What no retry mends fails at once, and says so."""
    (home.folder / f"{name}.log").write_text("something else\n")
    dag = names.live_dag(name)
    client.trigger(dag, run_id="second")
    run = finished(client, dag, "second")
    log = _log(airflow, dag, "second", 1)
    assert run.state == "failed", log
    assert "records are gone" in log
    assert "only a person can mend this" in log
    assert "Traceback" not in log
    assert not _path(airflow, dag, "second", 2).exists()


def _pause_and_delete(home: Site, client: Airflow, name: str) -> None:
    home.waybill("connectors", "pause", name)
    assert client.dag(names.live_dag(name)).is_paused
    client.pause(names.live_dag(name), False)
    (shown,) = [one for one in home.json("connectors", "list")["connectors"] if one["name"] == name]
    assert shown["state"] == "running"
    home.waybill("connectors", "delete", name, "--yes")
    eventually(lambda: not is_known(client, names.live_dag(name)))
    assert not is_known(client, names.backfill_dag(name))


def _path(airflow: stack.Stack, dag: str, run_id: str, attempt: int) -> Path:
    folder = airflow.home / "airflow" / "logs" / f"dag_id={dag}" / f"run_id={run_id}"
    return folder / "task_id=task_0" / f"attempt={attempt}.log"


def _log(airflow: stack.Stack, dag: str, run_id: str, attempt: int) -> str:
    path = _path(airflow, dag, run_id, attempt)
    return path.read_text() if path.exists() else "there is no such log"
