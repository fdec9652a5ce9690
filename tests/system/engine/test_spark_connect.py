"""Lanes in Python workers of a real Spark Connect server."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from connect_core.clock import now_ns
from connect_core.engine import envelope, spark_jobs
from connect_core.engine.dialling import DialIn
from connect_core.engine.spark_connect import SparkConnectEngine
from connect_core.errors import EngineFailed, Refused, Retriable, Unreachable
from connect_core.stack import ports
from connect_core.work import Outcome
from tests.system.engine.conftest import Running
from tests.unit.engine.lanes import executed_three_times, lane, meeting, scan_task

pytestmark = pytest.mark.server

WORKER_LIMIT_KB = 300 * 1024


def pid_in(note: Path, limit_s: float = 60) -> int:
    until = time.monotonic() + limit_s
    while not (note.exists() and note.read_text()) and time.monotonic() < until:
        time.sleep(0.02)
    return int(note.read_text())


def kill_who_notes(note: Path) -> threading.Thread:
    killer = threading.Thread(target=lambda: os.kill(pid_in(note), signal.SIGKILL))
    killer.start()
    return killer


@pytest.mark.parametrize("count", [1, 2, 5])
def test_each_lane_has_a_task_and_all_run_side_by_side(spark: SparkConnectEngine, tmp_path: Path, count: int) -> None:
    outcomes = spark.execute(meeting(tmp_path, count))
    places = [outcome.receipt.where for outcome in outcomes if outcome.receipt]
    assert [outcome.range_id for outcome in outcomes] == [100 * i for i in range(count)]
    assert sorted(place["task"] for place in places) == list(range(count))
    assert len({place["pid"] for place in places}) == count


def moved_by(spark: SparkConnectEngine, home: Path) -> tuple[int, list[str], Outcome]:
    """The process that worked through a lane, and the packages that its receipt names."""
    with spark.started(1) as ready:
        (outcome,) = ready.execute([lane(home)])
    where = outcome.receipt.where if outcome.receipt else {}
    return where.get("pid", 0), where.get("packages", []), outcome


def test_a_process_that_stays_takes_a_package_that_was_replaced(
    spark: SparkConnectEngine, spark_server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = next(spark_server.packages.glob("*.dist-info/METADATA"))
    former = metadata.read_text()
    before = {pid: packages for pid, packages, _ in (moved_by(spark, tmp_path) for _ in range(6))}
    assert all(packages == ["drill: waybill-drill 1.0"] for packages in before.values())
    metadata.write_text(former.replace("1.0", "1.1"))
    try:
        now = {pid: packages for pid, packages, _ in (moved_by(spark, tmp_path) for _ in range(6))}
        assert now.keys() & before.keys(), "the same process worked before and after"
        assert all(packages == ["drill: waybill-drill 1.1"] for packages in now.values())
        assert spark.scan(scan_task())
        monkeypatch.setattr(envelope, "running", lambda *of: {"drill": "waybill-drill 1.0"})
        _, _, refused = moved_by(spark, tmp_path)
        assert refused.clean
        assert refused.failure is not None
        words = "The driver has waybill-drill 1.0 for drill, and its worker has waybill-drill 1.1"
        assert (refused.failure.kind, refused.failure.what) == ("Retriable", words)
    finally:
        metadata.write_text(former)


def test_a_search_comes_back(spark: SparkConnectEngine) -> None:
    (found,) = spark.scan(scan_task()).values()
    assert found.complete
    assert found.scanned["t"] != os.getpid()


def test_a_job_does_not_ask_the_server_what_its_columns_are(
    spark: SparkConnectEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A private name of the pinned client keeps it from that."""
    monkeypatch.setattr(spark.session().client, "_analyze", lambda *_, **__: pytest.fail("the server was asked"))
    assert spark.scan(scan_task())


def test_what_escapes_from_the_work_is_an_unclean_outcome(spark: SparkConnectEngine, tmp_path: Path) -> None:
    (outcome,) = spark.execute([lane(tmp_path, act="raise")])
    assert (outcome.receipt, outcome.clean) == (None, False)
    with pytest.raises(Retriable, match="ValueError"):
        spark.scan(scan_task(act="raise"))


def test_a_lane_that_may_not_run_is_refused_cleanly(spark: SparkConnectEngine, tmp_path: Path) -> None:
    late = replace(lane(tmp_path), deadline_ns=now_ns() - 1)
    strange = replace(lane(tmp_path, index=1), code="other")
    first, second = spark.execute([late, strange])
    assert first.failure is not None
    assert second.failure is not None
    assert (first.failure.kind, second.failure.kind) == ("Retriable", "VersionMismatch")
    assert first.clean
    assert second.clean


