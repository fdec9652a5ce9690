"""A run without a window moves what was there when it began, then ends, however fast its log is rotated meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from connect_core.errors import OffsetGone
from connect_core.replication.driver.task import TaskRun
from connect_core.systems.file.options import FileSourceOptions
from connect_core.systems.file.source import FileSource
from connect_core.work import Lane, Outcome
from tests.unit.replication.world import DirectEngine, World


class Log:
    """Written to and rotated by a program. `deletes`: it keeps no file but the newest rotated one."""

    def __init__(self, path: Path) -> None:
        self.path, self.rotations, self.deletes = path, 0, False
        path.parent.mkdir()
        path.write_bytes(b"line 0\n")

    def rotate(self) -> None:
        self.rotations += 1
        self.path.rename(f"{self.path}-{20261125000000 + self.rotations}")
        if self.deletes:
            Path(f"{self.path}-{20261125000000 + self.rotations - 1}").unlink(missing_ok=True)
        self.path.write_bytes(b"line %d\n" % self.rotations)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "logs" / "app.log")


def run(world: World, log: Log, happens: Callable[[], None] = lambda: None) -> None:
    """`happens` whenever something is moved."""
    source = FileSource(FileSourceOptions(path=str(log.path), rotation_quiet_s=0))
    world.engine = DirectEngine(source, world.sink)  # type: ignore[arg-type]
    execute = world.engine.execute

    def moving(lanes: Sequence[Lane]) -> list[Outcome]:
        assert log.rotations < 20, "the run does not end"
        outcomes = execute(lanes)
        happens()
        return outcomes

    world.engine.execute = moving  # type: ignore[method-assign]
    shared = world.ledger.assign(world.connector.uid, source.partitions([]), 1)
    TaskRun(world.context(), shared, 0, source, world.sink).run()


def lines(world: World) -> list[bytes]:
    return [value for _, value in world.sink.rows]


@pytest.mark.parametrize("behind", [0, 1, 3])
def test_a_log_that_is_rotated_faster_than_it_is_read_ends_with_the_file_that_was_there(
    world: World, log: Log, behind: int
) -> None:
    run(world, log)
    for _ in range(behind):
        log.rotate()
    run(world, log, log.rotate)
    there = behind + 1
    assert lines(world) == [b"line %d" % number for number in range(there)]
    run(world, log)
    assert lines(world) == [b"line %d" % number for number in range(log.rotations + 1)]


def test_a_run_ends_though_the_file_that_was_there_is_deleted_meanwhile(world: World, log: Log) -> None:
    world.on_data_loss = "skip"
    run(world, log)
    log.rotate()
    log.rotate()
    log.deletes = True

    def twice() -> None:
        log.rotate()
        log.rotate()

    run(world, log, twice)


@pytest.mark.parametrize("first", [b"", b"half a "])
def test_a_log_that_a_run_saw_without_a_whole_line_is_followed_by_the_next(
    world: World, log: Log, first: bytes
) -> None:
    """Nothing was committed yet: what the run has seen is kept all the same."""
    log.path.write_bytes(first)
    run(world, log)
    with log.path.open("ab") as file:
        file.write(b"line 0\n")
    log.rotate()
    run(world, log)
    assert lines(world) == [first + b"line 0", b"line 1"]


def test_a_late_line_into_a_file_that_was_renamed_empty_is_told(world: World, log: Log) -> None:
    run(world, log)
    log.rotate()
    log.path.write_bytes(b"")
    run(world, log)
    log.rotate()
    run(world, log)
    with Path(f"{log.path}-20261125000002").open("ab") as file:
        file.write(b"late\n")
    with pytest.raises(OffsetGone, match="written after rotation: from 0 to 5"):
        run(world, log)
