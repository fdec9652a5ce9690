"""What the command line asks of the Airflow that runs the connectors, against a small server that keeps switches."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from connect_core.config import load_settings
from connect_core.errors import Unreachable
from connect_core.orchestration import control
from connect_core.orchestration.rest import Airflow, NotThere
from tests.unit.cli.conftest import DOCUMENT, Waybill, applied, folder, waybill

__all__ = ["applied", "folder", "waybill"]


class Switches(BaseHTTPRequestHandler):
    """The part of Airflow's API that is asked here."""

    dags: dict[str, bool]
    runs: dict[str, dict[str, str]]
    pauses: bool = True
    """Whether it turns a switch; else it fails."""
    busy: list[int]
    """What the next wishes to end a run or to delete a DAG are answered, the last one first."""
    parsed: list[str]
    begun: list[dict[str, Any]]

    def do_POST(self) -> None:
        if self.path == "/auth/token":
            self._answer(201, {"access_token": "jwt"})
            return
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.begun.append(body)
        self.runs.setdefault(self._dag(), {})[body["dag_run_id"]] = "success"
        self._answer(200, _run(body["dag_run_id"], "queued"))

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path.endswith("/dagRuns"):
            found = self.runs.get(self._dag(), {})
            self._answer(200, {"dag_runs": [_run(name, state) for name, state in found.items() if state == "running"]})
        elif "/dagRuns/" in path:
            name = unquote(path.split("/")[-1])
            self._answer(200, _run(name, self.runs[self._dag()][name]))
        elif path.count("/") == 4 and self._dag() not in self.dags:
            self._answer(404, {"detail": "not there"})
        elif path.count("/") == 4:
            self._answer(200, _dag(self._dag(), self.dags[self._dag()]))
        else:
            self._answer(200, {"dags": [_dag(name, paused) for name, paused in self.dags.items()]})

    def do_PATCH(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        dag = self._dag()
        if dag not in self.dags:
            self._answer(404, {"detail": "not there"})
        elif "is_paused" in body and not self.pauses:
            self._answer(500, {"detail": "not now"})
        elif "is_paused" in body:
            self.dags[dag] = body["is_paused"]
            self._answer(200, _dag(dag, body["is_paused"]))
        elif self.busy:
            self._answer(self.busy.pop(), {"detail": "not now"})
        else:
            self.runs[dag][unquote(self.path.split("/")[-1])] = body["state"]
            self._answer(200, {})

    def do_PUT(self) -> None:
        self.parsed.append(self.path)
        self._answer(201, None)

    def do_DELETE(self) -> None:
        if self.busy:
            self._answer(self.busy.pop(), {"detail": "not now"})
        elif self.dags.pop(self._dag(), None) is None:
            self._answer(404, {"detail": "not there"})
        else:
            self._answer(204, None)

    def _dag(self) -> str:
        return unquote(urlsplit(self.path).path.split("/")[4])

    def _answer(self, code: int, body: Any) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""


def _dag(name: str, paused: bool) -> dict[str, Any]:
    return {"dag_id": name, "is_paused": paused, "is_stale": False, "file_token": "token"}


def _run(name: str, state: str) -> dict[str, Any]:
    times = {"run_after": "2026-11-21T22:00:00Z", "start_date": None, "end_date": None}
    return {"dag_run_id": name, "state": state, "run_type": "manual", "conf": None, "note": None, **times}


@pytest.fixture
def airflow(applied: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Switches]]:
    """An Airflow that knows the connector `copy`, named by the settings."""

    class Mine(Switches):
        dags = {"backfill.copy": False, "replicate.copy": False}  # noqa: RUF012
        runs = {"replicate.copy": {"scheduled__1": "running", "scheduled__0": "success"}}  # noqa: RUF012
        busy: list[int] = []  # noqa: RUF012
        parsed: list[str] = []  # noqa: RUF012
        begun: list[dict[str, Any]] = []  # noqa: RUF012

    server = ThreadingHTTPServer(("127.0.0.1", 0), Mine)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("WAYBILL_AIRFLOW_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("WAYBILL_AIRFLOW_PASSWORD", "secret")
    yield Mine
    server.shutdown()
    thread.join()
    server.server_close()


def test_pause_turns_airflow_s_switch_and_the_ledger_stays_as_it_is(airflow: type[Switches], waybill: Waybill) -> None:
    told = waybill("connectors", "pause", "copy", "--json").json
    assert (told["before"], told["state"]) == ("running", "paused")
    assert airflow.dags["replicate.copy"] is True
    assert waybill("connectors", "show", "copy", "--json").json["state"] == "paused"
    waybill("connectors", "resume", "copy")
    assert airflow.dags["replicate.copy"] is False


def test_a_switch_turned_in_airflow_is_what_is_shown(airflow: type[Switches], waybill: Waybill) -> None:
    airflow.dags["replicate.copy"] = True
    (shown,) = waybill("connectors", "list", "--json").json["connectors"]
    assert (shown["state"], shown["switch"]) == ("paused", "paused")
    (told,) = waybill("status", "--json").json["connectors"]
    assert (told["state"], told["switch"]) == ("paused", "paused"), "one answer for all who ask"


def test_stop_ends_what_runs_and_resume_starts_it_again(airflow: type[Switches], waybill: Waybill) -> None:
    waybill("connectors", "stop", "copy")
    assert airflow.runs["replicate.copy"] == {"scheduled__1": "failed", "scheduled__0": "success"}
    assert waybill("connectors", "show", "copy", "--json").json["state"] == "stopped"
    assert airflow.dags["replicate.copy"] is True
    waybill("connectors", "resume", "copy")
    assert waybill("connectors", "show", "copy", "--json").json["switch"] == "on"
    assert airflow.dags["replicate.copy"] is False


def test_stop_outlasts_a_scheduler_that_writes_the_same_run(airflow: type[Switches], waybill: Waybill) -> None:
    airflow.busy = [500, 409, 500]
    waybill("connectors", "stop", "copy")
    assert airflow.runs["replicate.copy"]["scheduled__1"] == "failed"
    assert airflow.busy == []


def test_delete_removes_the_dags_once_no_task_works(airflow: type[Switches], waybill: Waybill) -> None:
    airflow.busy = [409, 500, 409]
    assert waybill("connectors", "delete", "copy", "--yes").code == 0
    assert airflow.dags == {}
    assert waybill("connectors", "list", "--json").json["connectors"] == []


def test_nothing_of_a_deleted_connector_begins_until_its_dags_are_gone(
    airflow: type[Switches], waybill: Waybill
) -> None:
    """A parse that has read the ledger before may store them once more, and their schedule begins a run."""
    airflow.busy = [409] * 3
    seen = []
    answer = airflow.do_DELETE

    def noted(self: Switches) -> None:
        seen.append(dict(self.dags))
        answer(self)

    airflow.do_DELETE = noted  # type: ignore[method-assign]
    assert waybill("connectors", "delete", "copy", "--yes").code == 0
    assert {paused for dags in seen for paused in dags.values()} == {True}


@pytest.fixture
def broken_off(airflow: type[Switches], waybill: Waybill) -> type[Switches]:
    """A deletion that Airflow has not answered to its end, and its DAGs with their switches off."""
    airflow.pauses = False
    typed = waybill("connectors", "delete", "copy", "--yes")
    assert typed.code == Unreachable.exit_code
    assert "copy is deleted, and Airflow has its DAGs still: Airflow failed (500)" in typed.err
    assert waybill("connectors", "list", "--json").json["connectors"] == []
    airflow.pauses, airflow.dags = True, dict.fromkeys(airflow.dags, True)
    return airflow


def test_a_deletion_that_broke_off_is_finished_by_the_same_command(
    broken_off: type[Switches], waybill: Waybill
) -> None:
    assert waybill("connectors", "delete", "copy", "--yes").code == 0
    assert (broken_off.dags, broken_off.runs["replicate.copy"]["scheduled__1"]) == ({}, "failed")
    assert waybill("connectors", "delete", "copy", "--yes").code == 2


@pytest.mark.parametrize("few", [10, 0])
def test_a_new_connector_has_no_switch_of_one_whose_deletion_broke_off(
    broken_off: type[Switches], waybill: Waybill, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(control, "_FEW", few)
    assert waybill("apply", "copy.yaml").code == 0
    assert (broken_off.dags, broken_off.runs["replicate.copy"]["scheduled__1"]) == ({}, "failed")


def test_what_airflow_may_have_of_a_name_is_said_where_it_is_away(
    broken_off: type[Switches], waybill: Waybill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYBILL_AIRFLOW_URL", "http://127.0.0.1:9")
    typed = waybill("apply", "copy.yaml")
    assert typed.code == 0
    assert "Airflow may have copy paused, from a deletion that broke off" in typed.err


def test_dags_stay_while_a_parse_may_bring_them_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dag-processor that stands still has read the ledger before. One that is gone stores nothing."""

    class Never(Airflow):
        def delete(self, dag_id: str) -> None:
            raise NotThere(dag_id)

    file = tmp_path / "airflow" / "dags" / "replication.py"
    file.parent.mkdir(parents=True)
    file.touch()
    monkeypatch.setattr(control, "_PARSED_LIMIT_S", 0.1)
    control.parse_now(tmp_path, load_settings())
    airflow = Never("http://127.0.0.1:9", "", "")
    monkeypatch.setattr(control, "_parses", lambda home: True)
    with pytest.raises(Unreachable, match=r"has begun no parse for 0\.1 s"):
        control.forget(airflow, "copy", tmp_path, load_settings())
    monkeypatch.setattr(control, "_parses", lambda home: False)
    control.forget(airflow, "copy", tmp_path, load_settings())


def test_apply_has_the_dags_made_anew(airflow: type[Switches], waybill: Waybill, applied: Path) -> None:
    (applied / "copy.yaml").write_text(DOCUMENT.format(name="copy") + "tasks: 1\ndescription: changed\n")
    assert waybill("apply", "copy.yaml").code == 0
    assert airflow.parsed == ["/api/v2/parseDagFile/token"]


def test_the_local_stack_parses_a_change_again_that_comes_while_it_parses(applied: Path, waybill: Waybill) -> None:
    """Airflow compares the file's time with the end of its last parse, which may have read the ledger before."""
    file = applied / ".waybill" / "airflow" / "dags" / "replication.py"
    file.parent.mkdir(parents=True)
    file.touch()
    (applied / "copy.yaml").write_text(DOCUMENT.format(name="copy") + "tasks: 1\ndescription: changed\n")
    assert waybill("apply", "copy.yaml").code == 0
    assert file.stat().st_mtime > time.time()


def test_a_backfill_is_given_to_airflow_in_the_words_it_was_begun_with(
    airflow: type[Switches], waybill: Waybill, applied: Path
) -> None:
    typed = waybill("backfill", "copy", "--range", "a.log:0-", "--id", "again", "--json")
    assert typed.code == 0, typed.err
    (begun,) = airflow.begun
    assert (begun["conf"]["ranges"], begun["conf"]["id"], begun["conf"]["run"]) == (["a.log:0-"], "again", None)
    assert begun["dag_run_id"].startswith("backfill-again.")


def test_a_backfill_whose_dag_is_paused_is_refused(airflow: type[Switches], waybill: Waybill) -> None:
    airflow.dags["backfill.copy"] = True
    typed = waybill("backfill", "copy", "--range", "a.log:0-", "--id", "again")
    assert typed.code == 2
    assert "its DAG is paused in Airflow" in typed.err
    assert "waybill backfills resume copy backfill-again" in typed.err
    assert airflow.begun == []


def test_an_airflow_that_is_away_is_exit_3_and_its_states_are_unknown(
    applied: Path, waybill: Waybill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYBILL_AIRFLOW_URL", "http://127.0.0.1:9")
    typed = waybill("connectors", "pause", "copy")
    assert typed.code == Unreachable.exit_code
    assert "Airflow does not answer" in typed.err
    listed = waybill("connectors", "list", "--json")
    assert listed.json["connectors"][0]["switch"] == "unknown"
    assert "Airflow's switches are unknown: Airflow does not answer" in listed.err
    status = waybill("status", "--json")
    assert (status.code, status.json["connectors"][0]["switch"]) == (0, "unknown")


def test_without_airflow_the_ledger_says_what_a_connector_shall_do(applied: Path, waybill: Waybill) -> None:
    with control.airflow_of(applied / ".waybill", load_settings(applied / ".waybill")) as none:
        assert none is None
    waybill("connectors", "pause", "copy")
    assert waybill("connectors", "show", "copy", "--json").json["state"] == "paused"


def test_the_password_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYBILL_AIRFLOW_PASSWORD", "hunter2")
    assert "hunter2" not in repr(load_settings())