def test_a_killed_worker_is_told_at_once_and_in_one_sentence(spark: SparkConnectEngine, tmp_path: Path) -> None:
    note = tmp_path / "note"
    killer = kill_who_notes(note)
    started = time.monotonic()
    with pytest.raises(EngineFailed, match="A worker was killed or crashed") as raised:
        spark.execute([lane(tmp_path, seconds=15, note=note), lane(tmp_path, index=1, seconds=15)])
    killer.join()
    assert time.monotonic() - started < 5
    assert "\n" not in str(raised.value)
    assert "java" not in str(raised.value)


def test_a_lane_that_hears_no_signal_is_killed_at_its_deadline(spark: SparkConnectEngine, tmp_path: Path) -> None:
    note = tmp_path / "note"
    started = time.monotonic()
    with pytest.raises(EngineFailed, match="A worker was killed or crashed"):
        spark.execute([lane(tmp_path, act="deaf", seconds=30, left_s=3, note=note)])
    assert 2.5 < time.monotonic() - started < 6
    with pytest.raises(ProcessLookupError):
        os.kill(pid_in(note), 0)


def test_the_engine_works_on_after_a_worker_died(spark: SparkConnectEngine, tmp_path: Path) -> None:
    note = tmp_path / "note"
    killer = kill_who_notes(note)
    with pytest.raises(EngineFailed):
        spark.execute([lane(tmp_path, seconds=15, note=note)])
    killer.join()
    (outcome,) = spark.execute([lane(tmp_path)])
    assert outcome.receipt is not None


def test_workers_stay_from_one_execution_to_the_next(spark: SparkConnectEngine, tmp_path: Path) -> None:
    with spark.started(2) as ready:
        outcomes = executed_three_times(ready, tmp_path)
    places = [outcome.receipt.where["pid"] for outcome in outcomes if outcome.receipt]
    assert (len(places), len(set(places))) == (6, 2)
    assert spark.execute([lane(tmp_path)])[0].receipt is not None


def test_a_worker_that_stays_and_is_killed_is_told_by_spark(spark: SparkConnectEngine, tmp_path: Path) -> None:
    note = tmp_path / "note"
    killer = kill_who_notes(note)
    with spark.started(2) as ready, pytest.raises(EngineFailed, match="A worker was killed or crashed"):
        ready.execute([lane(tmp_path, seconds=15, note=note), lane(tmp_path, index=1)])
    killer.join()


def test_a_worker_that_stays_is_killed_at_the_deadline_of_its_own_lane(
    spark: SparkConnectEngine, tmp_path: Path
) -> None:
    with spark.started(1) as ready:
        ready.execute([lane(tmp_path, left_s=2)])
        time.sleep(2.1)
        assert ready.execute([lane(tmp_path, index=1)])[0].receipt is not None
        with pytest.raises(EngineFailed, match="A worker was killed or crashed"):
            ready.execute([lane(tmp_path, index=2, act="deaf", seconds=60, left_s=2)])


def test_workers_that_do_not_reach_the_driver_work_job_by_job(
    spark_server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DialIn, "invitations", lambda self: [b'{"host": "127.0.0.1", "port": 1, "token": ""}'])
    spark = SparkConnectEngine(spark_server.remote)
    with spark.started(1) as ready:
        assert ready is spark
        assert ready.execute([lane(tmp_path)])[0].receipt is not None
    monkeypatch.setattr(DialIn, "__init__", lambda *_: pytest.fail("it is tried once"))
    with spark.started(1) as ready:
        assert ready is spark


