"""Leases: one winner, fencing, and versions of the assignment that keep out of each other's way."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import pytest
from sqlalchemy import event

from connect_core.errors import ConfigError, Fenced, LeaseHeld
from connect_core.ledger import Lease, LeaseState, Ledger, target_lease_id, task_lease_id
from connect_core.sdk.values import LIVE
from tests.contract.ledger.samples import Worker

FILE = target_lease_id("/data/out.log")


def test_a_lease_that_nobody_took_is_none(ledger: Ledger) -> None:
    assert ledger.lease(FILE) is None


def test_the_first_epoch_is_1_and_the_next_holder_gets_the_next(ledger: Ledger) -> None:
    first = ledger.take(FILE, None, "h1")
    seen = ledger.lease(FILE)
    assert seen == LeaseState(FILE, 1, 1, "h1", False, "", 0)
    second = ledger.take(FILE, seen, "h2")
    assert (first.epoch, second.epoch) == (1, 2)
    assert ledger.lease(FILE) == LeaseState(FILE, 2, 2, "h2", False, "", 0)


@pytest.mark.parametrize("seen", [None, 5, "released"])
def test_a_lease_that_is_not_as_it_was_seen_is_held(ledger: Ledger, seen: object) -> None:
    ledger.take(FILE, None, "h1")
    state = ledger.lease(FILE)
    assert state is not None
    wrong = {None: None, 5: replace(state, seq=5), "released": replace(state, released=True)}[seen]  # type: ignore[index]
    with pytest.raises(LeaseHeld):
        ledger.take(FILE, wrong, "h2")
    assert ledger.lease(FILE) == state


def test_renewing_shows_life_and_keeps_the_deadline(ledger: Ledger) -> None:
    lease = ledger.take(FILE, None, "h1")
    before = ledger.lease(FILE)
    ledger.renew(lease, boot_id="boot", deadline_ns=2**60, ttl_s=1)
    assert ledger.lease(FILE) == LeaseState(FILE, 1, 2, "h1", False, "boot", 2**60, ttl_s=1)
    with pytest.raises(LeaseHeld):
        ledger.take(FILE, before, "h2")


def test_a_new_holder_inherits_deadline_and_time_to_live_until_it_renews(ledger: Ledger) -> None:
    ledger.renew(ledger.take(FILE, None, "h1"), boot_id="boot", deadline_ns=77, ttl_s=7.5)
    second = ledger.take(FILE, ledger.lease(FILE), "h2")
    assert ledger.lease(FILE) == LeaseState(FILE, 2, 3, "h2", False, "boot", 77, ttl_s=7.5)
    ledger.renew(second, boot_id="other", deadline_ns=88, ttl_s=15)
    assert ledger.lease(FILE) == LeaseState(FILE, 2, 4, "h2", False, "other", 88, ttl_s=15)


def test_a_released_lease_can_be_taken_but_not_used(ledger: Ledger) -> None:
    lease = ledger.take(FILE, None, "h1")
    ledger.release(lease)
    state = ledger.lease(FILE)
    assert state is not None
    assert state.released
    for use in (lambda: ledger.renew(lease, boot_id="b", deadline_ns=1, ttl_s=1), lambda: ledger.release(lease)):
        with pytest.raises(Fenced):
            use()
    assert ledger.take(FILE, state, "h2").epoch == 2


@pytest.mark.parametrize(("epoch", "holder"), [(2, "h3"), (1, "h2"), (3, "h2"), (1, "h1")])
def test_who_lost_the_lease_is_fenced(ledger: Ledger, epoch: int, holder: str) -> None:
    """Right epoch with another's nonce, and own nonce with another epoch: both are somebody else."""
    ledger.take(FILE, None, "h1")
    ledger.take(FILE, ledger.lease(FILE), "h2")
    with pytest.raises(Fenced):
        ledger.renew(Lease(FILE, epoch, holder, 0), boot_id="b", deadline_ns=1, ttl_s=1)
    state = ledger.lease(FILE)
    assert state is not None
    assert state.seq == 2


def test_every_lease_raises_the_counter(ledger: Ledger) -> None:
    before = ledger.identity()
    count = before.counter
    first = ledger.take(FILE, None, "h1")
    second = ledger.take(target_lease_id("/data/other.log"), None, "h1")
    assert [(one.counter, one.ledger) for one in (first, second)] == [(count + 1, before.id), (count + 2, before.id)]
    assert ledger.identity() == replace(before, counter=count + 2)


def test_a_lease_that_was_not_given_does_not_raise_the_counter(ledger: Ledger) -> None:
    ledger.take(FILE, None, "h1")
    before = ledger.identity()
    with pytest.raises(LeaseHeld):
        ledger.take(FILE, None, "h2")
    assert ledger.identity() == before


