"""DAGs: a pure function of the connector's row, one query a parse, and a broken row harms no other."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.base import TimeRestriction
from airflow.timetables.simple import ContinuousTimetable

from connect_core.airflow import dags, register
from connect_core.airflow.dags import dags_of, made
from connect_core.ledger import Connector, Ledger
from connect_core.orchestration import parse_requests
from connect_core.systems import SYSTEMS
from tests.installing import install

DOCUMENT = {
    "version": 1,
    "name": "orders",
    "description": "from the shop",
    "source": {"file": {"path": "/var/log/shop/*.log"}},
    "sink": {"rocketmq": {"name_servers": "127.0.0.1:9876", "topic": "orders"}},
    "tasks": 2,
    "schedule": {"every": "30s"},
}


def connector(**changes: Any) -> Connector:
    return Connector("0123456789ab", "orders", 1, DOCUMENT | changes, "running", datetime(2026, 11, 1, tzinfo=UTC))


def live(**changes: Any) -> DAG:
    return dags_of(connector(**changes))[0]


@pytest.fixture
def home(tmp_path: Path, empty_ledger: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a ledger of three connectors, one of them broken."""
    folder = tmp_path / ".waybill"
    folder.mkdir()
    shutil.copy(empty_ledger, folder / "ledger.db")
    with Ledger.open(f"sqlite:///{folder / 'ledger.db'}") as ledger:
        ledger.apply("orders", DOCUMENT, who="tests")
        ledger.apply("broken", {"version": 1, "name": "broken", "tasks": "many"}, who="tests")
        ledger.apply("copies", DOCUMENT | {"name": "copies"}, who="tests")
        ledger.delete(ledger.apply("gone", DOCUMENT | {"name": "gone"}, who="tests").connector.uid, who="tests")
    monkeypatch.setenv("WAYBILL_HOME", str(folder))
    return folder


def test_a_connector_has_a_live_dag_and_one_for_backfills() -> None:
    ids = [dag.dag_id for dag in dags_of(connector())]
    assert ids == ["replicate.orders", "backfill.orders"]


def test_a_target_is_verified_by_a_dag_of_its_own_that_pausing_does_not_concern() -> None:
    dag = dags_of(replace(connector(verify={"every": "1d", "share": "5%"}), target_state="paused"))[2]
    (task,) = dag.tasks
    assert (dag.dag_id, dag.schedule, dag.is_paused_upon_creation) == ("verify.orders", timedelta(days=1), False)
    assert (task.task_id, getattr(task, "share", None)) == ("verify", 0.05)
    assert "Reads 5% of what was settled again" in str(dag.doc_md)


def test_the_tasks_are_split_when_the_dag_is_made_and_reconcile_comes_after_them() -> None:
    for dag in dags_of(connector(tasks=3)):
        assert dag.task_ids == ["reconcile", "task_0", "task_1", "task_2"]
        assert dag.get_task("reconcile").upstream_task_ids == {"task_0", "task_1", "task_2"}


def test_one_run_of_a_connector_at_a_time() -> None:
    dag = live()
    assert (dag.max_active_runs, dag.catchup) == (1, False)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ({"every": "30s"}, timedelta(seconds=30)),
        ({"continuous": True}, "@continuous"),
        ({"manual": True}, None),
    ],
)
def test_schedules(schedule: dict[str, Any], expected: object) -> None:
    assert live(schedule=schedule).schedule == expected


def test_a_cron_schedule_is_in_utc_and_keeps_its_phase() -> None:
    timetable = DagSerialization.to_dict(live(schedule={"cron": "*/5 * * * *"}))["dag"]["timetable"]
    assert timetable["__type"].endswith("CronTriggerTimetable")
    assert (timetable["__var"]["expression"], timetable["__var"]["timezone"]) == ("*/5 * * * *", "UTC")


def test_the_runs_of_a_continuous_schedule_are_told_apart() -> None:
    """By their logical dates: Airflow makes no run when there is one of that date."""
    restriction = TimeRestriction(earliest=live(schedule={"continuous": True}).start_date, latest=None, catchup=False)
    timetable, last, seen = ContinuousTimetable(), None, set()
    for _ in range(3):
        run = timetable.next_dagrun_info(last_automated_data_interval=last, restriction=restriction)
        assert run is not None
        last = run.data_interval
        seen.add(run.logical_date)
    assert len(seen) == 3


def test_on_change_waits_for_a_read_only_trigger() -> None:
    (asset,) = live(schedule={"on_change": True}).schedule
    (watcher,) = asset.watchers
    path, arguments = watcher.trigger.serialize()
    assert path == "connect_core.airflow.triggers.SourceTrigger"
    assert arguments == {"connector": "orders"}


def test_a_paused_connector_begins_paused() -> None:
    assert dags_of(connector())[0].is_paused_upon_creation is False
    assert dags_of(replace(connector(), target_state="paused"))[0].is_paused_upon_creation is True


def test_an_engine_of_kind_submit_is_started_by_the_provider_s_operator() -> None:
    dag = dags_of(connector(), lambda document: "submit")[0]
    task = dag.get_task("task_1")
    assert isinstance(task, SparkSubmitOperator)
    assert (task.connector, task.number, task.alone) == ("orders", 1, False)


