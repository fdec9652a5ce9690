"""Airflow as the stack starts it: four healthy parts, a login, a task that runs with what the stack gives it; and a
connector through all of it: its task killed and tried again, its source broken, then deleted."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil
import pytest

from connect_core import stack
from connect_core.errors import ConfigError, Refused
from connect_core.ledger import Ledger
from connect_core.orchestration import names
from connect_core.orchestration.rest import Airflow, DagRun
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]

Found = TypeVar("Found")

LINES = 20_000

DAG = '''"""A DAG of this test alone (airflow dag)."""
from airflow.sdk import dag, task

@dag(dag_id="{dag_id}", schedule=None, is_paused_upon_creation=False)
def made():
    @task
    def works():
        print("at work")
    works()

made()
'''


def session(running: stack.Stack) -> Airflow:
    return Airflow(running.airflow_url, running.airflow_user, running.airflow_password)


def environment(running: stack.Stack, part: str) -> dict[str, str]:
    """What that process was started with, read from the kernel."""
    told = Path(f"/proc/{running.part(part).process.pid}/environ").read_bytes().decode().split("\0")
    return dict(line.split("=", 1) for line in told if line)


def test_all_four_parts_are_healthy(airflow: stack.Stack) -> None:
    """A part whose last sign of life is a few seconds old, on a busy machine, is called unhealthy until the next."""
    healthy = dict.fromkeys(("metadatabase", "scheduler", "triggerer", "dag_processor"), "healthy")
    with session(airflow) as client:
        until(lambda: client.health() == healthy, "four healthy parts", told=lambda: str(client.health()))


def test_another_password_is_refused(airflow: stack.Stack) -> None:
    with pytest.raises(Refused, match="refused the login"), Airflow(airflow.airflow_url, "admin", "guessed"):
        pass


def test_nothing_of_it_listens_beyond_the_loopback(airflow: stack.Stack) -> None:
    sessions = {airflow.part(name).process.pid for name in stack.AIRFLOW_PARTS}
    ours = {entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit() and _session_of(entry) in sessions}
    listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening += [line.split() for line in Path("/proc/net/tcp6").read_text().splitlines()[1:]]
    sockets = {f"socket:[{fields[9]}]": fields[1] for fields in listening if fields[3] == "0A"}
    found = {sockets[link] for pid in ours for link in _sockets(pid) if link in sockets}
    port = airflow.part(stack.API_SERVER).ports["http"]
    assert found == {f"0100007F:{port:04X}"}


def test_the_provider_s_hook_gives_the_address_of_the_engine(airflow: stack.Stack) -> None:
    script = (
        "from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook;"
        "from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook;"
        "print(SparkConnectHook('waybill_engine').get_connection_url());"
        "print(SparkSubmitHook(conn_id='waybill_submit')._resolve_connection()['master'])"
    )
    given = environment(airflow, stack.SCHEDULER)
    done = subprocess.run([sys.executable, "-c", script], env=given, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == [airflow.spark_remote, "local[2]"]


def test_workers_have_loaded_what_tasks_need_before_they_are_forked(airflow: stack.Stack) -> None:
    """By the libraries that are mapped into them: a task would spend most of its time on importing these."""
    scheduler = psutil.Process(airflow.part(stack.SCHEDULER).process.pid)
    workers = [child for child in scheduler.children() if "airflow worker" in " ".join(child.cmdline())]
    assert workers
    for worker in workers:
        mapped = " ".join(one.path for one in worker.memory_maps())
        assert all(name in mapped for name in ("/pandas/", "/pyarrow/", "/grpc/"))


def test_no_secret_is_on_a_command_line(airflow: stack.Stack) -> None:
    given = environment(airflow, stack.SCHEDULER)
    secrets = [given[name] for name in given if name.endswith(("SECRET_KEY", "JWT_SECRET", "FERNET_KEY"))]
    assert len(secrets) == 3
    secrets += [airflow.airflow_password, airflow.spark_remote.partition("token=")[2]]
    lines = [_command_line(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    assert not [line for line in lines for secret in secrets if secret in line]


def test_a_dag_is_found_run_and_forgotten(airflow: stack.Stack) -> None:
    """The whole way of the client, and of a task: dag-processor, scheduler, executor, api-server."""
    dag_id = f"made.{uuid.uuid4().hex[:8]}"
    path = airflow.home / "airflow" / "dags" / f"{dag_id}.py"
    path.write_text(DAG.format(dag_id=dag_id))
    with session(airflow) as client:
        try:
            assert until(lambda: is_there(client, dag_id), "the DAG is found")
            client.parse_now(dag_id)
            assert client.trigger(dag_id, run_id="asked-for", note="by a test").state == "queued"
            assert finished(client, dag_id, "asked-for").state == "success"
            with pytest.raises(ConfigError, match="409"):
                client.trigger(dag_id, run_id="asked-for")
            client.pause(dag_id, True)
            assert client.dag(dag_id).is_paused
            waiting = client.trigger(dag_id)
            client.fail_run(dag_id, waiting.run_id)
            assert [run.run_id for run in client.runs(dag_id, states=["failed"])] == [waiting.run_id]
        finally:
            path.unlink()
        client.delete(dag_id)
        with pytest.raises(ConfigError, match="404"):
            client.dag(dag_id)
    log = (
        airflow.home / "airflow" / "logs" / f"dag_id={dag_id}" / "run_id=asked-for" / "task_id=works" / "attempt=1.log"
    )
    assert "at work" in log.read_text()


def test_a_second_start_has_nothing_to_migrate(airflow: stack.Stack) -> None:
    """Another start of the same stack finds the tables as they should be, by one query."""
    from connect_core.stack import airflow_database

    told: list[str] = []
    version = airflow.part(stack.SCHEDULER).version
    log = airflow.home / "logs" / "airflow-migration.log"
    before = log.stat().st_mtime_ns
    airflow_database.migrate(environment(airflow, stack.SCHEDULER), version, log, told.append)
    assert told == []
    assert log.stat().st_mtime_ns == before


@pytest.fixture
def home(airflow: stack.Stack) -> Site:
    return Site(airflow.home.parent, f"t-{uuid.uuid4().hex[:12]}", [airflow.name_servers], airflow.database_url)


@pytest.fixture
def client(airflow: stack.Stack) -> Iterator[Airflow]:
    with Airflow(airflow.airflow_url, airflow.airflow_user, airflow.airflow_password) as session:
        yield session


@pytest.fixture
def name() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


def finished(client: Airflow, dag_id: str, run_id: str) -> DagRun:
    def over() -> DagRun | None:
        run = client.run(dag_id, run_id)
        return run if run.ended_at else None

    return until(over, f"the end of {run_id}", 200)


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
    until(lambda: is_there(client, dag), "the DAG is found", told=lambda: _of_the_dag_processor(airflow))
    home.fault("executed")
    client.trigger(dag, run_id="first")
    run = finished(client, dag, "first")

    log = _log(airflow, dag, "first", 2)
    assert run.state == "success", log
    assert sorted(home.messages(), key=int) == [str(number).encode() for number in range(LINES)]
    assert "was lost: its process was killed" in log
    assert "an earlier attempt left 1 range open" in log
    assert f"{LINES:,} records already in the target" in log
    assert "Traceback" not in log
    told = home.json("logs", name)["attempts"]
    assert [one["attempt"] for one in told] == [1, 2]
    assert "an earlier attempt left 1 range open" in "\n".join(told[1]["lines"])
    with Ledger.open(home.database_url) as opened:
        lost, done = opened.runs_of(opened.connector(name).uid, names.attempt_of(dag, "first"))
    assert (lost.state, done.state) == ("lost", "done")
    assert (done.summary or {})["deduplicated"] == LINES
    _look_at_event_and_page(airflow, name, dag)
    _break_the_source(airflow, home, client, name)
    _pause_and_delete(home, client, name)


def test_a_target_is_verified_as_its_document_says(
    airflow: stack.Stack, home: Site, client: Airflow, name: str
) -> None:
    """It is read again by a DAG of its own, which fails when somebody has changed it, and is not tried again."""
    document = documents(home, name) | {"sink": {"file": {"path": f"{name}.out"}}, "verify": {"every": "1s"}}
    home.apply(name, document)
    dag = names.verify_dag(name)
    home.waybill("run", name, "--engine", "inline")
    until(lambda: is_there(client, dag) and _states(client, dag)["success"], "it was verified")
    assert not _states(client, dag)["failed"]
    out = home.folder / f"{name}.out"
    out.write_text(out.read_text().replace("\n777\n", "\n778\n"))
    until(lambda: _states(client, dag)["failed"], "the change is seen")
    (run, *_) = client.runs(dag, states=["failed"])
    log = (
        airflow.home
        / "airflow"
        / "logs"
        / f"dag_id={dag}"
        / f"run_id={run.run_id}"
        / "task_id=verify"
        / "attempt=1.log"
    ).read_text()
    assert f"{name}: 0 of 1 range as the receipts say" in log
    assert f"{name}.log 0-" in log
    assert "The target is not as the receipts say: 1 range of 1" in log
    assert "a person must fix this" in log
    assert "Traceback" not in log
    home.waybill("connectors", "delete", name, "--yes")
    assert not is_there(client, dag)


def _states(client: Airflow, dag: str) -> Counter[str]:
    return Counter(run.state for run in client.runs(dag, states=["success", "failed"]))


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
    assert f"{LINES:,} already in the target; {LINES:,} read in" in page.text
    (extra,) = [event["extra"] for event in events if event["uri"] == f"waybill://{name}/receipts"]
    assert (extra["read"], extra["deduplicated"]) == (LINES, LINES)


def _break_the_source(airflow: stack.Stack, home: Site, client: Airflow, name: str) -> None:
    """What no retry mends fails at once, and says so."""
    (home.folder / f"{name}.log").write_text("something else\n")
    dag = names.live_dag(name)
    client.trigger(dag, run_id="second")
    run = finished(client, dag, "second")
    log = _log(airflow, dag, "second", 1)
    assert run.state == "failed", log
    assert "Records are gone" in log
    assert "a person must fix this" in log
    assert "Traceback" not in log
    assert not _path(airflow, dag, "second", 2).exists()


def _pause_and_delete(home: Site, client: Airflow, name: str) -> None:
    home.waybill("connectors", "pause", name)
    assert client.dag(names.live_dag(name)).is_paused
    client.pause(names.live_dag(name), False)
    (shown,) = [one for one in home.json("connectors", "list")["connectors"] if one["name"] == name]
    assert shown["switch"] == "on"
    home.waybill("connectors", "delete", name, "--yes")
    until(lambda: not is_there(client, names.live_dag(name)), "the DAG is gone")
    assert not is_there(client, names.backfill_dag(name))


def _of_the_dag_processor(airflow: stack.Stack) -> str:
    parsed = sorted((airflow.home / "airflow" / "logs" / "dag_processor").glob("*/*/replication.py.log"))
    logs = [airflow.home / "logs" / "dag-processor.log", *parsed]
    return "\n".join(line for log in logs for line in log.read_text().splitlines()[-40:])


def _path(airflow: stack.Stack, dag: str, run_id: str, attempt: int) -> Path:
    folder = airflow.home / "airflow" / "logs" / f"dag_id={dag}" / f"run_id={run_id}"
    return folder / "task_id=task_0" / f"attempt={attempt}.log"


def _log(airflow: stack.Stack, dag: str, run_id: str, attempt: int) -> str:
    path = _path(airflow, dag, run_id, attempt)
    return path.read_text() if path.exists() else "there is no such log"


def until(
    look: Callable[[], Found | None], what: str, within_s: float = 120, told: Callable[[], str] = lambda: ""
) -> Found:
    """What `look` finds, which it does in time; else the test fails with what is `told`."""
    limit = time.monotonic() + within_s
    while not (found := look()):
        assert time.monotonic() < limit, f"not within {within_s:g} s: {what}\n{told()}"
        time.sleep(0.2)
    return found


def is_there(client: Airflow, dag_id: str) -> bool:
    try:
        return not client.dag(dag_id).is_stale
    except ConfigError:
        return False


def _session_of(entry: Path) -> int:
    try:
        return os.getsid(int(entry.name))
    except ProcessLookupError:
        return 0


def _sockets(pid: str) -> set[str]:
    found = set()
    try:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            found.add(os.readlink(descriptor))
    except OSError:
        pass
    return found


def _command_line(entry: Path) -> str:
    try:
        return (entry / "cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""
