"""The client of Airflow's REST API: what it sends, what it makes of answers, and an error of ours for each failure."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from connect_core.errors import ConfigError, Refused, Unreachable, WaybillError
from connect_core.orchestration.rest import Airflow

URL = "http://127.0.0.1:8080"
DAG = {"dag_id": "replicate.a", "is_paused": True, "is_stale": False, "file_token": "x.y/z", "owners": ["somebody"]}
RUN = {
    "dag_run_id": "manual__1",
    "state": "queued",
    "run_type": "manual",
    "run_after": "2026-11-21T22:00:00Z",
    "start_date": None,
    "end_date": None,
    "conf": None,
    "note": None,
}

Answer = Callable[[httpx.Request], httpx.Response]


class Server:
    """Answers each request after the login with the same, and remembers what it was asked."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/auth/token":
            assert json.loads(request.content) == {"username": "admin", "password": "secret"}
            return httpx.Response(201, json={"access_token": "jwt"})
        self.asked.append(request)
        return self._answer(request)

    @property
    def last(self) -> tuple[str, str, Any]:
        request = self.asked[-1]
        body = json.loads(request.content) if request.content else None
        return request.method, request.url.raw_path.decode(), body


def talk(server: Answer, url: str = URL) -> Airflow:
    return Airflow(url, "admin", "secret", transport=httpx.MockTransport(server))


def always(code: int, body: object = None) -> Server:
    return Server(lambda _: httpx.Response(code, json=body) if body is not None else httpx.Response(code))


def test_it_logs_in_and_shows_its_token() -> None:
    server = always(200, DAG)
    with talk(server, f"{URL}/") as airflow:
        airflow.dag("replicate.a")
    assert server.asked[0].headers["Authorization"] == "Bearer jwt"
    assert server.last[:2] == ("GET", "/api/v2/dags/replicate.a")


def test_a_dag() -> None:
    with talk(always(200, DAG)) as airflow:
        dag = airflow.dag("replicate.a")
    assert (dag.dag_id, dag.is_paused, dag.is_stale, dag.file_token) == ("replicate.a", True, False, "x.y/z")


def test_dags_come_page_by_page() -> None:
    there = [{**DAG, "dag_id": f"replicate.{number:03}"} for number in range(150)]

    def page(request: httpx.Request) -> httpx.Response:
        begin = int(request.url.params["offset"])
        return httpx.Response(200, json={"dags": there[begin : begin + int(request.url.params["limit"])]})

    server = Server(page)
    with talk(server) as airflow:
        assert [dag.dag_id for dag in airflow.dags("waybill")] == [dag["dag_id"] for dag in there]
        airflow.dags("waybill", prefix="replicate.", only_paused=True)
    path = "/api/v2/dags?tags=waybill&order_by=dag_id&limit=100&dag_id_pattern=replicate.%25&paused=true&offset=100"
    assert server.last[:2] == ("GET", path)
    with talk(server) as airflow:
        airflow.dags("waybill", stale=True)
    assert "&exclude_stale=false&" in server.last[1]


@pytest.mark.parametrize("paused", [True, False])
def test_pause(paused: bool) -> None:
    server = always(200, DAG)
    with talk(server) as airflow:
        airflow.pause("replicate.a", paused)
    assert server.last == ("PATCH", "/api/v2/dags/replicate.a", {"is_paused": paused})


def test_a_trigger_names_no_logical_date() -> None:
    """The key is required; a run with a date could not be told from a scheduled one."""
    server = always(200, RUN)
    with talk(server) as airflow:
        run = airflow.trigger("backfill.a", run_id="backfill-7", conf={"from": 1}, note="asked for by hand")
    wanted = {"logical_date": None, "dag_run_id": "backfill-7", "conf": {"from": 1}, "note": "asked for by hand"}
    assert server.last == ("POST", "/api/v2/dags/backfill.a/dagRuns", wanted)
    assert (run.run_id, run.state, run.started_at, run.conf) == ("manual__1", "queued", None, {})


def test_runs_of_some_states() -> None:
    server = always(200, {"dag_runs": [RUN, RUN]})
    with talk(server) as airflow:
        assert len(airflow.runs("a", states=("queued", "running"), limit=5)) == 2
    method, path, _ = server.last
    assert (method, path) == (
        "GET",
        "/api/v2/dags/a/dagRuns?order_by=-run_after&limit=5&state=queued&state=running",
    )


def test_a_run_id_is_quoted() -> None:
    server = always(200, RUN)
    with talk(server) as airflow:
        airflow.fail_run("a", "manual__2026-11-21T22:00:00+00:00")
    path = "/api/v2/dags/a/dagRuns/manual__2026-11-21T22%3A00%3A00%2B00%3A00"
    assert server.last == ("PATCH", path, {"state": "failed"})


