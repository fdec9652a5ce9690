"""A ledger that comes back from a backup: noticed by what its drivers remember, healed by looking
(delivery rule 12)."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from connect_core import clock
from connect_core.errors import ConfigError, DataError, Fenced, Retriable
from connect_core.ledger import Lease, target_lease_id, upgrade
from connect_core.replication.driver.context import RunListener
from connect_core.replication.driver.found_before import found_before
from connect_core.replication.driver.leases import HeldLeases, LeaseRequest, acquire
from connect_core.replication.driver.ledger_restore import SEEN_FILE, recognise, remember, remembered, told_restored
from connect_core.replication.driver.task import TaskRun
from connect_core.replication.locks import held_alone
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Bounds, Floor, Position, Range
from connect_core.work import Lane, Outcome
from tests.unit.replication.memory_push_source import MemoryPushSource
from tests.unit.replication.world import BODIES, MEMORY, World
from tests.unit.sleeping import SleepingClock

TTL_S = 15.0


class Backup:
    """A copy of the world's ledger, to be brought back."""

    def __init__(self, ledger_file: Path) -> None:
        self._ledger_file, self._copy = ledger_file, ledger_file.with_suffix(".backup")
        self.copied(self._ledger_file, self._copy)

    def bring_back(self) -> None:
        self.copied(self._copy, self._ledger_file)

    @staticmethod
    def copied(source: Path, target: Path) -> None:
        with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
            old.backup(new)


class Standing(SleepingClock):
    """Of people's time it is now, and what they have set it `ahead`. The machine has run as long as it has: else the
    deadlines of lanes that were at work a moment ago would be as far away as it has run."""

    ahead = timedelta()

    def boottime_ns(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) + super().boottime_ns()

    def utc(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.seconds) + self.ahead


@pytest.fixture
def standing() -> Iterator[Standing]:
    made = Standing()
    with clock.replaced_by(made):
        yield made


@pytest.fixture
def backup(tmp_path: Path) -> Callable[[], Backup]:
    return lambda: Backup(tmp_path / "ledger.db")


def look(world: World) -> None:
    recognise(world.ledger, world.home, holder="me", ttl_s=TTL_S, say=world.said.append)


def test_what_was_delivered_since_the_backup_is_found(
    world: World, backup: Callable[[], Backup], standing: Standing
) -> None:
    world.source.bodies = BODIES[:50]
    world.run()
    kept = backup()
    world.source.bodies = BODIES[:150]
    world.run()
    kept.bring_back()
    look(world)
    assert standing.seconds == pytest.approx(TTL_S, abs=5), (
        "lanes of the leases that were forgotten are over before anybody begins"
    )
    world.source.bodies = list(BODIES)
    world.run()
    world.check()
    assert sum(receipt.deduplicated for receipt in world.receipts()) == 100
    assert found_before(world.receipts()) == 100, "nobody knows by which document they were made"


def test_a_clock_that_is_set_back_after_a_restore_neither_blocks_nor_hides_anything(
    world: World, backup: Callable[[], Backup], standing: Standing
) -> None:
    world.source.bodies = BODIES[:50]
    world.run()
    kept = backup()
    world.source.bodies = BODIES[:150]
    world.run()
    kept.bring_back()
    standing.ahead = timedelta(hours=2)
    told_restored(world.ledger, world.home, "ann")
    standing.ahead = timedelta()
    look(world)
    world.source.bodies = list(BODIES)
    world.run()
    world.check()
    assert sum(receipt.deduplicated for receipt in world.receipts()) == 100


def test_a_target_that_the_backup_knows_nothing_of_is_looked_through(
    world: World, backup: Callable[[], Backup], standing: Standing
) -> None:
    kept = backup()
    world.run()
    kept.bring_back()
    look(world)
    world.run()
    world.check()
    assert sum(receipt.deduplicated for receipt in world.receipts()) == len(BODIES)


@pytest.mark.parametrize("restored", [True, False])
def test_what_has_expired_of_a_partition_that_the_backup_does_not_know_is_told(
    world: World, backup: Callable[[], Backup], standing: Standing, restored: bool
) -> None:
    """It may have been lost, or delivered and forgotten; what expired before a connector's first run is neither."""
    if restored:
        kept = backup()
        world.source.bodies = BODIES[:50]
        world.run()
        kept.bring_back()
        look(world)
    world.source.bodies, world.source.oldest = list(BODIES), 80
    world.run()
    told = [stored.gap for stored in world.ledger.gaps(world.connector.uid)]
    assert [(gap.begin, gap.end) for gap in told] == [(0, 80)] * restored
    world.run()
    assert len(world.ledger.gaps(world.connector.uid)) == len(told)


