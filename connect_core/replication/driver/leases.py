"""Taking leases over time: wait, watch, prove, take (delivery rule 3). The ledger knows what a lease is; this module
knows when it may be taken from a holder that did not release it.

A challenger takes a lease after a clean release; or with proof that nobody of the old epoch is alive on this boot,
which there is none of when it had lanes on other hosts too; or after it has seen the same (epoch, seq) unchanged for a
whole time to live on its own clock. That is the longer one of its own and the holder's, which is in the lease: two
hosts may have other settings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from connect_core import clock
from connect_core.errors import Fenced, LeaseHeld
from connect_core.ledger import Lease, LeaseState, Ledger
from connect_core.replication.driver.ledger_restore import (
    comes_from_backup,
    remember,
    remembered,
    restored_at_work,
    restored_unnoticed,
)
from connect_core.replication.host import has_lanes_elsewhere, host_identity
from connect_core.replication.locks import EpochLock, lock_path, prove_ended
from connect_core.sdk.values import LIVE, Attempt, Json

_WATCH_EVERY_S = 0.2


@dataclass(frozen=True)
class LeaseTimes:
    """Seconds. `deadline` = the holder's clock before it renewed + `ttl_s` - `margin_s` (delivery rule 1). In a window
    a quantum ends when nothing came for `idle_timeout_s`."""

    ttl_s: float
    margin_s: float
    quantum_s: float
    idle_timeout_s: float = 1.0


@dataclass(frozen=True)
class TakenOver:
    """`by` is "lock" or "silence"; `waited_s` is how long that took."""

    lease_id: str
    by: str
    waited_s: float

    def told(self) -> Json:
        """For the run's row."""
        return asdict(self)


@dataclass
class HeldLeases:
    """The leases of one task's run and the locks that prove that it is alive. `renewed` is when the ledger was asked
    last (monotonic). `lanes_until_ns` is the deadline of lanes on other hosts that have not answered, 0 for none.
    `taken_over` says of each lease that was not released how it could be taken: by a free lock, or after silence."""

    ledger: Ledger
    times: LeaseTimes
    home: Path
    leases: list[Lease]
    locks: list[EpochLock]
    renewed: float = 0.0
    lanes_elsewhere: bool = False
    lanes_until_ns: int = 0
    taken_over: list[TakenOver] = field(default_factory=list)

    def reach_other_hosts(self) -> None:
        """Before the lease is renewed for the first lane on another host: from then on no lock proves that this epoch
        has ended."""
        self.lanes_elsewhere = True

    @contextmanager
    def lanes_at_work(self, deadline_ns: int) -> Iterator[None]:
        """Leaving it without an error says that all lanes have answered: they write nothing any more. Else those on
        other hosts may write until their deadline, whatever the locks here say."""
        self.lanes_until_ns = deadline_ns if self.lanes_elsewhere else 0
        yield
        self.lanes_until_ns = 0

    def renew_in_time(self) -> None:
        """Called often by whoever is busy for long without a write to the ledger: a challenger sees that it lives."""
        if clock.monotonic() - self.renewed > self.times.ttl_s / 4:
            self.renew()

    def renew(self) -> int:
        """Renews every lease; returns the deadline (CLOCK_BOOTTIME, ns) of whatever is started under it. The ledger's
        counter is remembered before anything is written: a backup of before this moment is noticed when it comes back
        (delivery rule 12). Raises Retriable when one has come back, also when a neighbour has renewed its leases
        since; Fenced when a lock file was removed."""
        self._require_lock_files()
        before = remembered(self.home)
        deadline = clock.now_ns() + int((self.times.ttl_s - self.times.margin_s) * 1e9)
        here = host_identity(self.home, lanes_elsewhere=self.lanes_elsewhere)
        renewed = [
            self.ledger.renew(lease, boot_id=here, deadline_ns=deadline, ttl_s=self.times.ttl_s)
            for lease in self.leases
        ]
        if any(comes_from_backup(lease, before) for lease in renewed):
            raise restored_at_work(self.ledger, self.home, self.leases[0].holder)
        remember(self.home, renewed)
        self.renewed = clock.monotonic()
        return deadline

    def _require_lock_files(self) -> None:
        for lock in self.locks:
            if lock.is_gone:
                raise Fenced(
                    "The lock file of this run was removed while it worked",
                    where=str(lock.path),
                    next_step="What is delivered stays; the next run continues. Let nothing clean up that folder",
                )

    def attempt(self, uid: str) -> Attempt:
        """The attempt that is made under these leases."""
        return Attempt(uid, self.leases[0].epoch, holder=self.leases[0].holder)

    def release(self) -> None:
        """Ends the epochs: releases what nobody works under any more, leaves the rest to expire.

        Waits for lanes that may still run, at most until their deadline: an interrupted execution proves nothing.
        """
        while (left_ns := self.lanes_until_ns - clock.now_ns()) > 0:
            clock.sleep(left_ns / 1e9)
        until = clock.monotonic() + self.times.ttl_s
        for lease, lock in zip(self.leases, self.locks, strict=True):
            while not (ended := lock.prove_ended()) and clock.monotonic() < until:
                clock.sleep(_WATCH_EVERY_S / 4)
            if not ended:
                lock.close()
                continue
            with suppress(Fenced):  # somebody has taken over: there is nothing left to release
                self.ledger.release(lease)
        self.leases, self.locks = [], []


