"""The sum of an Airflow run's receipts, and what is told of its lost attempts."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from connect_core.errors import DataError, Failure
from connect_core.ledger import Ledger
from connect_core.service.scheduled import TaskAttempt, engine_of, lost_attempts, reconcile, what_it_moves
from tests.unit.replication.test_backfill import begin
from tests.unit.replication.world import World

OF = "replicate.orders manual__1"


@pytest.fixture
def world(world: World) -> World:
    world.attempt_of = OF
    return world


def test_the_receipts_of_all_attempts_are_added_up(world: World) -> None:
    world.engine.dies_after = 20
    with pytest.raises(Exception, match="killed"):
        world.run()
    world.run()
    told = reconcile(world.ledger, world.connector, TaskAttempt("orders", 0, OF))
    assert (told["read"], told["delivered"] + told["deduplicated"]) == (200, 200)
    assert told["deduplicated"] == 20
    assert len(told["runs"]) == 2


def test_the_runs_of_others_do_not_count(world: World) -> None:
    world.run()
    assert (
        reconcile(world.ledger, world.connector, TaskAttempt("orders", 0, "replicate.orders manual__2"))["ranges"] == 0
    )


def test_a_receipt_that_does_not_adjoin_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.run()
    (whole,) = world.ledger.receipts(world.connector.uid, limit=None)
    torn = [replace(whole, receipt=replace(whole.receipt, begin=begin, end=begin + 99)) for begin in (100, 0)]
    monkeypatch.setattr(world.ledger, "ranges_of_run", lambda *_, **__: torn)
    with pytest.raises(DataError, match="a receipt ends at 99, the next begins at 100"):
        reconcile(world.ledger, world.connector, TaskAttempt("orders", 0, OF))


def test_what_other_runs_have_moved_between_two_attempts_is_no_fault_of_theirs(world: World) -> None:
    """A person clears a task of an older run of Airflow."""
    world.run()
    for of in ("replicate.orders manual__2", OF):
        world.source.bodies += [b"more"] * 50
        world.attempt_of = of
        world.run()
    told = reconcile(world.ledger, world.connector, TaskAttempt("orders", 0, OF))
    assert (told["ranges"], told["read"]) == (2, 250)


def test_a_receipt_whose_identity_does_not_hold_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.run()
    settled = world.ledger.receipts(world.connector.uid, limit=None)
    wrong = [replace(one, receipt=replace(one.receipt, delivered=one.receipt.delivered - 1)) for one in settled]
    monkeypatch.setattr(world.ledger, "ranges_of_run", lambda *_, **__: wrong)
    with pytest.raises(DataError, match=r"emitted 200 != delivered 199"):
        reconcile(world.ledger, world.connector, TaskAttempt("orders", 0, OF))


def test_a_receipt_that_does_not_cover_its_range_is_told(world: World) -> None:
    """By what is stored, whatever the counts say."""
    world.run()
    assert [one.receipt.covered for one in world.ledger.receipts(world.connector.uid)] == [200]
    with world.ledger._engine.begin() as connection:
        connection.exec_driver_sql("UPDATE ranges SET covered = 199")
    with pytest.raises(DataError, match="199 positions are accounted for, not the 200 from 0 to 200"):
        reconcile(world.ledger, world.connector, TaskAttempt("orders", 0, OF))


def test_lost_attempts_are_told_with_what_became_of_them(world: World) -> None:
    uid, ledger = world.connector.uid, world.ledger
    silent = ledger.begin_run(uid, "live", task=0, engine="spark", attempt_of=OF)
    failed = ledger.begin_run(uid, "live", task=0, engine="spark", attempt_of=OF)
    ledger.begin_run(uid, "live", task=1, engine="spark", attempt_of=OF)
    ledger.end_run(failed, state="failed", failure=Failure("Unreachable", "the broker is away"), summary={})
    told = list(lost_attempts(ledger, world.connector, TaskAttempt("orders", 0, OF)))
    assert len(told) == 2
    assert told[0].startswith(f"attempt {silent}")
    assert told[0].endswith("was lost: its process was killed, or is being replaced")
    assert told[1].endswith("failed: Unreachable: the broker is away")


def test_a_backfill_is_told_with_the_name_that_commands_know_it_by(world: World) -> None:
    stored = begin(world, (0, 20), (40, 60)).stored
    told = what_it_moves("orders", stored)
    assert told == "40 positions in 1 partition: waybill backfills show orders backfill-1"


def test_a_submitted_run_has_the_engine_of_its_document(
    tmp_path: Path, empty_ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, engines = tmp_path / ".waybill", tmp_path / "conf" / "engines"
    home.mkdir()
    engines.mkdir(parents=True)
    (engines / "mine.yaml").write_text(
        "{kind: submit, python: /opt/mine/bin/python, conf: {spark.executor.cores: '2'}}"
    )
    shutil.copy(empty_ledger, home / "ledger.db")
    ends = {end: {"file": {"path": str(tmp_path / end)}} for end in ("source", "sink")}
    with Ledger.open(f"sqlite:///{home}/ledger.db") as ledger:
        ledger.apply("orders", {"version": 1, "name": "orders", "engine": "mine", **ends}, who="ann")
    monkeypatch.setenv("WAYBILL_HOME", str(home))
    monkeypatch.delenv("WAYBILL_DATABASE_URL", raising=False)
    found = engine_of("orders")
    assert (found.kind, found.python, found.conf) == (
        "submit",
        Path("/opt/mine/bin/python"),
        {"spark.executor.cores": "2"},
    )


def test_the_parts_of_a_backfill_need_not_adjoin(world: World) -> None:
    begin(world, (0, 20), (40, 60)).run(attempt_of=OF)
    told = reconcile(world.ledger, world.connector, TaskAttempt("orders", 0, OF))
    assert (told["ranges"], told["read"]) == (2, 40)


def test_a_gap_between_two_receipts_is_no_fault_of_theirs(world: World) -> None:
    world.run()
    world.source.bodies += [b"more"] * 50
    world.source.oldest = 230
    world.accept_gaps = True
    world.run()
    told = reconcile(world.ledger, world.connector, TaskAttempt("orders", 0, OF))
    assert (told["gaps"], told["read"]) == (1, 220)