@pytest.mark.parametrize("expired", [0, 10])
def test_what_has_expired_in_a_target_that_the_backup_does_not_know_is_told(
    world: World, backup: Callable[[], Backup], standing: Standing, monkeypatch: pytest.MonkeyPatch, expired: int
) -> None:
    """It may be delivered again, and nobody can count that."""
    kept = backup()
    world.source.bodies = BODIES[:50]
    world.run()
    kept.bring_back()
    look(world)
    monkeypatch.setattr(
        world.sink, "within", lambda floors: [floor._replace(position=expired) for floor in floors], raising=False
    )
    world.run()
    told = [stored.gap for stored in world.ledger.gaps(world.connector.uid)]
    assert ["memory are gone" in gap.reason for gap in told] == [True] * bool(expired)
    world.source.bodies = list(BODIES)
    world.run()
    assert len(world.ledger.gaps(world.connector.uid)) == len(told), "once: from then on the ledger knows the partition"


def asked_for_floors(world: World, monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, bool]]:
    """Of each time the sink is asked from now on: whether floors are known, and whether others may be forgotten."""
    asked: list[tuple[bool, bool]] = []
    floors = world.sink.floors

    def told(wanted: Range, known: Sequence[Floor], *, restored: bool = False) -> tuple[Floor, ...]:
        asked.append((bool(known), restored))
        return floors(wanted, known, restored=restored)

    monkeypatch.setattr(world.sink, "floors", told)
    return asked


def forgets_ten(world: World, backup: Callable[[], Backup]) -> None:
    """The ledger comes back from a backup of when ten records less were settled, and that is noticed."""
    world.source.bodies = BODIES[:50]
    world.run()
    kept = backup()
    world.source.bodies = BODIES[:60]
    world.run()
    kept.bring_back()
    look(world)


