"""A backfill that Airflow runs, as the command shows it. Airflow is a small server here; the backfill is a real one."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests import warm
from tests.unit.cli.conftest import Waybill
from tests.unit.cli.test_backfills import copied

__all__ = ["copied"]


class _Airflow(BaseHTTPRequestHandler):
    """Runs a backfill when it is triggered."""

    folder: Path
    running: subprocess.Popen[bytes]
    asked: list[dict[str, object]]
    fails: bool

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/auth/token":
            return self._answer({"access_token": "token"}, 201)
        stream = f"backfill-{told['conf']['id']}"
        type(self).asked.append(told["conf"])
        start = subprocess.Popen if self.fails else warm.session().popen
        command = ["false"] if self.fails else ["waybill", "backfills", "resume", "copy", stream, "--engine", "inline"]
        type(self).running = start(command, cwd=self.folder, stdout=subprocess.DEVNULL)
        return self._answer(self._run(told["dag_run_id"], "queued"))

    def do_GET(self) -> None:
        path = unquote(self.path)
        if "dagRuns" not in path:
            dag = {"dag_id": path.split("/")[4], "is_paused": False, "is_stale": False, "file_token": "t"}
            return self._answer(dag)
        state = {None: "running", 0: "success"}.get(self.running.poll(), "failed")
        return self._answer(self._run(path.split("/")[-1], state))

    def _run(self, run_id: str, state: str) -> dict[str, object]:
        now = "2026-11-23T12:00:00Z"
        times = {"run_after": now, "start_date": now, "end_date": None}
        return {"dag_run_id": run_id, "state": state, "run_type": "manual", "conf": {}, "note": None, **times}

    def _answer(self, told: object, status: int = 200) -> None:
        body = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *words: object) -> None:
        """Says nothing."""


@pytest.fixture
def airflow(copied: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Airflow]]:
    handler: type[_Airflow] = type("Airflow", (_Airflow,), {"folder": copied, "asked": [], "fails": False})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        monkeypatch.setenv("WAYBILL_AIRFLOW_URL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("WAYBILL_AIRFLOW_USER", "admin")
        monkeypatch.setenv("WAYBILL_AIRFLOW_PASSWORD", "secret")
        yield handler
        server.shutdown()


@pytest.mark.usefixtures("airflow")
def test_it_shows_records_and_ends_with_counts_and_where_the_receipts_are(waybill: Waybill, copied: Path) -> None:
    typed = waybill("backfill", "copy", "--range", "a.log:0-8", "--id", "one")
    assert typed.code == 0, typed.err
    assert (copied / "out" / "copy.txt.backfill-one").read_text() == "one\ntwo\n"
    assert "copy: progress: waybill backfills show copy backfill-one" in typed.err
    assert "task 0: 100%, 2 records" in typed.err
    first, *_, receipts, state = typed.out.splitlines()
    assert first.startswith("copy: 2 delivered, 0 already in the target; 2 read in 1 range (")
    assert receipts == "  receipts: waybill receipts copy --stream backfill-one"
    assert state == "copy: backfill-one is done"


@pytest.mark.usefixtures("airflow")
def test_its_counts_are_in_its_json(waybill: Waybill, copied: Path) -> None:
    told = waybill("backfill", "copy", "--range", "a.log:0-8", "--id", "one", "--json").json
    assert (told["state"], told["read"], told["delivered"], told["ranges"]) == ("done", 2, 2, 1)


def test_gaps_may_be_accepted_when_it_is_resumed(waybill: Waybill, airflow: type[_Airflow]) -> None:
    """As the error of one that has failed says."""
    airflow.fails = True
    assert waybill("backfill", "copy", "--range", "a.log:0-8", "--id", "one").code == 1
    airflow.fails = False
    assert waybill("backfills", "resume", "copy", "one", "--accept-gaps").code == 0
    assert [asked["accept_gaps"] for asked in airflow.asked] == [False, True]
