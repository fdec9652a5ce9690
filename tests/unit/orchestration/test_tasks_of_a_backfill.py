"""A backfill that several tasks of an Airflow run share: each answers for its own partitions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from connect_core.errors import DataError, OffsetGone
from connect_core.ledger import Ledger, upgrade
from connect_core.orchestration.work import Attempt, Moved, reconcile, replicate
from connect_core.replication.requests import Request
from connect_core.replication.setting import Listener

OF = "backfill.logs manual__1"
LOGS = ("a.log", "b.log")


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """With a connector of two logs and two tasks, begun."""
    home, logs = tmp_path / ".waybill", tmp_path / "logs"
    home.mkdir()
    logs.mkdir()
    for name in LOGS:
        (logs / name).write_bytes(b"one line\n" * 100)
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{home}/ledger.db"
    upgrade(url)
    monkeypatch.setenv("WAYBILL_HOME", str(home))
    monkeypatch.setenv("WAYBILL_ENGINE", "inline")
    monkeypatch.delenv("WAYBILL_DATABASE_URL", raising=False)
    ends = {"source": {"file": {"path": str(logs / "*.log")}}, "sink": {"file": {"path": str(tmp_path / "out-{task}")}}}
    with Ledger.open(url) as opened:
        opened.apply("logs", {"version": 1, "name": "logs", "tasks": 2, **ends}, who="ann")
        for task in (0, 1):
            moved(task, Attempt("logs", task, "replicate.logs manual__1"))
        yield opened


def moved(task: int, attempt: Attempt | None = None) -> Moved | None:
    wanted = tuple(f"{Path('logs', name).absolute()}:0-900" for name in LOGS)
    again = Request(ranges=wanted, sink=("path=again-{task}",), id="again")
    listener = Listener(lambda line: None, lambda progress: None)
    return replicate(attempt or Attempt("logs", task, OF, request=again), lambda: "", lambda: "", listener)


def test_a_task_that_is_done_does_not_wait_for_one_that_fails_for_good(ledger: Ledger, tmp_path: Path) -> None:
    assert moved(0) == Moved(1, finished=True)
    tasks = {share.task: one for one, share in ledger.assignment(ledger.connector("logs").uid).shares.items()}
    Path(tasks[1].key).unlink()
    with pytest.raises(OffsetGone):
        moved(1)
    assert moved(0) == Moved(0, finished=True)


def test_a_run_whose_tasks_are_done_and_whose_backfill_is_not_has_failed(ledger: Ledger) -> None:
    """As when the DAG has fewer tasks than the partitions are shared by since."""
    moved(0)
    with pytest.raises(DataError, match=r"backfill-again is running.*waybill backfills resume logs backfill-again"):
        reconcile(ledger, ledger.connector("logs"), OF)
    moved(1)
    assert reconcile(ledger, ledger.connector("logs"), OF)["read"] == 200
