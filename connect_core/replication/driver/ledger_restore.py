"""Noticing that the ledger was restored from a backup, by what its drivers remember of it (delivery rule 12).

The home keeps, for each ledger, the highest counter that one of its leases was given when it was taken or renewed:
`ledger.seen`. A run renews its lease before each execution, so nothing is written that a backup of before can hide: it
counts less, or the range is open in it. A run reads the file before the ledger's own counter, which only grows: one
that is lower is older than its targets. It does so when it begins, and again each time it takes or renews a lease,
since the backup may come back at any moment. Then every connector looks in its targets before it writes, and nobody
begins before the lanes of the leases that were forgotten are over.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from connect_core import clock
from connect_core.errors import ConfigError, Retriable, WaybillError
from connect_core.ledger import Lease, Ledger
from connect_core.replication.locks import held_alone

SEEN_FILE = "ledger.seen"


def recognise(ledger: Ledger, home: Path, *, holder: str, ttl_s: float, say: Callable[[str], None]) -> None:
    """Called before a run takes its first lease. Marks a ledger that was restored, and waits until whatever was begun
    under the leases that it has forgotten is over."""
    seen = remembered(home)  # before the ledger's own: a neighbour raises that one first
    now = ledger.identity()
    if now.counter < seen.get(now.id, 0):
        told_restored(ledger, home, holder)
    elif now.moved:
        ledger.mark_restored(counter=now.counter, who=holder, why="it is on another server, or another timeline of it")
    elif now.server and not now.known_server:
        ledger.note_server(now.server)
    restored_at = ledger.restored_at()
    age_s = (clock.utc() - restored_at).total_seconds() if restored_at else ttl_s
    if age_s < ttl_s:
        say("the ledger was restored from a backup: the targets are checked before anything is written")
        clock.sleep(min(ttl_s - age_s, ttl_s))


def told_restored(ledger: Ledger, home: Path, who: str, why: str = "it knows less than its drivers remember") -> int:
    """Marks the ledger as restored, with the counter that this home has seen. Returns the number of floors."""
    return ledger.mark_restored(counter=remembered(home).get(ledger.identity().id, 0), who=who, why=why)


def restored_at_work(ledger: Ledger, home: Path, who: str, where: str = "") -> Retriable:
    """Marks a ledger that a run saw come back while it was at work; for that run to raise."""
    told_restored(ledger, home, who)
    return _came_back(where)


def restored_unnoticed(ledger: Ledger, home: Path, who: str, where: str) -> Retriable:
    """Marks a ledger of which the first lease that is taken shows that it came back; for whoever took it to raise."""
    told_restored(ledger, home, who)
    return _came_back(where, "before this lease was taken")


def _came_back(where: str, when: str = "while this run was at work") -> Retriable:
    return Retriable(
        f"The ledger was restored from a backup {when}",
        where=where,
        next_step="Nothing was written based on it; the next run checks the targets first",
    )


def _another_ledger(where: str) -> Retriable:
    return Retriable(
        "The ledger is not the one that this run started with",
        where=where,
        next_step="Check that WAYBILL_DATABASE_URL and the database are right; the next run uses that ledger",
    )


class Watch:
    """What a run knew of its ledger when it began: by it an error is recognised that only a ledger which was replaced
    under the run can have brought about. `run_id` is set when the run has one."""

    run_id = ""

    def __init__(self, ledger: Ledger, home: Path, who: str, where: str) -> None:
        self._ledger, self._home, self._who, self._where = ledger, home, who, where
        self._id, self._restored_at = ledger.identity().id, ledger.restored_at()

    @contextmanager
    def telling(self) -> Iterator[None]:
        """An error of the block becomes Retriable when the ledger of now is not the one with which the run began, or is
        older."""
        try:
            yield
        except Retriable:
            raise
        except WaybillError as error:
            replaced = self._replaced()
            if replaced is None:
                raise
            raise replaced from error

    def _replaced(self) -> Retriable | None:
        with suppress(WaybillError):  # a ledger that does not answer says nothing of that
            seen = remembered(self._home)  # before the ledger's own: a neighbour raises that one first
            now = self._ledger.identity()
            if now.id != self._id:
                return _another_ledger(self._where)
            if now.counter < seen.get(now.id, 0):
                return restored_at_work(self._ledger, self._home, self._who, self._where)
            if self._ledger.restored_at() != self._restored_at or not self._knows_run():
                return _came_back(self._where)
        return None

    def _knows_run(self) -> bool:
        return not self.run_id or self._ledger.knows_run(self.run_id)


def require_over(ledger: Ledger, ttl_s: float, where: str) -> None:
    """Called with the leases held. Raises Retriable while lanes of the leases that a restored ledger has forgotten may
    be at work: it may have come back since `recognise` has looked. A moment far ahead is of a clock that was set back
    since: `recognise` has waited for a whole time to live after it."""
    restored_at = ledger.restored_at()
    if restored_at and abs((clock.utc() - restored_at).total_seconds()) < ttl_s:
        raise _came_back(where)


def remember(home: Path, leases: Sequence[Lease]) -> None:
    """Durable before anything is written under these leases."""
    with _own_file(home) as path:
        seen = _read(path)
        now = dict(seen)
        for lease in leases:
            now[lease.ledger] = max(lease.counter, now.get(lease.ledger, 0))
        if now != seen:
            _write(path, json.dumps(now))


def comes_from_backup(lease: Lease, before: Mapping[str, int]) -> bool:
    """Whether the ledger of this lease forgot others. `before` is what was remembered before the lease was taken or
    renewed: a ledger that did not come back from a backup counts more now, whoever else renewed meanwhile."""
    return lease.counter <= before.get(lease.ledger, 0)


def remembered(home: Path) -> dict[str, int]:
    """The highest counter seen, by id of the ledger; empty when this home has not seen any."""
    highest: dict[str, int] = {}
    for path in seen_files(home):
        for ledger, counter in _read(path).items():
            highest[ledger] = max(counter, highest.get(ledger, 0))
    return highest


def seen_files(home: Path) -> list[Path]:
    """The files in which it is kept, as many as there ever were writers at one moment. None is ever removed: who lists
    them while others write misses nothing that was there before."""
    return [*home.glob(SEEN_FILE), *home.glob(f"{SEEN_FILE}.[0-9]*")]


def _read(path: Path) -> dict[str, int]:
    try:
        found: dict[str, int] = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except ValueError:
        raise ConfigError(
            "The file with the last known state of the ledger is damaged",
            where=str(path),
            next_step="Remove it, and run `waybill db restored`: then all targets are checked first",
        ) from None
    return found


def _write(path: Path, text: str) -> None:
    """The old text or the new one, never a part of it."""
    new = path.with_name(f"new-{path.name}")
    with new.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.rename(path)


@contextmanager
def _own_file(home: Path) -> Iterator[Path]:
    """The first file that nobody else is writing. Who waited for another would wait for a process that stands still,
    and every connector of the home with it."""
    for number in count():
        path = home / (f"{SEEN_FILE}.{number}" if number else SEEN_FILE)
        with held_alone(home, path.name) as ours:
            if ours:
                yield path
                return