def test_attempts_at_a_task_and_what_they_logged() -> None:
    server = always(200, {"task_instances": [{"try_number": 2}, {"try_number": 1}]})
    with talk(server) as airflow:
        assert airflow.tries("a", "manual__1", "task_0") == [1, 2]
    assert server.last[1] == "/api/v2/dags/a/dagRuns/manual__1/taskInstances/task_0/tries"
    lines = [{"event": "::group::x"}, {"timestamp": "2026-11-29T15:00:00Z", "level": "info", "event": "moved"}, "old\n"]
    server = always(200, {"content": lines, "continuation_token": None})
    with talk(server) as airflow:
        told = airflow.log("a", "manual__1", "task_0", 2)
    assert told == ["::group::x", "2026-11-29T15:00:00Z info moved", "old"]
    assert server.last[1] == "/api/v2/dags/a/dagRuns/manual__1/taskInstances/task_0/logs/2?full_content=true"


def test_a_parse_is_asked_for_with_the_token_of_the_file() -> None:
    server = Server(lambda asked: httpx.Response(200, json=DAG) if asked.method == "GET" else httpx.Response(201))
    with talk(server) as airflow:
        airflow.parse_now("replicate.a")
    assert server.last == ("PUT", "/api/v2/parseDagFile/x.y%2Fz", None)


def test_delete_has_no_answer() -> None:
    server = always(204)
    with talk(server) as airflow:
        airflow.delete("replicate.a")
    assert server.last == ("DELETE", "/api/v2/dags/replicate.a", None)


def test_health_leaves_out_what_was_never_started() -> None:
    told = {"metadatabase": {"status": "healthy"}, "scheduler": {"status": "unhealthy"}, "triggerer": {"status": None}}
    with talk(always(200, told)) as airflow:
        assert airflow.health() == {"metadatabase": "healthy", "scheduler": "unhealthy"}


@pytest.mark.parametrize(
    ("code", "body", "kind", "words"),
    [
        (401, {"detail": "Invalid credentials"}, Refused, "refused the login"),
        (403, {"detail": "Forbidden"}, Refused, "refused the login"),
        (404, {"detail": "The Dag was not found"}, ConfigError, "The Dag was not found"),
        (409, {"detail": {"reason": "Unique constraint violation", "statement": "INSERT"}}, ConfigError, "Unique"),
        (500, {"detail": "boom"}, Unreachable, r"failed \(500\)"),
        (502, None, Unreachable, "Read the log"),
    ],
)
def test_each_failure_is_an_error_of_ours(code: int, body: object, kind: type[WaybillError], words: str) -> None:
    with talk(always(code, body)) as airflow, pytest.raises(kind, match=words) as caught:
        airflow.dag("replicate.a")
    assert f"GET {URL}/api/v2/dags/replicate.a" in str(caught.value)
    assert caught.value.next_step


def test_a_fault_of_the_form_is_named_without_what_was_sent() -> None:
    detail = [{"type": "missing", "loc": ["body", "conf"], "msg": "Field required", "input": {"password": "hidden"}}]
    with (
        talk(always(422, {"detail": detail})) as airflow,
        pytest.raises(ConfigError, match=r"body\.conf: Field required") as caught,
    ):
        airflow.trigger("a")
    assert "hidden" not in str(caught.value)


def test_few_requests_are_under_way_at_once() -> None:
    """Airflow's server waits for itself where many are: each may need two connections to its database."""
    under_way: list[str] = []
    most: list[int] = []

    def slow(request: httpx.Request) -> httpx.Response:
        under_way.append(request.method)
        most.append(len(under_way))
        time.sleep(0.02)
        under_way.pop()
        return httpx.Response(204)

    with talk(Server(slow)) as airflow, ThreadPoolExecutor(12) as pool:
        list(pool.map(airflow.delete, ["replicate.orders"] * 24))
    assert 1 < max(most) <= 4


def test_a_wrong_password_is_refused_at_once() -> None:
    with pytest.raises(Refused, match=r"passwords.json") as caught, talk(lambda _: httpx.Response(401, json={})):
        pass
    assert "secret" not in str(caught.value)


def test_nobody_listens() -> None:
    def nobody(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with pytest.raises(Unreachable, match=f"does not answer: ConnectError.*{URL}.*waybill dev up"), talk(nobody):
        pass


def test_the_client_brings_neither_airflow_nor_what_it_speaks_with() -> None:
    """The command line imports it each time it is called."""
    heavy = "('airflow', 'httpx', 'pyspark', 'sqlalchemy')"
    script = f"import sys, connect_core.orchestration.rest; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
