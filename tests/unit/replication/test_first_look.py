"""A log is followed from the first command that shares its connector's partitions out, whatever fails after that."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from connect_core.errors import LeaseHeld, Unreachable
from connect_core.replication.driver.context import RunContext
from connect_core.replication.driver.run import run_connector
from connect_core.replication.driver.task import TaskRun
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import Follower
from connect_core.sdk.values import LIVE
from connect_core.systems.file.options import FileSourceOptions
from connect_core.systems.file.source import FileSource
from tests.unit.replication.test_backfill_start import LINES, live, whole
from tests.unit.replication.world import World

__all__ = ["live", "whole"]


def held(*_: object, **__: object) -> NoReturn:
    raise LeaseHeld("Another connector writes there")


def away(*_: object, **__: object) -> NoReturn:
    raise Unreachable("The target is away")


def following(context: RunContext) -> Follower:
    """What the next run reads, from where the live stream stands."""
    options = FileSourceOptions.model_validate(context.resolved.source.options)
    follower = Follower(FileSource(options))
    named = list(context.ledger.partitions(context.connector.uid))
    follower.positions |= context.ledger.positions(context.connector.uid, LIVE, named)
    return follower


def rotate(log: Path) -> None:
    log.rename(f"{log}.1")
    log.write_bytes(b"new\n")


@pytest.mark.parametrize(
    ("place", "fails"),
    [
        ("connect_core.replication.driver.run.end_older_versions", held),
        ("connect_core.replication.driver.run.systems.sink", away),
        ("connect_core.replication.driver.task.acquire", held),
        ("connect_core.replication.driver.task_context.TaskContext.look_at_targets", away),
    ],
)
def test_a_log_that_a_run_has_found_is_followed_by_the_next_though_it_planned_nothing(
    whole: RunContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, fails: object
) -> None:
    monkeypatch.setattr(place, fails)
    with pytest.raises((LeaseHeld, Unreachable)):
        run_connector(whole)
    rotate(tmp_path / "app.log")
    follower = following(whole)
    assert follower.run() == [*LINES.splitlines(), b"new"]
    assert follower.gaps == []


def test_a_log_that_a_run_has_found_and_that_is_gone_is_a_gap(
    whole: RunContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connect_core.replication.driver.task.acquire", held)
    with pytest.raises(LeaseHeld):
        run_connector(whole)
    log = tmp_path / "app.log"
    rotate(log)
    Path(f"{log}.1").unlink()
    follower = following(whole)
    assert follower.run() == [b"new"]
    assert [(gap.begin, gap.end, gap.reason) for gap in follower.gaps] == [(0, None, "replaced")]


def test_a_file_that_is_seen_first_is_kept_before_the_target_is_looked_at(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a log that is made while a run stays in its window."""
    log = tmp_path / "app.log"
    log.write_bytes(b"line\n")
    source = FileSource(FileSourceOptions(path=str(log), rotation_quiet_s=0))
    monkeypatch.setattr(world.sink, "targets", away)
    shared = world.ledger.assign(world.connector.uid, [Partition(str(log))], 1)
    with pytest.raises(Unreachable):
        TaskRun(world.context(), shared, 0, source, world.sink).run()
    rotate(log)
    (position,) = world.ledger.positions(world.connector.uid, LIVE, [Partition(str(log))]).values()
    follower = Follower(source)
    follower.positions[Partition(str(log))] = position
    assert follower.run() == [b"line", b"new"]
