"""Tasks that work side by side on files that are renamed: each line is read once, whichever of them moves first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from connect_core.errors import EngineFailed
from connect_core.replication.driver.beginnings import keep_first
from connect_core.replication.driver.task import TaskRun
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Bounds, Position
from connect_core.systems.file.options import FileSourceOptions
from connect_core.systems.file.source import FileSource
from tests.unit.replication.memory import MemorySink
from tests.unit.replication.world import DirectEngine, World


@dataclass
class Tasks:
    """A connector whose pattern names a log and what rotation makes of it: two tasks, a partition each at first."""

    world: World
    log: Path
    sinks: list[MemorySink] = field(default_factory=lambda: [MemorySink(), MemorySink()])

    def run(self, task: int, looked: Callable[[], None] = lambda: None, dies_after: int | None = None) -> None:
        """`looked` happens once, between this task's first look at a file and its plan."""
        source = Looking(FileSourceOptions(path=f"{self.log}*", rotation_quiet_s=0))
        source.looked = looked
        world, sink = self.world, self.sinks[task]
        known = world.ledger.partitions(world.connector.uid)
        shared = world.ledger.assign(world.connector.uid, source.partitions(list(known)), 2)
        world.said.append("new attempt")
        world.engine = DirectEngine(source, sink, dies_after)  # type: ignore[arg-type]
        TaskRun(world.context(), shared, task, source, sink).run()

    def rotate(self, *lines: bytes) -> None:
        for number in (3, 2, 1):
            if Path(f"{self.log}.{number}").exists():
                Path(f"{self.log}.{number}").rename(f"{self.log}.{number + 1}")
        self.log.rename(f"{self.log}.1")
        self.log.write_bytes(b"".join(line + b"\n" for line in lines))

    def lines(self) -> list[bytes]:
        return sorted(value for sink in self.sinks for _, value in sink.rows)


class Looking(FileSource):
    looked: Callable[[], None] = staticmethod(lambda: None)

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        seen = super().available_offsets(known)
        if any(one.end > one.begin for one in seen.values()):
            looked, self.looked = self.looked, lambda: None
            looked()
        return seen


@pytest.fixture
def tasks(world: World, tmp_path: Path) -> Tasks:
    """The first task has the log, the second one its first rotated name."""
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "app.log"
    log.write_bytes(b"old\n")
    tasks = Tasks(world, log)
    tasks.run(0)
    tasks.rotate(b"one", b"two")
    tasks.run(0)
    tasks.run(1)
    assert {share.task for share in world.ledger.partitions(world.connector.uid).values()} == {0, 1}
    return tasks


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_file_that_one_task_has_read_is_not_read_by_another_one_under_its_new_name(
    tasks: Tasks, order: Sequence[int]
) -> None:
    expected = {b"old", b"one", b"two"}
    for number in range(5):
        tasks.rotate(b"new %d" % number)
        expected.add(b"new %d" % number)
        for task in order:
            tasks.run(task)
        assert tasks.lines() == sorted(expected)


def test_a_file_that_another_task_begins_between_look_and_plan_is_looked_at_again(tasks: Tasks) -> None:
    tasks.rotate(b"three")
    tasks.run(0)
    tasks.rotate(b"four")

    def meanwhile() -> None:
        tasks.rotate(b"five")
        tasks.run(1)

    tasks.run(0, looked=meanwhile)
    tasks.run(1)
    assert tasks.lines() == sorted([b"old", b"one", b"two", b"three", b"four", b"five"])


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_file_with_two_names_is_read_by_one_task(tasks: Tasks, order: Sequence[int]) -> None:
    tasks.log.rename(f"{tasks.log}.2")
    tasks.log.write_bytes(b"three\n")
    Path(f"{tasks.log}.1").unlink()
    Path(f"{tasks.log}.1").hardlink_to(tasks.log)
    for task in order:
        tasks.run(task)
    assert tasks.lines() == [b"old", b"one", b"three", b"two"]


def test_a_file_that_a_task_had_planned_when_it_was_killed_is_its_own(tasks: Tasks) -> None:
    tasks.rotate(b"three", b"four")
    with pytest.raises(EngineFailed):
        tasks.run(0, dies_after=1)
    tasks.rotate(b"five")
    tasks.run(1)
    tasks.run(0)
    tasks.run(1)
    assert tasks.lines() == sorted([b"old", b"one", b"two", b"three", b"four", b"five"])


@pytest.mark.parametrize("read_before", [(), (b"short",)])
def test_a_file_that_a_command_without_a_lease_has_seen_first_is_begun_by_nobody_else(
    world: World, tmp_path: Path, read_before: Sequence[bytes]
) -> None:
    """As a second run, which shares out what is there before it waits for its lease. Where this one ends is not what it
    saw before."""
    (tmp_path / "logs").mkdir()
    tasks = Tasks(world, tmp_path / "logs" / "app.log")
    tasks.log.write_bytes(b"old\n")
    uid, ledger = world.connector.uid, world.ledger
    options = FileSourceOptions(path=f"{tasks.log}*", rotation_quiet_s=0)

    def meanwhile() -> None:
        tasks.rotate(b"newest")
        other = FileSource(options)
        named = other.partitions(list(ledger.partitions(uid)))
        ledger.assign(uid, named, 1)
        keep_first(ledger, world.connector, world.context().resolved, other, named)

    def run(looked: Callable[[], None]) -> None:
        source = Looking(options)
        source.looked = looked
        shared = ledger.assign(uid, source.partitions(list(ledger.partitions(uid))), 1)
        world.engine = DirectEngine(source, world.sink)  # type: ignore[arg-type]
        TaskRun(world.context(), shared, 0, source, world.sink).run()

    if read_before:
        run(lambda: None)
        tasks.rotate(*read_before)
    run(meanwhile)
    run(lambda: None)
    assert sorted(value for _, value in world.sink.rows) == sorted([b"newest", b"old", *read_before])
