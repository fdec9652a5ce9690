"""The Airflow of a place as its REST API shows it: when which task started, and what a DAG looks like."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx

from connect_core.orchestration import names
from tests.bench.place import Place

_PAGE = 100
_TRIES, _BETWEEN_TRIES_S = 10, 1.0


@dataclass(frozen=True)
class Start:
    """The first task of a run: when the run was due, and when the task began; None as long as it has not."""

    dag_id: str
    run_id: str
    due: datetime
    begun: datetime | None
    state: str | None

    @property
    def lag_s(self) -> float:
        if self.begun is None:
            raise ValueError(f"{self.run_id} of {self.dag_id} has not begun")
        return (self.begun - self.due).total_seconds()


@dataclass(frozen=True)
class Web:
    client: httpx.Client

    def starts(self, connectors: str) -> list[Start]:
        """Of all runs of the live DAGs of connectors whose names begin so, in the order in which they were due."""
        wish: dict[str, Any] = {
            "dag_id_prefix_pattern": names.live_dag(connectors),
            "task_id": names.task_id(0),
            "order_by": "id",
            "limit": _PAGE,
        }
        found: list[Start] = []
        while True:
            path = "/api/v2/dags/~/dagRuns/~/taskInstances"
            told = self.get(path, **wish, offset=len(found))["task_instances"]
            found += map(_start, told)
            if len(told) < _PAGE:
                return sorted(found, key=lambda one: one.due)

    def tasks(self, dag_id: str) -> set[str]:
        """Of the newest serialised DAG; none when Airflow does not know it."""
        answer = self.client.get(f"/api/v2/dags/{dag_id}/tasks")
        if answer.status_code == httpx.codes.NOT_FOUND:
            return set()
        return {task["task_id"] for task in answer.raise_for_status().json()["tasks"]}

    def get(self, path: str, **wish: Any) -> Any:
        """A busy api-server may fail a call or two: that is not what is measured."""
        for _ in range(_TRIES):
            answer = self.client.get(path, params=wish)
            if not answer.is_server_error:
                break
            time.sleep(_BETWEEN_TRIES_S)
        return answer.raise_for_status().json()

    def post(self, path: str, **body: Any) -> Any:
        return self.client.post(path, json=body).raise_for_status().json()


@contextmanager
def web(place: Place) -> Iterator[Web]:
    """Logged in."""
    running = place.running
    with httpx.Client(base_url=running.airflow_url, timeout=60, trust_env=False) as client:
        login = {"username": running.airflow_user, "password": running.airflow_password}
        token = client.post("/auth/token", json=login).raise_for_status().json()["access_token"]
        client.headers["Authorization"] = f"Bearer {token}"
        yield Web(client)


def _start(told: dict[str, Any]) -> Start:
    begun = told["start_date"]
    return Start(
        dag_id=told["dag_id"],
        run_id=told["dag_run_id"],
        due=datetime.fromisoformat(told["run_after"]),
        begun=datetime.fromisoformat(begun) if begun else None,
        state=told["state"],
    )
