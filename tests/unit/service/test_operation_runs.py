"""What the process of an operation does: by whom, with which end, and how far it says that it has come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from connect_core.errors import ConfigError
from connect_core.ledger import Connector, Ledger, Operation
from connect_core.orchestration import control
from connect_core.sdk.values import Json
from connect_core.service import backfill_runs, operation_runs
from connect_core.service.opened import AtWork
from connect_core.service.operation_kinds import KINDS, OperationKind
from connect_core.service.operation_runs import OperationTeller, execute
from connect_core.service.run_report import Progress


def add(opened: AtWork, kind: str = "run", asked: Json | None = None) -> Operation:
    uid = opened.ledger.connector("copy").uid
    return opened.ledger.add_operation(uid, kind, asked or {}, who="token ci from 192.0.2.7", server="here")


def now(ledger: Ledger, made: Operation) -> Operation:
    found = ledger.operation(made.id)
    assert found is not None
    return found


def never() -> None:
    raise AssertionError("nobody has cancelled it")


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The connectors whose runs were begun in Airflow."""
    begun: list[str] = []

    @contextmanager
    def there(*_: Any) -> Iterator[object]:
        yield object()

    monkeypatch.setattr(control, "airflow_of", there)
    monkeypatch.setattr(control, "begin_run", lambda airflow, name: begun.append(name))
    return begun


def test_a_run_is_begun_by_the_airflow_that_runs_the_connectors(opened: AtWork, airflow: list[str]) -> None:
    made = add(opened)
    assert execute(opened, made.id, never)
    assert airflow == ["copy"]
    assert now(opened.ledger, made).result == {"connector": "copy", "begun_in": "airflow"}


def test_gaps_are_accepted_for_one_run_here(
    opened: AtWork, airflow: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYBILL_ENGINE", "inline")
    seen = []
    monkeypatch.setattr(
        "connect_core.service.runs.run", lambda opened, name, how: seen.append((name, how.accept_gaps)) or {}
    )
    assert execute(opened, add(opened, asked={"accept_gaps": True}).id, never)
    assert (seen, airflow) == ([("copy", True)], [])


def test_it_is_done_in_the_name_of_its_caller_and_once(opened: AtWork, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def do(mine: AtWork, operation: Operation, telling: object) -> Json:
        seen.append(mine.settings.user)
        return {}

    kind = OperationKind("operator", lambda asked: None, do, lambda operation: "again")
    monkeypatch.setattr(operation_runs, "KINDS", {**KINDS, "run": kind})
    made = add(opened)
    for _ in range(2):
        assert execute(opened, made.id, never)
    assert seen == ["token ci from 192.0.2.7"]


def test_an_error_that_nobody_expects_is_an_end_too(opened: AtWork, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = OperationKind("operator", lambda asked: None, lambda *_: {"a": 1 / 0}, lambda operation: "again")
    monkeypatch.setattr(operation_runs, "KINDS", {**KINDS, "run": kind})
    made = add(opened)
    assert not execute(opened, made.id, never)
    ended = now(opened.ledger, made)
    assert ended.state == "failed"
    assert "ZeroDivisionError" in (ended.problem or {})["detail"]


def test_progress_is_that_of_all_tasks(opened: AtWork) -> None:
    made = add(opened)
    opened.ledger.begin_operation(made.id)
    teller = OperationTeller(opened.ledger, made.id)
    teller.listener.progress(Progress(0, 5, 10, 1))
    assert now(opened.ledger, made).progress == {"done": 5, "planned": 10, "records": 1}
    teller.listener.progress(Progress(1, 1, 10, 1))
    assert now(opened.ledger, made).progress == {"done": 5, "planned": 10, "records": 1}  # a moment later, not at once
    teller.listener.progress(Progress(1, 10, 10, 4))
    teller.listener.progress(Progress(0, 10, 10, 3))
    assert now(opened.ledger, made).progress == {"done": 20, "planned": 20, "records": 7}


@pytest.mark.parametrize("cancelled", [False, True], ids=["fails", "is cancelled"])
def test_how_far_one_has_come_is_told_at_its_end(
    cancelled: bool, opened: AtWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    def do(mine: AtWork, operation: Operation, teller: OperationTeller) -> Json:
        for records in (1, 2, 3):
            teller.listener.progress(Progress(0, records, 10, records))
        if cancelled:
            mine.ledger.end_operation(operation.id, "cancelled")
        raise ConfigError("no more")

    kind = OperationKind("operator", lambda asked: None, do, lambda operation: "again")
    monkeypatch.setattr(operation_runs, "KINDS", {**KINDS, "run": kind})
    made = add(opened)
    execute(opened, made.id, never)
    ended = now(opened.ledger, made)
    assert (ended.state, ended.progress) == (
        "cancelled" if cancelled else "failed",
        {"done": 3, "planned": 10, "records": 3},
    )


def _cancelled(ledger: Ledger, uid: str) -> None:
    ledger.cancel_backfill(uid, "backfill-one", who="bob")


def _deleted(ledger: Ledger, uid: str) -> None:
    ledger.delete(uid, who="bob")


@pytest.mark.parametrize(
    ("happens", "told"),
    [
        (_cancelled, "backfill-one was cancelled before everything was moved"),
        (_deleted, "Connector copy was deleted before everything was moved"),
    ],
)
def test_a_backfill_that_somebody_has_called_off_has_not_succeeded(
    happens: Callable[[Ledger, str], None], told: str, opened: AtWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    def attempt(opened: AtWork, connector: Connector, *_: object) -> Json:
        happens(opened.ledger, connector.uid)
        return {"connector": "copy", "ranges": 1}

    monkeypatch.setattr(backfill_runs, "attempt", attempt)
    made = add(opened, "backfill", {"id": "one", "ranges": ["a.log:-"]})
    assert execute(opened, made.id, never)
    ended = now(opened.ledger, made)
    assert (ended.state, ended.result) == ("cancelled", None)
    assert ended.problem is not None
    assert (ended.problem["detail"], ended.problem["kind"]) == (told, "ConfigError")


@pytest.mark.parametrize("why", ["paused", "deleted"])
def test_a_run_that_somebody_has_ended_tells_what_it_moved(
    why: str, opened: AtWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = {"connector": "copy", "delivered": 2, "tasks": [{"task": 0}, {"task": 1, "ended_by": why}]}
    monkeypatch.setattr("connect_core.service.runs.run", lambda *_: moved)
    made = add(opened)
    assert execute(opened, made.id, never)
    ended = now(opened.ledger, made)
    assert (ended.state, ended.result) == ("cancelled", moved)
    assert (ended.problem or {})["detail"] == f"Connector copy was {why} while it ran: it has ended at a range boundary"