def test_workers_that_find_no_slot_are_not_waited_for(
    spark: SparkConnectEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are eight."""
    with monkeypatch.context() as shorter:
        shorter.setattr(spark_jobs, "_DIAL_LIMIT_S", 0.5)
        with spark.started(9) as ready:
            assert ready is spark
    with spark.started(8) as ready:
        assert ready is not spark
        assert len(ready.execute([lane(tmp_path)])) == 1


def test_a_worker_ends_at_once_with_its_driver(spark_server: Running, tmp_path: Path) -> None:
    """Spark itself goes on with the job of a client that was killed."""
    note = tmp_path / "note"
    command = [sys.executable, "-c", DRIVER, str(tmp_path), str(note)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3]), "REMOTE": spark_server.remote}
    with subprocess.Popen(command, env=environment) as driver:
        worker = os.pidfd_open(pid_in(note))
        driver.kill()
    try:
        assert select.select([worker], [], [], 5)[0]
    finally:
        os.close(worker)


DRIVER = """
import os, sys
from pathlib import Path
from connect_core.engine.spark_connect import SparkConnectEngine
from tests.unit.engine.lanes import lane
wanted = lane(Path(sys.argv[1]), seconds=20, left_s=25, note=Path(sys.argv[2]))
SparkConnectEngine(os.environ["REMOTE"]).execute([wanted])
"""


def test_a_job_without_an_answer_is_given_up(spark_server: Running, tmp_path: Path) -> None:
    """The whole server stands still, as on a machine that swaps: no reply, no error."""
    spark = SparkConnectEngine(spark_server.remote)
    spark.warm_up(lanes=1)
    started = time.monotonic()
    spark_server.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(EngineFailed, match="gave no answer within"):
            spark.execute([lane(tmp_path, left_s=0.5)])
    finally:
        spark_server.process.send_signal(signal.SIGCONT)
    assert time.monotonic() - started < 15
    (outcome,) = spark.execute([lane(tmp_path)])
    assert outcome.receipt is not None


def test_a_wrong_token_is_refused_at_once(spark_server: Running, tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(Refused, match="does not accept the token") as raised:
        SparkConnectEngine(spark_server.remote.replace("right-token", "wrong-token")).execute([lane(tmp_path)])
    assert time.monotonic() - started < 3
    assert "wrong-token" not in str(raised.value)


def test_nobody_there_is_told_at_once(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(Unreachable, match="waybill engine start"):
        SparkConnectEngine(f"sc://localhost:{ports.free()}/;token=x").execute([lane(tmp_path)])
    assert time.monotonic() - started < 5


def test_nothing_of_a_lane_is_in_a_plan(
    spark: SparkConnectEngine, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from connect_core.engine import envelope, spark_jobs, spark_task

    requests = [envelope.request(lane(tmp_path, secret="only-in-a-column"))]
    spark_jobs.frame(spark.session(), spark_task.lanes, requests).explain(extended=True)
    plan = capfd.readouterr().out
    assert "LocalTableScan" in plan
    assert "only-in-a-column" not in plan
    assert "Exchange" not in plan


def test_nothing_of_a_lane_is_in_the_log_of_the_server(
    spark_server: Running, spark: SparkConnectEngine, tmp_path: Path
) -> None:
    spark.execute([lane(tmp_path, act="raise", secret="only-in-a-column")])
    log = spark_server.log.read_text()
    assert "ValueError in a worker" in log
    assert "only-in-a-column" not in log


def test_workers_are_used_again_and_stay_small(spark: SparkConnectEngine, tmp_path: Path) -> None:
    places = []
    for _ in range(20):
        (outcome,) = spark.execute([lane(tmp_path, rows=1000)])
        assert outcome.receipt is not None
        places.append(outcome.receipt.where)
    assert len({place["pid"] for place in places}) < 10
    assert max(place["peak_kb"] for place in places) < WORKER_LIMIT_KB


def test_workers_take_their_modules_from_no_archive(spark: SparkConnectEngine) -> None:
    """Each task would read its table of contents again. Python's own, which does not exist, stands in its path."""

    def archives(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import re
        import sys

        import pyarrow as pa

        known = [*sys.path, *sys.path_importer_cache]
        found = ", ".join(entry for entry in known if re.search(r"(?<!/python\d{3})\.(zip|jar)(/|$)", entry))
        for batch in batches:
            yield pa.record_batch([batch.column(0), pa.array([found.encode()], pa.binary())], ["index", "answer"])

    assert spark.answers(archives, [b""], limit_s=60.0) == [b""]


def test_a_server_that_dies_in_the_middle_of_a_job_is_told_at_once(spark_server: Running, tmp_path: Path) -> None:
    """The last test here: the server is gone behind it."""
    spark = SparkConnectEngine(spark_server.remote)
    note = tmp_path / "note"
    killer = threading.Thread(target=lambda: (pid_in(note), spark_server.kill()))
    killer.start()
    with pytest.raises(EngineFailed, match="went away while lanes were running"):
        spark.execute([lane(tmp_path, seconds=15, note=note)])
    killer.join()
    with pytest.raises(Unreachable, match="waybill engine start"):
        spark.execute([lane(tmp_path)])


def test_a_server_that_is_not_there_is_told_before_anything_is_sent() -> None:
    with pytest.raises(Unreachable), SparkConnectEngine(f"sc://localhost:{ports.free()}").started(1):
        pytest.fail("nobody has started")
