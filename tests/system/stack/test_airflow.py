"""Airflow as the stack starts it: four healthy parts, a login, and a task that runs with what the stack gives it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from connect_core import stack
from connect_core.errors import ConfigError, Refused
from connect_core.orchestration.rest import Airflow, Run

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]

Found = TypeVar("Found")

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
    with session(airflow) as client:
        assert client.health() == dict.fromkeys(("metadatabase", "scheduler", "triggerer", "dag_processor"), "healthy")


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
            assert until(lambda: _is_there(client, dag_id), "the DAG is found")
            client.parse_now(dag_id)
            assert client.trigger(dag_id, run_id="asked-for", note="by a test").state == "queued"
            assert until(lambda: _ended(client, dag_id), "the run has ended").state == "success"
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


def until(look: Callable[[], Found | None], what: str) -> Found:
    """What `look` finds, which it does within a minute."""
    limit = time.monotonic() + 60
    while not (found := look()):
        assert time.monotonic() < limit, f"not within a minute: {what}"
        time.sleep(0.2)
    return found


def _is_there(client: Airflow, dag_id: str) -> bool:
    try:
        return not client.dag(dag_id).is_stale
    except ConfigError:
        return False


def _ended(client: Airflow, dag_id: str) -> Run | None:
    run = client.run(dag_id, "asked-for")
    return run if run.ended_at else None


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