def test_a_target_that_came_to_others_since_the_backup_counts_as_forgotten(
    world: World, backup: Callable[[], Backup], standing: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a topic that got more queues, or a range that is spread over several by now, the backup knows some floors."""
    forgets_ten(world, backup)
    asked = asked_for_floors(world, monkeypatch)
    for end in (100, 200):
        world.source.bodies = BODIES[:end]
        world.run()
    assert asked == [(True, True), (True, False)], "once it was settled, all of them are known again"


def test_floors_of_another_target_do_not_say_what_stands_in_this_one(
    world: World, backup: Callable[[], Backup], standing: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The document named this target before the ledger was brought back, and does so again."""
    forgets_ten(world, backup)
    world.run()
    asked = asked_for_floors(world, monkeypatch)
    world.source.bodies = BODIES[:100]
    world.run()
    monkeypatch.setattr(world.sink, "reaches", lambda target, name: False)
    world.source.bodies = BODIES[:200]
    world.run()
    assert asked == [(True, False), (True, True)]


def test_a_ledger_that_was_not_restored_is_believed(world: World, standing: Standing) -> None:
    for _ in range(3):
        look(world)
        world.run()
    assert standing.seconds == 0
    assert world.ledger.restored_at() is None


def test_what_was_restored_once_is_not_restored_twice(
    world: World, backup: Callable[[], Backup], standing: Standing
) -> None:
    kept = backup()
    world.run()
    kept.bring_back()
    look(world)
    first = world.ledger.restored_at()
    look(world)
    assert [deed.action for deed in world.ledger.audit()].count("restored") == 1
    assert world.ledger.restored_at() == first


def test_whoever_held_a_lease_before_has_lost_it(world: World, backup: Callable[[], Backup]) -> None:
    wanted = [LeaseRequest(target_lease_id("/out"))]
    held = acquire(world.ledger, wanted, holder="before", home=world.home, times=world.times, say=world.said.append)
    kept = backup()
    world.run()
    kept.bring_back()
    with clock.replaced_by(Standing()):
        look(world)
    with pytest.raises(Fenced):
        held.renew()
    after = acquire(world.ledger, wanted, holder="after", home=world.home, times=world.times, say=world.said.append)
    assert after.leases[0].epoch > held.leases[0].epoch + 1000
    after.release()


def test_a_run_under_which_the_ledger_is_restored_notices(world: World, backup: Callable[[], Backup]) -> None:
    """Its lease is in the backup as well: only what it has settled itself can tell."""
    context = world.context()
    small = replace(context.resolved, range_records=50)
    kept: list[Backup] = []
    settled = iter([lambda: kept.append(backup()), lambda: kept[0].bring_back()])
    listener = RunListener(world.said.append, lambda _: next(settled, lambda: None)())
    context = replace(context, resolved=small, resolve=lambda _: small, listener=listener)
    assignment = world.ledger.assign(world.connector.uid, [MEMORY], 1)
    with pytest.raises(Retriable, match="restored from a backup while"):
        TaskRun(context, assignment, 0, world.source, world.sink).run()
    assert len(world.sink.rows) == 100, "nothing was written on what the restored ledger says"
    with clock.replaced_by(Standing()):
        look(world)
        world.run()
    world.check()


def test_ranges_that_the_ledger_has_forgotten_are_no_defect(
    world: World, backup: Callable[[], Backup], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brought back between the write and settle, as it was before the plan: it knows the lease, and no such range."""
    kept: list[Backup] = []
    targets, execute = world.sink.targets, world.engine.execute

    def kept_first(*asked: object) -> object:
        kept.append(backup())
        return targets(*asked)  # type: ignore[arg-type]

    def brought_back(lanes: Sequence[Lane]) -> list[Outcome]:
        outcomes = execute(lanes)
        kept[0].bring_back()
        return outcomes

    monkeypatch.setattr(world.sink, "targets", kept_first)
    monkeypatch.setattr(world.engine, "execute", brought_back)
    with pytest.raises(Retriable, match="restored from a backup while") as told:
        world.run()
    assert told.value.exit_code == 1
    assert "No range" in str(told.value.__cause__)
    monkeypatch.undo()
    with clock.replaced_by(Standing()):
        look(world)
        world.run()
    world.check()
    assert sum(receipt.deduplicated for receipt in world.receipts()) == len(BODIES)


def test_a_run_that_the_ledger_has_forgotten_is_no_fault_of_the_document(
    world: World, backup: Callable[[], Backup], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had nothing to do: only when it says how it ended there is no such run."""
    world.run()
    kept = backup()
    bounds = world.source.available_offsets

    def brought_back(known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        kept.bring_back()
        return bounds(known)

    monkeypatch.setattr(world.source, "available_offsets", brought_back)
    with pytest.raises(Retriable, match="restored from a backup while") as told:
        world.run()
    assert "There is no run" in str(told.value.__cause__)
    assert [deed.action for deed in world.ledger.audit()].count("restored") == 1


def test_who_is_fenced_by_what_another_has_noticed_says_why(
    world: World, backup: Callable[[], Backup], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is marked once: the leases that others have taken since stay theirs."""
    world.run()
    world.source.bodies = [*BODIES, b"one more"]
    execute = world.engine.execute

    def told_by_a_person(lanes: Sequence[Lane]) -> list[Outcome]:
        outcomes = execute(lanes)
        told_restored(world.ledger, world.home, "ann")
        return outcomes

    monkeypatch.setattr(world.engine, "execute", told_by_a_person)
    with pytest.raises(Retriable, match="restored from a backup while") as told:
        world.run()
    assert isinstance(told.value.__cause__, Fenced)
    assert [deed.action for deed in world.ledger.audit()].count("restored") == 1


def test_another_ledger_in_its_place_is_told(
    world: World, backup: Callable[[], Backup], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.db"
    upgrade(f"sqlite:///{other}")
    targets = world.sink.targets

    def replaced(*asked: object) -> object:
        Backup.copied(other, tmp_path / "ledger.db")
        return targets(*asked)  # type: ignore[arg-type]

    monkeypatch.setattr(world.sink, "targets", replaced)
    with pytest.raises(Retriable, match="The ledger is not the one that") as told:
        world.run()
    assert told.value.exit_code == 1


def test_a_defect_with_the_ledger_that_there_was_stays_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgets(lanes: Sequence[Lane]) -> list[Outcome]:
        return [Outcome(999, receipt) for receipt in (one.receipt for one in execute(lanes))]

    execute = world.engine.execute
    monkeypatch.setattr(world.engine, "execute", forgets)
    with pytest.raises(DataError, match="No range 999 was planned"):
        world.run()
    assert world.ledger.restored_at() is None


def test_a_backup_of_under_the_same_lease_is_noticed(world: World, backup: Callable[[], Backup]) -> None:
    """No lease was taken between the backup and its return: the run that was at work ended, or was killed."""
    kept: list[Backup] = []
    settled = iter([lambda: kept.append(backup())])
    context = world.context()
    small = replace(context.resolved, range_records=50)
    listener = RunListener(world.said.append, lambda _: next(settled, lambda: None)())
    context = replace(context, resolved=small, resolve=lambda _: small, listener=listener)
    assignment = world.ledger.assign(world.connector.uid, [MEMORY], 1)
    TaskRun(context, assignment, 0, world.source, world.sink).run()
    kept[0].bring_back()
    with clock.replaced_by(Standing()):
        look(world)
        world.run()
    world.check()
    assert sum(receipt.deduplicated for receipt in world.receipts()) == len(BODIES) - 50


def test_a_backup_that_comes_back_before_the_lease_is_taken_is_noticed(
    world: World, backup: Callable[[], Backup]
) -> None:
    """A run that waits, for lanes that a ledger has forgotten or for a lease, looked at the ledger before that."""
    world.source.bodies = BODIES[:50]
    world.run()
    kept = backup()
    world.source.bodies = list(BODIES)
    world.run()
    look(world)
    kept.bring_back()
    with pytest.raises(Retriable, match="restored from a backup before this lease"):
        world.run()
    assert len(world.sink.rows) == len(BODIES), "nothing was written on what the restored ledger says"
    with clock.replaced_by(Standing()):
        look(world)
        world.run()
    world.check()
    assert sum(receipt.deduplicated for receipt in world.receipts()) == len(BODIES) - 50


def test_a_neighbour_who_renews_does_not_hide_that_a_backup_came_back(
    world: World, backup: Callable[[], Backup]
) -> None:
    """Two tasks are at work, and what one of them writes after the backup is forgotten."""
    busy, neighbour = taken(world, "/busy"), taken(world, "/neighbour")
    kept = backup()
    busy.renew()
    kept.bring_back()
    with pytest.raises(Retriable, match="restored from a backup while"):
        neighbour.renew()
    with pytest.raises(Fenced):
        busy.renew()


def test_whoever_takes_a_lease_notices_what_was_forgotten_of_one_renewal(
    world: World, backup: Callable[[], Backup]
) -> None:
    """Who has taken a lease renews it at once, and counts as much then as was forgotten. Nobody holds it afterwards."""
    busy = taken(world, "/busy")
    kept = backup()
    busy.renew()
    kept.bring_back()
    with pytest.raises(Retriable, match="restored from a backup before this lease"):
        taken(world, "/another")
    taken(world, "/another").release()


def taken(world: World, target: str) -> HeldLeases:
    wanted = [LeaseRequest(target_lease_id(target))]
    return acquire(world.ledger, wanted, holder=target, home=world.home, times=world.times, say=world.said.append)


def test_nobody_begins_while_forgotten_lanes_may_be_at_work(world: World, standing: Standing) -> None:
    """A run looked at the ledger, was stopped, and another has noticed meanwhile that it was restored."""
    context = world.context()
    assignment = world.ledger.assign(world.connector.uid, [MEMORY], 1)
    told_restored(world.ledger, world.home, "another")
    with pytest.raises(Retriable, match="restored from a backup while"):
        TaskRun(context, assignment, 0, world.source, world.sink).run()
    assert not world.sink.rows
    standing.sleep(world.times.ttl_s + 1)
    TaskRun(context, assignment, 0, world.source, world.sink).run()
    world.check()


def test_the_highest_counter_of_each_ledger_is_remembered(tmp_path: Path) -> None:
    remember(tmp_path, [Lease("a", 1, "h", 7, "one"), Lease("b", 1, "h", 6, "one")])
    remember(tmp_path, [Lease("a", 1, "h", 3, "two")])
    remember(tmp_path, [Lease("a", 2, "h", 5, "one")])
    assert json.loads((tmp_path / SEEN_FILE).read_text()) == {"one": 7, "two": 3}


def test_one_that_stands_still_while_it_writes_down_a_counter_holds_up_nobody(tmp_path: Path) -> None:
    remember(tmp_path, [Lease("a", 1, "h", 7, "one")])
    leases = [Lease("a", 1, "h", 9, "one"), Lease("b", 1, "h", 2, "two")]
    writing = threading.Thread(target=remember, args=(tmp_path, leases), daemon=True)
    with held_alone(tmp_path, SEEN_FILE) as stopped:
        assert stopped
        writing.start()
        writing.join(10)
        assert not writing.is_alive()
        with held_alone(tmp_path, f"{SEEN_FILE}.1"):
            remember(tmp_path, [Lease("a", 1, "h", 8, "one")])
    remember(tmp_path, [Lease("b", 1, "h", 3, "two")])
    assert remembered(tmp_path) == {"one": 9, "two": 3}


def test_a_damaged_file_is_told(world: World) -> None:
    world.home.mkdir()
    (world.home / SEEN_FILE).write_text("{")
    with pytest.raises(ConfigError, match="damaged") as told:
        look(world)
    assert SEEN_FILE in str(told.value)


def test_numbers_that_a_restored_ledger_has_forgotten_are_not_given_twice(
    world: World, pushing: MemoryPushSource, backup: Callable[[], Backup], standing: Standing
) -> None:
    """What is in the target is settled before anything is received."""
    world.run()
    old = backup()
    pushing.bodies += [b"25", b"26", b"27", b"28"]
    world.run()
    old.bring_back()
    pushing.bodies += [b"29", b"30"]
    look(world)
    world.run()
    assert world.sink.rows == list(enumerate(pushing.bodies))
