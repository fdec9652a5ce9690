"""Tasks of an Airflow run, each a process of its own, send dead letters of their partitions to the second target."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from connect_core.errors import Retriable
from connect_core.ledger import Ledger
from connect_core.replication.driver.context import RunListener
from connect_core.sdk.values import ERRORS_SINK, Json
from connect_core.service.scheduled import Moved, TaskAttempt, reconcile, replicate

OF = "replicate.logs scheduled__1"

pytestmark = pytest.mark.usefixtures("warm_lanes")


@pytest.fixture
def ledger(tmp_path: Path, empty_ledger: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """With a connector of two logs and two tasks; one line of each log is no JSON."""
    home, logs = tmp_path / ".waybill", tmp_path / "logs"
    home.mkdir()
    logs.mkdir()
    for name in ("a", "b"):
        (logs / f"{name}.log").write_text(f'{{"n": 1}}\n{name}\n{{"n": 2}}\n')
    monkeypatch.chdir(tmp_path)
    shutil.copy(empty_ledger, home / "ledger.db")
    monkeypatch.setenv("WAYBILL_HOME", str(home))
    monkeypatch.setenv("WAYBILL_ENGINE", "inline")
    monkeypatch.delenv("WAYBILL_DATABASE_URL", raising=False)
    with Ledger.open(f"sqlite:///{home}/ledger.db") as opened:
        opened.apply("logs", document(tmp_path, {"file": {"path": str(tmp_path / "bad-{task}")}}), who="ann")
        yield opened


def document(folder: Path, second: Json) -> Json:
    return {
        "version": 1,
        "name": "logs",
        "tasks": 2,
        "source": {"file": {"path": str(folder / "logs" / "*.log")}},
        "sink": {"file": {"path": str(folder / "out-{task}")}},
        "parse": {"format": "json", "fields": {"n": "int64"}},
        "errors": {"tolerance": "all", "sink": second},
    }


def moved(task: int) -> Moved | None:
    listener = RunListener(lambda line: None, lambda progress: None)
    return replicate(TaskAttempt("logs", task, OF), lambda: "", lambda: "", listener)


def test_each_task_sends_those_of_its_partitions(ledger: Ledger, tmp_path: Path) -> None:
    connector = ledger.connector("logs")
    assert moved(0) == Moved(1)
    assert ledger.letters_waiting(connector.uid) == 0, "of the task that has rejected something"
    assert moved(1) == Moved(1)
    assert sorted(path.read_text() for path in tmp_path.glob("bad-*")) == ["a\n", "b\n"]
    sums = reconcile(ledger, connector, TaskAttempt("logs", 0, OF))
    assert (sums["delivered"], sums["rejected"]) == (4, 2), "what was sent is no part of the sum"


def test_a_second_target_that_is_away_fails_the_task_once_its_records_are_moved(ledger: Ledger, tmp_path: Path) -> None:
    away = {"rocketmq": {"name_servers": "127.0.0.1:9", "topic": "bad"}}
    connector = ledger.apply("logs", document(tmp_path, away), who="ann").connector
    for task in (0, 1):
        with pytest.raises(Retriable):
            moved(task)
    assert len(ledger.receipts(connector.uid, stream="live")) == 2
    assert ledger.letters_waiting(connector.uid) == 2
    ledger.apply("logs", document(tmp_path, {"file": {"path": str(tmp_path / "bad-{task}")}}), who="ann")
    for task in (0, 1):
        moved(task)
    assert ledger.letters_waiting(connector.uid) == 0
    assert len(ledger.receipts(connector.uid, stream=ERRORS_SINK)) == 2
