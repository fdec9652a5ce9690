"""A source that pushes into a file, which cannot tell its lines: what an attempt or a forgotten run has left in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from connect_core import clock
from connect_core.errors import EngineFailed, Retriable
from connect_core.replication.driver import task
from connect_core.replication.driver.leases import LeaseTimes
from connect_core.replication.driver.ledger_restore import told_restored
from connect_core.sdk.scan import ScanResult
from connect_core.systems.file.options import FileSinkOptions
from connect_core.systems.file.sink import FileSink
from connect_core.work import Lane, Outcome, ScanTask
from tests.unit.replication.memory_push_source import MemoryPushSource
from tests.unit.replication.test_restoring import Backup
from tests.unit.replication.world import DirectEngine, World


@dataclass
class FileEngine(DirectEngine):
    """Its workers look into the file; with `dies` one is killed when it has written, before its receipt."""

    dies: bool = False

    def execute(self, lanes: Sequence[Lane]) -> list[Outcome]:
        outcomes = super().execute(lanes)
        if self.dies:
            raise EngineFailed("a worker was killed")
        return outcomes

    def scan(self, task: ScanTask) -> dict[int, ScanResult]:
        return self.sink.scan(task.scan)


class Later(clock.SystemClock):
    """Of people's time it is an hour later: the lanes of the leases that a restored ledger has forgotten are over."""

    def utc(self) -> datetime:
        return super().utc() + timedelta(hours=1)


@dataclass
class Filing:
    """Numbers that are pushed into the file `name`, which is changed as a document changes it."""

    world: World
    pushing: MemoryPushSource
    folder: Path
    name: str = "out.txt"

    @property
    def path(self) -> Path:
        return self.folder / self.name

    def run(self, *, dies: bool = False) -> None:
        """With a sink of its own, as every worker has."""
        sink = FileSink(FileSinkOptions.model_validate({"path": str(self.path)}))
        self.world.sink = sink  # type: ignore[assignment]
        self.world.engine = FileEngine(self.pushing, sink, dies=dies)  # type: ignore[arg-type]
        with clock.replaced_by(Later()):
            self.world.run()

    def push(self, count: int) -> None:
        known = len(self.pushing.bodies)
        self.pushing.bodies += [b"%d" % (known + n) for n in range(count)]

    def moves(self, count: int) -> None:
        self.push(count)
        self.run()

    def dies_over(self, count: int) -> None:
        self.push(count)
        with pytest.raises(EngineFailed):
            self.run(dies=True)

    def kept(self) -> Backup:
        return Backup(self.folder / "ledger.db")

    def restored(self, kept: Backup) -> None:
        kept.bring_back()
        told_restored(self.world.ledger, self.world.home, "ann")

    def warnings(self) -> list[str]:
        return [row.gap.reason for row in self.world.ledger.gaps(self.world.connector.uid)]


@pytest.fixture
def filing(world: World, pushing: MemoryPushSource, tmp_path: Path) -> Filing:
    pushing.bodies.clear()
    world.times = LeaseTimes(ttl_s=20, margin_s=5, quantum_s=5, idle_timeout_s=0.3)  # a file is slower than memory
    return Filing(world, pushing, tmp_path)


def numbers(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().splitlines()]


def test_a_restored_ledger_goes_on_and_says_what_may_be_beside_the_file_alone(filing: Filing) -> None:
    filing.moves(10)
    kept = filing.kept()
    filing.moves(3)
    filing.restored(kept)
    filing.moves(5)
    [aside] = filing.folder.glob("out.txt.unsettled-*")
    assert (numbers(filing.path), numbers(aside)) == ([*range(10), *range(13, 18)], [10, 11, 12])
    [told] = filing.warnings()
    assert "9 bytes" in told
    filing.moves(2)
    assert len(filing.warnings()) == 1, "once"


def test_what_a_dead_attempt_left_in_a_file_that_is_written_on_is_set_aside_and_no_repeat(filing: Filing) -> None:
    filing.dies_over(20)
    filing.moves(5)
    [aside] = filing.folder.glob("out.txt.unsettled-*")
    assert (numbers(filing.path), numbers(aside)) == ([*range(25)], [*range(20)])
    assert (repeats(filing), filing.warnings()) == (2, [])


def test_what_a_dead_attempt_left_in_a_former_file_is_told_and_counted(filing: Filing) -> None:
    filing.moves(10)
    filing.dies_over(20)
    former, filing.name = filing.path, "other.txt"
    filing.moves(5)
    assert (numbers(former), numbers(filing.path)) == ([*range(30)], [*range(10, 35)])
    assert repeats(filing) == 20 + 2
    assert any(f"60 bytes that no receipt covers are at the end of {former}" in one for one in filing.world.said)
    assert filing.warnings() == []


def repeats(filing: Filing) -> int:
    """The source counts 2 itself for each range that was left open."""
    return sum(receipt.possible_duplicates for receipt in filing.world.receipts())


def test_a_run_that_settles_nothing_again_and_again_ends_with_an_error(
    world: World, pushing: MemoryPushSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sink that never says how far it has looked: nobody would come to write."""
    monkeypatch.setattr(task, "EMPTIED_S", 10.0)
    world.run()
    told_restored(world.ledger, world.home, "ann")
    world.engine.scan = lambda wanted: {  # type: ignore[method-assign, assignment]
        item.id: ScanResult(complete=True) for item in wanted.scan.ranges
    }
    pushing.bodies.append(b"25")
    with clock.replaced_by(Later()), pytest.raises(Retriable, match="closed without a record"):
        world.run()
