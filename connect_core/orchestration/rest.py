"""A client of Airflow's REST API v2: the few calls that pause, start, stop and delete need.

Imports no Airflow, so it works from where none is installed, against any Airflow 3. Every failure is one of our errors:
`Unreachable` when nobody answers or the server fails, `Refused` when the login does not do, `ConfigError` when Airflow
does not know the thing or will not have it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import BoundedSemaphore
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from connect_core.errors import ConfigError, Refused, Unreachable, WaybillError

if TYPE_CHECKING:
    import httpx

# A busy machine needs many seconds for an answer; one that is not there refuses at once.
_TIMEOUT_S = 30.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LONGEST_DETAIL = 300
_AT_ONCE = BoundedSemaphore(4)
"""So many requests of this process are under way. Airflow's server has 15 connections to its database, and a request
may need two: more of them at once wait for each other for half a minute, and with them the tasks that report to it."""
_PAGE = 100  # the most that Airflow gives at once


class NotThere(ConfigError):
    """Airflow does not know what it was asked for, or not yet."""


@dataclass(frozen=True)
class Dag:
    """What Airflow says of one DAG. Stale: its file does not have it any more. `file_token` names that file."""

    dag_id: str
    is_paused: bool
    is_stale: bool
    file_token: str


@dataclass(frozen=True)
class DagRun:
    """One run of a DAG. Times are ISO 8601, None while it has not come that far; `state` is Airflow's word."""

    run_id: str
    state: str
    run_type: str
    run_after: str
    started_at: str | None
    ended_at: str | None
    conf: Mapping[str, Any]
    note: str | None


class Airflow:
    """A session with one Airflow. `with` logs in; the answer to each call comes before it returns."""

    def __init__(self, url: str, user: str, password: str, *, transport: httpx.BaseTransport | None = None) -> None:
        import httpx  # with TLS and asyncio behind it, which most commands do without

        self._url = url.rstrip("/")
        self._login = {"username": user, "password": password}
        there = urlsplit(url)
        self._client = httpx.Client(
            timeout=_TIMEOUT_S,
            # A proxy of the user's knows nothing of this machine's loopback.
            trust_env=there.hostname not in _LOOPBACK,
            # To load whom a certificate may be from takes 20 ms.
            verify=there.scheme == "https",
            transport=transport,
        )

    def __enter__(self) -> Airflow:
        try:
            token = self._send("POST", "/auth/token", json=self._login)["access_token"]
        except WaybillError:
            self._client.close()
            raise
        self._client.headers["Authorization"] = f"Bearer {token}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def health(self) -> dict[str, str]:
        """Part -> `healthy` or `unhealthy`; a part that was never started is left out."""
        answer = self._send("GET", "/api/v2/monitor/health")
        return {part: told["status"] for part, told in answer.items() if told and told["status"]}

    def dag(self, dag_id: str) -> Dag:
        return _dag(self._send("GET", _path(dag_id)))

    def dags(self, tag: str, *, prefix: str = "", only_paused: bool = False, stale: bool = False) -> list[Dag]:
        """Every DAG with this tag, by id, `stale` ones only where asked for; with a `prefix` those whose ids begin with
        it."""
        found: list[Dag] = []
        wish: dict[str, Any] = {"tags": tag, "order_by": "dag_id", "limit": _PAGE}
        wish |= {"dag_id_pattern": f"{prefix}%"} if prefix else {}
        wish |= {"paused": True} if only_paused else {}
        wish |= {"exclude_stale": False} if stale else {}
        while True:
            answer = self._send("GET", "/api/v2/dags", params={**wish, "offset": len(found)})
            found += [_dag(told) for told in answer["dags"]]
            if len(answer["dags"]) < _PAGE:
                return found

    def pause(self, dag_id: str, paused: bool) -> None:
        """Sets Airflow's switch. A run in flight goes on until its tasks look; no new one begins while it is off."""
        self._send("PATCH", _path(dag_id), json={"is_paused": paused})

    def trigger(
        self, dag_id: str, *, run_id: str | None = None, conf: Mapping[str, Any] | None = None, note: str | None = None
    ) -> DagRun:
        """Starts a run now. With a `run_id` of your own a second call is a ConfigError, not a second run."""
        wish = {"logical_date": None, "dag_run_id": run_id, "conf": dict(conf or {}), "note": note}
        return _run(self._send("POST", f"{_path(dag_id)}/dagRuns", json=wish))

    def run(self, dag_id: str, run_id: str) -> DagRun:
        return _run(self._send("GET", _path(dag_id, run_id)))

    def runs(self, dag_id: str, *, states: Sequence[str] = (), limit: int = 20) -> list[DagRun]:
        """The newest first; of these states only, when some are given."""
        wish = {"order_by": "-run_after", "limit": limit, "state": list(states)}
        answer = self._send("GET", f"{_path(dag_id)}/dagRuns", params=wish)
        return [_run(told) for told in answer["dag_runs"]]

    def fail_run(self, dag_id: str, run_id: str) -> None:
        """Marks a run as failed: its tasks are told at their next heartbeat, those not yet started never start."""
        self._send("PATCH", _path(dag_id, run_id), json={"state": "failed"})

    def tries(self, dag_id: str, run_id: str, task_id: str) -> list[int]:
        """The numbers of the attempts at a task that there were, ascending."""
        answer = self._send("GET", f"{_task(dag_id, run_id, task_id)}/tries")
        return sorted(told["try_number"] for told in answer["task_instances"])

    def log(self, dag_id: str, run_id: str, task_id: str, number: int) -> list[str]:
        """What an attempt has logged, by line; to its end only once it is over."""
        whole = {"full_content": "true"}
        answer = self._send("GET", f"{_task(dag_id, run_id, task_id)}/logs/{number}", params=whole)
        return [_log_line(told) for told in answer["content"]]

    def parse_now(self, dag_id: str) -> None:
        """Has the file of this DAG parsed at once, with all the other DAGs that it makes."""
        self._send("PUT", f"/api/v2/parseDagFile/{quote(self.dag(dag_id).file_token, safe='')}")

    def delete(self, dag_id: str) -> None:
        """Removes the DAG with its runs and their logs in the database. One whose task runs is a ConfigError."""
        self._send("DELETE", _path(dag_id))

    def _send(self, method: str, path: str, **more: Any) -> Any:
        import httpx

        try:
            with _AT_ONCE:
                answer = self._client.request(method, f"{self._url}{path}", **more)
        except httpx.HTTPError as error:
            raise Unreachable(
                f"Airflow does not answer: {type(error).__name__}", where=self._url, next_step="Run `waybill dev up`"
            ) from error
        if answer.is_error:
            raise self._refusal(method, path, answer)
        return answer.json() if answer.content else None

    def _refusal(self, method: str, path: str, answer: httpx.Response) -> WaybillError:
        code, where = answer.status_code, f"{method} {self._url}{path}"
        if code in (401, 403):
            step = "Use the login of that Airflow; the local stack's is in .waybill/airflow/passwords.json"
            return Refused(f"Airflow refused the login ({code})", where=where, next_step=step)
        if code < 500:
            step = _NEXT_STEPS.get(code, "")
            kind = NotThere if code == 404 else ConfigError
            return kind(f"Airflow: {_detail(answer)} ({code})", where=where, next_step=step)
        return Unreachable(f"Airflow failed ({code})", where=where, next_step="Read the log of its api-server")


