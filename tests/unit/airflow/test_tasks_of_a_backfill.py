"""A backfill that several tasks of an Airflow run share: each answers for its own partitions."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowSkipException, DownstreamTasksSkipped

from connect_core.airflow import operators
from connect_core.errors import DataError, OffsetGone, Retriable
from connect_core.ledger import Ledger
from connect_core.replication.backfill.request import Request
from connect_core.replication.driver.context import RunListener
from connect_core.replication.driver.window import Window
from connect_core.service import scheduled
from connect_core.service.scheduled import Moved, TaskAttempt, reconcile, replicate

OF = "backfill.logs manual__1"
LOGS = ("a.log", "b.log")


pytestmark = pytest.mark.usefixtures("warm_lanes")


@pytest.fixture
def ledger(tmp_path: Path, empty_ledger: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """With a connector of two logs and two tasks, begun."""
    home, logs = tmp_path / ".waybill", tmp_path / "logs"
    home.mkdir()
    logs.mkdir()
    for name in LOGS:
        (logs / name).write_bytes(b"one line\n" * 100)
    monkeypatch.chdir(tmp_path)
    shutil.copy(empty_ledger, home / "ledger.db")
    monkeypatch.setenv("WAYBILL_HOME", str(home))
    monkeypatch.setenv("WAYBILL_ENGINE", "inline")
    monkeypatch.delenv("WAYBILL_DATABASE_URL", raising=False)
    ends = {"source": {"file": {"path": str(logs / "*.log")}}, "sink": {"file": {"path": str(tmp_path / "out-{task}")}}}
    with Ledger.open(f"sqlite:///{home}/ledger.db") as opened:
        opened.apply("logs", {"version": 1, "name": "logs", "tasks": 2, **ends}, who="ann")
        for task in (0, 1):
            moved(task, TaskAttempt("logs", task, "replicate.logs manual__1"))
        yield opened


def asked(task: int, logs: Iterable[str] = LOGS) -> TaskAttempt:
    wanted = tuple(f"{Path('logs', name).absolute()}:0-900" for name in logs)
    return TaskAttempt("logs", task, OF, request=Request(ranges=wanted, sink=("path=again-{task}",), id="again"))


def moved(task: int, attempt: TaskAttempt | None = None, halted: str = "") -> Moved | None:
    listener = RunListener(lambda line: None, lambda progress: None)
    return replicate(attempt or asked(task), lambda: "", lambda: halted, listener)


def test_a_task_that_is_done_does_not_wait_for_one_that_fails_for_good(ledger: Ledger, tmp_path: Path) -> None:
    assert moved(0) == Moved(1, finished=True)
    tasks = {share.task: one for one, share in ledger.assignment(ledger.connector("logs").uid).shares.items()}
    Path(tasks[1].key).unlink()
    with pytest.raises(OffsetGone):
        moved(1)
    assert moved(0) == Moved(0, finished=True, empty=False)


def test_a_run_whose_tasks_are_done_and_whose_backfill_is_not_has_failed(ledger: Ledger) -> None:
    """As when the DAG has fewer tasks than the partitions are shared by since."""
    moved(0)
    with pytest.raises(DataError, match=r"backfill-again is running.*waybill backfills resume logs backfill-again"):
        reconcile(ledger, ledger.connector("logs"), asked(0))
    moved(1)
    assert reconcile(ledger, ledger.connector("logs"), asked(0))["read"] == 200


def test_the_only_task_of_a_dag_does_not_pass_over_what_others_have_left(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another run of Airflow it finds its own part done."""
    only = replicate_operator(monkeypatch, LOGS)
    only()
    monkeypatch.setattr(operators, "attempt_from", lambda *_: replace(asked(0), of="backfill.logs manual__2"))
    only()
    with pytest.raises(DataError, match="backfill-again is running"):
        reconcile(ledger, ledger.connector("logs"), asked(0))
    moved(1)
    with pytest.raises(DownstreamTasksSkipped):
        only()


def test_the_only_task_of_a_dag_passes_over_the_sum_when_nothing_was_there_to_move(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = replicate_operator(monkeypatch, LOGS)
    monkeypatch.setattr(operators, "attempt_from", lambda *_: TaskAttempt("logs", 0, "replicate.logs manual__2"))
    with pytest.raises(DownstreamTasksSkipped):
        only()


def test_a_dag_whose_tasks_have_no_part_of_a_backfill_has_not_done_it(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares = ledger.assignment(ledger.connector("logs").uid).shares
    others = tuple(Path(one.key).name for one, share in shares.items() if share.task == 1)
    with pytest.raises(AirflowSkipException):
        replicate_operator(monkeypatch, others)()
    with pytest.raises(DataError, match="backfill-again is running"):
        reconcile(ledger, ledger.connector("logs"), asked(0, others))


def test_what_a_lost_attempt_has_settled_is_reconciled(ledger: Ledger) -> None:
    """The next attempt of the same run of Airflow finds nothing more to move."""
    assert moved(0, TaskAttempt("logs", 0, "replicate.logs manual__1")) == Moved(0, finished=True, empty=False)
    assert moved(0, TaskAttempt("logs", 0, "replicate.logs manual__2")) == Moved(0, finished=True, empty=True)


def test_a_task_that_gets_nowhere_is_not_started_again_at_once(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    moved(0)
    monkeypatch.setattr(scheduled, "is_done", lambda *_: False)
    with pytest.raises(Retriable, match="is not done, and there was nothing to move"):
        moved(0)
    assert moved(0, halted="paused") == Moved(0, finished=False, empty=False)


def test_a_backfill_does_not_stay_for_the_window_of_its_connector(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = ledger.connector("logs").document
    ledger.apply("logs", document | {"schedule": {"every": "60s", "window": "55s"}}, who="ann")
    monkeypatch.setattr(Window, "stay", lambda self: pytest.fail("it stays"))
    assert moved(0) == Moved(1, finished=True)


def replicate_operator(monkeypatch: pytest.MonkeyPatch, logs: Iterable[str]) -> Callable[[], None]:
    """Executes the only task of a DAG."""
    monkeypatch.setattr(operators, "die_with_the_supervisor", lambda: None)
    monkeypatch.setattr(operators, "attempt_from", lambda *_: asked(0, logs))
    monkeypatch.setattr(operators, "_is_paused", lambda _: False)
    only = operators.Replicate(connector="logs", number=0, alone=True, task_id="task_0")
    return lambda: only.execute({"dag": SimpleNamespace(dag_id="backfill.logs")})  # type: ignore[arg-type]