@dataclass(frozen=True)
class LeaseRequest:
    """A lease to take: its id, and for a task's lease the connector, stream and assignment version it belongs to."""

    lease_id: str
    uid: str | None = None
    stream: str = LIVE
    version: int | None = None


def acquire(
    ledger: Ledger,
    wanted: Sequence[LeaseRequest],
    *,
    holder: str,
    home: Path,
    times: LeaseTimes,
    say: Callable[[str], None],
) -> HeldLeases:
    """All the leases, in this order, or LeaseHeld and none of them."""
    held = HeldLeases(ledger, times, home, [], [])
    try:
        for one in wanted:
            lease, lock = _acquire_one(held, one, holder, say)
            held.leases.append(lease)
            held.locks.append(lock)
        remember(home, held.leases)
    except BaseException:
        held.release()
        raise
    return held


def _acquire_one(
    held: HeldLeases, wanted: LeaseRequest, holder: str, say: Callable[[str], None]
) -> tuple[Lease, EpochLock]:
    ledger, home = held.ledger, held.home
    seen = ledger.lease(wanted.lease_id)
    if seen is not None and not seen.released:
        began = clock.monotonic()
        seen, by = _wait_until_over(ledger, seen, home, held.times, say)
        if by:
            held.taken_over.append(TakenOver(wanted.lease_id, by, clock.monotonic() - began))
    # The lock comes before the lease: a challenger that sees the new epoch finds it locked already.
    lock = EpochLock(lock_path(home, wanted.lease_id, seen.epoch + 1 if seen else 1, holder))
    before = remembered(home)
    try:
        lease = ledger.take(wanted.lease_id, seen, holder, uid=wanted.uid, stream=wanted.stream, version=wanted.version)
        if comes_from_backup(lease, before):  # while the lease was waited for: nobody has looked in the targets
            ledger.release(lease)
            raise restored_unnoticed(ledger, home, holder, wanted.lease_id)
        # Says where our locks are, and how long we may be silent, before anything else.
        ledger.renew(lease, boot_id=host_identity(home), deadline_ns=clock.now_ns(), ttl_s=held.times.ttl_s)
    except BaseException:
        lock.prove_ended()
        raise
    return lease, lock


def end_older_versions(
    ledger: Ledger,
    uid: str,
    version: int,
    *,
    stream: str = LIVE,
    holder: str,
    home: Path,
    times: LeaseTimes,
    say: Callable[[str], None],
) -> None:
    """Releases what holders of an older assignment version left behind (delivery rule 11): waits until each is provably
    over.

    Whoever owns their partitions now inherits their open ranges. Raises LeaseHeld when one of them is alive.
    """
    for seen in ledger.live_leases(uid, stream):
        if seen.version is not None and seen.version < version:
            older = LeaseRequest(seen.id, uid, stream, seen.version)
            acquire(ledger, [older], holder=holder, home=home, times=times, say=say).release()


def _wait_until_over(
    ledger: Ledger, seen: LeaseState, home: Path, times: LeaseTimes, say: Callable[[str], None]
) -> tuple[LeaseState, str]:
    """Returns when the holder's time is over, provably, and what proves it, as `TakenOver.by`; nothing when it was
    released meanwhile. Raises LeaseHeld as soon as it gives a sign of life.

    A holder whose time to live is longer than ours may write for longer than ours lasts, without a sign of life.
    """
    path = lock_path(home, seen.id, seen.epoch, seen.holder)
    here = seen.boot_id == host_identity(home)  # locks prove something only about processes that use this very folder
    patience_s = max(times.ttl_s, seen.ttl_s)
    until = clock.monotonic() + patience_s
    told = False
    while clock.monotonic() < until:
        if here and prove_ended(path):
            say(f"the former holder of epoch {seen.epoch} is gone (its lock is free); taking over")
            return seen, "lock"
        if not told:
            say(f"waiting for {seen.holder} (epoch {seen.epoch}), at most {math.ceil(patience_s)} s{_why(seen, here)}")
            told = True
        clock.sleep(min(_WATCH_EVERY_S, times.ttl_s / 10))
        now = ledger.lease(seen.id)
        if now is not None and now.released:
            return now, ""
        if now is None or (now.epoch, now.seq) != (seen.epoch, seen.seq):
            raise LeaseHeld(
                f"{seen.holder} is working on this",
                where=seen.id,
                next_step="Wait for that run to end, or look at it with: waybill runs",
            )
    say(f"epoch {seen.epoch} gave no sign of life for {math.ceil(patience_s)} s; taking over")
    return seen, "silence"


def _why(seen: LeaseState, here: bool) -> str:
    """Why there is no proof by lock, where there can be none."""
    if has_lanes_elsewhere(seen.boot_id):
        return ": it has workers on other hosts, of which no lock tells that they have ended"
    return "" if here or not seen.boot_id else ": it is on another host, or has another home"