def test_equal_rows_make_equal_dags_in_every_process() -> None:
    here = [DagSerialization.to_dict(dag) for dag in dags_of(connector())]
    assert [DagSerialization.to_dict(dag) for dag in dags_of(connector())] == here
    assert _serialised_elsewhere("1") == serialised()


def serialised() -> str:
    made = [DagSerialization.to_dict(dag) for dag in dags_of(connector(schedule={"on_change": True}))]
    return json.dumps(made, sort_keys=True)


def _serialised_elsewhere(seed: str) -> str:
    """By a process in which sets have another order: this one's seed is a random one, or none."""
    code = "from tests.unit.airflow.test_dags import serialised; print(serialised(), end='')"
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": root}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_its_page_says_what_moves_where_and_no_secret() -> None:
    sink = {"rocketmq": {"topic": "orders", "secret_key": "hush"}}
    words = live(sink=sink).doc_md or ""
    assert "- From file: `path: /var/log/shop/*.log`" in words
    assert "`topic: orders`" in words
    assert "hush" not in str(DagSerialization.to_dict(live(sink=sink)))


def test_the_list_can_be_halved_by_a_tag() -> None:
    tags = [dag.tags for dag in dags_of(connector())]
    assert tags == [{"file", "live", "rocketmq", "waybill"}, {"backfill", "file", "rocketmq", "waybill"}]


def test_nothing_of_a_dag_follows_the_revision_or_the_state() -> None:
    first = DagSerialization.to_dict(live())
    assert DagSerialization.to_dict(dags_of(replace(connector(), revision=7))[0]) == first


@pytest.mark.usefixtures("home")
def test_a_broken_package_harms_no_dag(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = made().keys()
    install(tmp_path, "waybill-thing", {"waybill.systems": "thing = waybill_thing:PLUGIN"}, "import nothing_there")
    monkeypatch.syspath_prepend(str(tmp_path))
    SYSTEMS.reload()
    with Ledger.open(f"sqlite:///{home / 'ledger.db'}") as ledger:
        ledger.apply("needs", DOCUMENT | {"name": "needs", "sink": {"thing": {}}}, who="tests")
    assert "thing" in SYSTEMS.broken
    found = made()
    assert found.keys() - before == {"replicate.needs", "backfill.needs"}
    monkeypatch.undo()
    SYSTEMS.reload()


def test_a_broken_row_makes_a_dag_that_says_so_and_harms_no_other(home: Path) -> None:
    found = made()
    assert sorted(found) == [
        "backfill.copies",
        "backfill.orders",
        "replicate.broken",
        "replicate.copies",
        "replicate.orders",
    ]
    assert "tasks" in (found["replicate.broken"].doc_md or "")
    assert "broken" in found["replicate.broken"].tags
    with pytest.raises(SystemExit) as failed:
        found["replicate.broken"].get_task("task_0").execute({"dag": found["replicate.broken"], "run_id": "first"})
    assert failed.value.code == 2
    with Ledger.open(f"sqlite:///{home / 'ledger.db'}") as ledger:
        (run,) = ledger.runs()
    assert (run.state, run.attempt_of, run.failure and run.failure.kind) == (
        "failed",
        "replicate.broken first",
        "ConfigError",
    )


@pytest.mark.usefixtures("home")
def test_a_parse_asks_the_ledger_once() -> None:
    asked: list[str] = []

    def remember(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        asked.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", remember)
    try:
        made()
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", remember)
    assert [statement for statement in asked if "connectors" in statement] == [asked[-1]]
    assert sum(statement.startswith("SELECT") for statement in asked) == 1


def test_a_task_process_makes_the_dags_of_its_own_connector(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Context:
        dag_id = "backfill.copies"

    monkeypatch.setattr(dags, "get_parsing_context", Context)
    assert sorted(made()) == ["backfill.copies", "replicate.copies"]
    Context.dag_id = "replicate.gone"
    assert made() == {}


def test_the_dag_file_registers_them(home: Path) -> None:
    namespace: dict[str, Any] = {}
    exec((Path(__file__).parents[3] / "dags" / "replication.py").read_text(), namespace)
    assert isinstance(namespace["replicate.orders"], DAG)


def test_a_parse_that_was_asked_for_has_begun_and_a_task_begins_none(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Context:
        dag_id: str | None = "replicate.copies"

    monkeypatch.setattr("airflow.sdk.get_parsing_context", Context)
    monkeypatch.setattr(dags, "get_parsing_context", Context)
    file = tmp_path / "replication.py"
    file.touch()
    parse_requests.ask(file)
    register({"__file__": str(file)})
    assert file.stat().st_mtime > time.time() + 30
    Context.dag_id = None
    register({"__file__": str(file)})
    assert file.stat().st_mtime <= time.time()


@pytest.mark.parametrize("engine", ["inline", "submit"])
def test_all_tasks_of_both_dags_have_the_queue_and_the_pool_of_the_document(engine: str) -> None:
    named = connector(airflow={"queue": "north", "pool": "brokers"})
    both = dags_of(named, lambda _: engine)
    assert {(task.queue, task.pool) for dag in both for task in dag.tasks} == {("north", "brokers")}
    assert all(DagSerialization.to_dict(dag) for dag in both)


def test_a_document_that_names_neither_leaves_both_to_airflow() -> None:
    assert {(task.queue, task.pool) for task in live().tasks} == {("default", "default_pool")}
