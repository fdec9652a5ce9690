"""When a lease may be taken and let go, and until when lanes may write under it, on a clock that moves as told."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

from connect_core import clock
from connect_core.errors import EngineFailed, Fenced, LeaseHeld
from connect_core.ledger import Lease, LeaseState, Ledger, target_lease_id
from connect_core.replication.driver.leases import HeldLeases, LeaseRequest, LeaseTimes, acquire
from tests.unit.replication.world import World
from tests.unit.sleeping import SleepingClock

TIMES = LeaseTimes(ttl_s=15, margin_s=4, quantum_s=5)
FILE = target_lease_id("/data/out.log")


@dataclass
class Told(SleepingClock):
    """Does what is to be done at a moment as soon as it has come."""

    seconds: float = 1000.0
    agenda: dict[float, Callable[[], object]] = field(default_factory=dict)

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        for moment in sorted(moment for moment in self.agenda if moment <= self.seconds):
            self.agenda.pop(moment)()

    def after(self, seconds: float, deed: Callable[[], object]) -> None:
        self.agenda[self.seconds + seconds] = deed


@pytest.fixture
def told() -> Iterator[Told]:
    made = Told()
    with clock.replaced_by(made):
        yield made


def taken_by(world: World, holder: str, said: list[str] | None = None) -> HeldLeases:
    say = (said if said is not None else []).append
    return acquire(world.ledger, [LeaseRequest(FILE)], holder=holder, home=world.home, times=TIMES, say=say)


def state(world: World) -> LeaseState:
    seen = world.ledger.lease(FILE)
    assert seen is not None
    return seen


@contextmanager
def lane_of(held: HeldLeases) -> Iterator[Callable[[], None]]:
    """A lane that shares the lock of an epoch; what is yielded ends it."""
    descriptor = os.open(held.locks[0].path, os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    open_ones = [descriptor]

    def end() -> None:
        while open_ones:
            os.close(open_ones.pop())

    yield end
    end()


# --------------------------------------------------------------------------------------------------------------- taking


@pytest.mark.parametrize("after_s", [0.1, 7, 14.9])
def test_a_holder_that_gives_a_sign_of_life_within_a_time_to_live_keeps_its_lease(
    world: World, told: Told, after_s: float
) -> None:
    first = taken_by(world, "first")
    told.after(after_s, first.renew)
    with pytest.raises(LeaseHeld, match="first is working on this"):
        taken_by(world, "second")
    assert (state(world).epoch, state(world).holder) == (1, "first")


def test_a_silent_holder_whose_lock_is_held_loses_its_lease_after_a_whole_time_to_live(
    world: World, told: Told
) -> None:
    taken_by(world, "first")
    began = told.seconds
    second = taken_by(world, "second")
    assert told.seconds >= began + TIMES.ttl_s
    assert second.leases[0].epoch == 2
    [taken] = second.taken_over
    assert (taken.lease_id, taken.by) == (FILE, "silence")
    assert taken.waited_s >= TIMES.ttl_s
    second.release()
    assert taken_by(world, "third").taken_over == []


def test_a_silent_holder_with_a_longer_time_to_live_may_write_for_as_long(world: World, told: Told) -> None:
    longer = replace(TIMES, ttl_s=60)
    first = acquire(
        world.ledger, [LeaseRequest(FILE)], holder="first", home=world.home, times=longer, say=lambda _: None
    )
    deadline = first.renew() / 1e9
    assert taken_by(world, "second").leases[0].epoch == 2
    assert told.seconds >= deadline + longer.margin_s


@pytest.mark.parametrize(("holders_s", "waits_s"), [(60, 60), (5, 15), (0, 15)])
def test_of_a_holder_on_another_host_the_longer_time_to_live_is_waited_for(
    world: World, told: Told, holders_s: float, waits_s: float
) -> None:
    """Its clock says nothing here; 0 is of one that did not say how long it lives."""
    lease = world.ledger.take(FILE, None, "first")
    world.ledger.renew(lease, boot_id="other:1:2", deadline_ns=2**60, ttl_s=holders_s)
    began = told.seconds
    [taken] = taken_by(world, "second").taken_over
    assert taken.by == "silence"
    assert waits_s <= taken.waited_s == told.seconds - began < waits_s + 1


def test_a_holder_stopped_between_taking_and_its_first_renewal_changes_nothing_any_more(
    world: World, told: Told
) -> None:
    """Its time to live is not in the lease then, and need not be: nothing can have been started under it."""
    lease = world.ledger.take(FILE, None, "first")
    began = told.seconds
    assert taken_by(world, "second").leases[0].epoch == 2
    assert told.seconds < began + TIMES.ttl_s + 1
    with pytest.raises(Fenced):
        world.ledger.renew(lease, boot_id="other:1:2", deadline_ns=0, ttl_s=60)


def test_a_holder_that_is_provably_gone_is_not_waited_for(world: World, told: Told) -> None:
    for lock in taken_by(world, "first").locks:
        lock.close()  # as the kernel does with the process
    began = told.seconds
    second = taken_by(world, "second")
    assert second.leases[0].epoch == 2
    assert told.seconds == began
    assert [(one.by, one.waited_s) for one in second.taken_over] == [("lock", 0)]


def test_a_holder_whose_lock_file_was_removed_is_waited_for(world: World, told: Told) -> None:
    held = taken_by(world, "first")
    held.locks[0].path.unlink()
    began = told.seconds
    assert taken_by(world, "second").leases[0].epoch == 2
    assert told.seconds >= began + TIMES.ttl_s


def test_of_a_holder_with_lanes_on_other_hosts_no_lock_proves_that_it_has_ended(world: World, told: Told) -> None:
    """They know nothing of the locks here, and may write until their deadline."""
    first, said = taken_by(world, "first"), list[str]()
    first.reach_other_hosts()
    first.renew()
    for lock in first.locks:
        lock.close()  # as the kernel does with the process
    began = told.seconds
    assert taken_by(world, "second", said).leases[0].epoch == 2
    assert told.seconds >= began + TIMES.ttl_s
    assert "workers on other hosts" in said[0]
    assert "gave no sign of life for 15 s" in said[1]


# ---------------------------------------------------------------------------------------------------------- letting go


def test_a_lease_is_not_let_go_while_a_lane_works_under_it(world: World, told: Told) -> None:
    held = taken_by(world, "first")
    with lane_of(held):
        held.release()
        assert not state(world).released


def test_a_lease_is_let_go_as_soon_as_its_last_lane_has_ended(world: World, told: Told) -> None:
    held = taken_by(world, "first")
    began = told.seconds
    with lane_of(held) as end:
        told.after(3, end)
        held.release()
    assert state(world).released
    assert told.seconds < began + 4


def test_a_lease_is_not_let_go_before_the_deadline_of_lanes_on_other_hosts_that_have_not_answered(
    world: World, told: Told
) -> None:
    held = taken_by(world, "first")
    held.reach_other_hosts()
    deadline = held.renew()
    with pytest.raises(EngineFailed), held.lanes_at_work(deadline):
        raise EngineFailed("a line was cut")
    held.release()
    assert state(world).released
    assert told.seconds >= deadline / 1e9


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_lease_is_let_go_at_once_when_all_lanes_have_answered(world: World, told: Told, elsewhere: bool) -> None:
    held = taken_by(world, "first")
    if elsewhere:
        held.reach_other_hosts()
    with held.lanes_at_work(held.renew()):
        pass
    began = told.seconds
    held.release()
    assert (state(world).released, told.seconds) == (True, began)


def test_a_holder_whose_lock_file_was_removed_ends(world: World, told: Told) -> None:
    """None of its lanes could start, and nobody could prove any more that they have ended."""
    held = taken_by(world, "first")
    held.locks[0].path.unlink()
    with pytest.raises(Fenced, match="lock file"):
        held.renew()
    held.release()
    assert state(world).released


# ------------------------------------------------------------------------------------------------------------ deadlines


@dataclass
class SlowLedger:
    """Renews leases a few seconds after it was asked to."""

    told: Told
    deadlines: list[int] = field(default_factory=list)

    def renew(self, lease: Lease, *, boot_id: str, deadline_ns: int, ttl_s: float) -> Lease:
        self.deadlines.append(deadline_ns)
        self.told.sleep(3)
        return replace(lease, counter=lease.counter + 1)


def test_lanes_end_a_margin_before_their_lease_counted_from_before_it_was_renewed(tmp_path: Path, told: Told) -> None:
    """A challenger counts from when it sees the renewal, which is later: there is nothing that both may do."""
    ledger = SlowLedger(told)
    leases = [Lease(FILE, 1, "first", 1), Lease(f"{FILE}2", 1, "first", 2)]
    asked = told.seconds
    deadline = HeldLeases(cast(Ledger, ledger), TIMES, tmp_path, leases, []).renew()
    assert deadline == int((asked + TIMES.ttl_s - TIMES.margin_s) * 1e9)
    assert ledger.deadlines == [deadline, deadline]