@pytest.mark.parametrize("taken_before", [False, True])
def test_of_those_who_try_at_once_one_wins(ledger: Ledger, taken_before: bool) -> None:
    if taken_before:
        ledger.take(FILE, None, "old")
    seen, rivals = ledger.lease(FILE), 6
    start = threading.Barrier(rivals)

    def attempt(number: int) -> Lease | None:
        start.wait()
        try:
            return ledger.take(FILE, seen, f"h{number}")
        except LeaseHeld:
            return None

    with ThreadPoolExecutor(rivals) as pool:
        winners = [lease for lease in pool.map(attempt, range(rivals)) if lease]
    state = ledger.lease(FILE)
    assert state is not None
    assert [(lease.epoch, lease.holder) for lease in winners] == [(state.epoch, state.holder)]


def test_long_target_names_have_leases_of_their_own() -> None:
    deep = "/d" * 400
    one, other = target_lease_id(f"/a{deep}"), target_lease_id(f"/b{deep}")
    assert one != other
    assert len(one) < 255


# ------------------------------------------------------------------------------------------- versions of the assignment


def test_a_new_version_waits_for_the_leases_of_the_old_one(worker: Worker) -> None:
    ledger, uid = worker.ledger, worker.uid
    new = task_lease_id(uid, LIVE, 2, 0)
    with pytest.raises(LeaseHeld, match=worker.lease.id):
        ledger.take(new, None, "new", uid=uid, version=2)
    assert ledger.lease(new) is None
    ledger.release(worker.lease)
    assert ledger.take(new, None, "new", uid=uid, version=2).epoch == 1


def test_an_old_version_does_not_start_again_beside_a_new_one(worker: Worker) -> None:
    ledger, uid = worker.ledger, worker.uid
    ledger.release(worker.lease)
    ledger.take(task_lease_id(uid, LIVE, 2, 0), None, "new", uid=uid, version=2)
    seen = ledger.lease(worker.lease.id)
    with pytest.raises(LeaseHeld, match="of version 2"):
        ledger.take(worker.lease.id, seen, "late", uid=uid, version=1)
    assert ledger.lease(worker.lease.id) == seen


def test_leases_of_dead_tasks_of_an_old_version_are_listed_and_can_be_ended(worker: Worker) -> None:
    ledger, uid = worker.ledger, worker.uid
    second = ledger.take(task_lease_id(uid, LIVE, 1, 1), None, "dead", uid=uid, version=1)
    ledger.take(FILE, None, "h1")
    assert [(state.id, state.version) for state in ledger.live_leases(uid)] == [(worker.lease.id, 1), (second.id, 1)]
    for state in ledger.live_leases(uid):
        ledger.release(ledger.take(state.id, state, "ender", uid=uid, version=1))
    assert ledger.live_leases(uid) == []
    ledger.take(task_lease_id(uid, LIVE, 2, 0), None, "new", uid=uid, version=2)


def test_other_streams_and_other_connectors_are_not_in_the_way(worker: Worker) -> None:
    ledger, uid = worker.ledger, worker.uid
    ledger.take(task_lease_id(uid, "backfill-1", 2, 0), None, "b", uid=uid, stream="backfill-1", version=2)
    other = ledger.apply("other", {}, who="ann").connector.uid
    ledger.take(task_lease_id(other, LIVE, 2, 0), None, "o", uid=other, version=2)


def test_a_version_that_is_not_the_leases_own_is_refused(worker: Worker) -> None:
    with pytest.raises(ValueError, match="is not a lease of version 3"):
        worker.ledger.take(worker.lease.id, None, "h", uid=worker.uid, version=3)
    with pytest.raises(ConfigError, match="no connector"):
        worker.ledger.take(task_lease_id("0" * 12, LIVE, 1, 0), None, "h", uid="0" * 12, version=1)


def test_of_an_old_and_a_new_version_that_start_at_once_one_waits(worker: Worker) -> None:
    ledger, uid = worker.ledger, worker.uid
    ledger.release(worker.lease)
    old, new = worker.lease.id, task_lease_id(uid, LIVE, 2, 0)
    seen = {1: ledger.lease(old), 2: None}
    both_looked = threading.Barrier(2)

    def after_looking(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        """Where nothing is locked, both get here before either goes on."""
        if "leases.version !=" in statement:
            with suppress(threading.BrokenBarrierError):
                both_looked.wait(0.5)

    def attempt(version: int) -> bool:
        try:
            ledger.take({1: old, 2: new}[version], seen[version], f"h{version}", uid=uid, version=version)
        except LeaseHeld:
            return False
        return True

    event.listen(ledger._engine, "after_cursor_execute", after_looking)
    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(attempt, (1, 2))) == [False, True]