_NEXT_STEPS = {
    404: "Airflow shows a connector some seconds after waybill apply; waybill dev status says whether it runs",
    409: "Wait for the run at work, or stop it first",
}


def _path(dag_id: str, run_id: str | None = None) -> str:
    dag = f"/api/v2/dags/{quote(dag_id, safe='')}"
    return dag if run_id is None else f"{dag}/dagRuns/{quote(run_id, safe='')}"


def _task(dag_id: str, run_id: str, task_id: str) -> str:
    return f"{_path(dag_id, run_id)}/taskInstances/{quote(task_id, safe='')}"


def _log_line(told: dict[str, Any] | str) -> str:
    """Structured, as tasks log, or as a line of text."""
    if isinstance(told, str):
        return told.rstrip("\n")
    return " ".join(str(told[key]) for key in ("timestamp", "level", "event") if told.get(key))


def _dag(told: dict[str, Any]) -> Dag:
    return Dag(told["dag_id"], told["is_paused"], told["is_stale"], told["file_token"])


def _run(told: dict[str, Any]) -> DagRun:
    return DagRun(
        run_id=told["dag_run_id"],
        state=told["state"],
        run_type=told["run_type"],
        run_after=told["run_after"],
        started_at=told["start_date"],
        ended_at=told["end_date"],
        conf=told["conf"] or {},
        note=told["note"],
    )


def _detail(answer: httpx.Response) -> str:
    """Airflow's words for what is wrong, without what was sent: a run's conf may hold what nobody should read."""
    try:
        detail = answer.json()["detail"]
    except (ValueError, KeyError, TypeError):
        return answer.reason_phrase
    if isinstance(detail, list):
        detail = "; ".join(f"{'.'.join(map(str, fault.get('loc', ())))}: {fault.get('msg')}" for fault in detail)
    elif isinstance(detail, dict):
        detail = detail.get("reason", answer.reason_phrase)
    return str(detail)[:_LONGEST_DETAIL]
