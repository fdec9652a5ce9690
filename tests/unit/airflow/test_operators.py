"""What the operators make of Airflow's words: the form of a backfill, and the button that leads to the receipts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from connect_core import masking
from connect_core.airflow.dags import dags_of
from connect_core.airflow.links import ReceiptsLink
from connect_core.airflow.operators import attempt_from, told
from connect_core.errors import Unreachable
from connect_core.replication.backfill.request import Request
from tests.unit.airflow.test_dags import connector


def asked(**written: Any) -> Request:
    """What the backfill's DAG is asked for, when these fields of its form are filled in."""
    dag = dags_of(connector())[1]
    given = {**dag.params.dump(), **written}
    run = SimpleNamespace(run_type="manual")
    context: Any = {"dag": dag, "dag_run": run, "params": given, "run_id": "manual__1"}
    request = attempt_from("orders", 0, context).request
    assert request is not None
    return request


def test_an_empty_form_asks_for_nothing_but_has_an_id() -> None:
    request = asked()
    assert not request.says_what()
    assert (request.id, request.accept_gaps) == ("manual__1", False)


def test_blanks_around_the_words_and_empty_lines_are_left_out() -> None:
    request = asked(**{"from": " 2h ", "sink": ["path=a.log ", ""], "id": ""})
    assert (request.begin, request.sink, request.id) == ("2h", ("path=a.log",), "manual__1")


@pytest.mark.parametrize("field", ["ranges", "sink"])
def test_a_list_in_which_nothing_is_left_is_as_good_as_none(field: str) -> None:
    """The form then gives null, which the DAG must take."""
    dag = dags_of(connector())[1]
    dag.params[field] = None
    dag.params.validate()
    assert getattr(asked(**{field: None}), field) == ()


@pytest.mark.parametrize(("base", "path"), [("http://127.0.0.1:8080", ""), ("https://flows.example.org/air/", "/air")])
def test_the_button_leads_to_the_host_that_one_is_at(base: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base)
    key: Any = SimpleNamespace(dag_id="replicate.orders", run_id="manual__1 +00:00")
    operator: Any = None
    link = ReceiptsLink().get_link(operator, ti_key=key)
    assert link == f"{path}/waybill/receipts?dag_id=replicate.orders&run_id=manual__1+%2B00%3A00"


@pytest.mark.parametrize(("kind", "code"), [(Unreachable, 3), (ValueError, 1)])
def test_the_log_of_a_task_has_no_secret(kind: type[Exception], code: int) -> None:
    """An error that nobody expected is tried again, as Airflow does with any other exception."""
    masking.remember("kanarien", secret=True)
    log: list[str] = []
    with pytest.raises(SystemExit) as ended, told(log.append):
        raise kind("401 for kanarien")
    assert ended.value.code == code
    assert "***" in log[-1]
    assert "kanarien" not in "".join(log)


@pytest.mark.parametrize("kind", ["AirflowSkipException", "DownstreamTasksSkipped", "AirflowFailException"])
def test_what_airflow_understands_goes_through(kind: str) -> None:
    """A task that has nothing to do is skipped, and neither fails nor is tried again."""
    from airflow.sdk import exceptions

    raised: type[Exception] = getattr(exceptions, kind)
    with pytest.raises(raised), told(lambda text: None):
        raise raised(tasks=[]) if kind == "DownstreamTasksSkipped" else raised("there is nothing to do")
