"""Whether tasks that Airflow's scheduler has queued are started, looked at from outside: by Airflow's database and the
process table.

A scheduler queues no more tasks than its executor has room for, so that a queued one has a worker soon. One that has
none for long, while no worker is about to start any, waits for ever: as when a worker of the LocalExecutor was killed
with a lock that the others need. A crowded machine is another matter: there a worker is at it, however long it takes.
"""

from __future__ import annotations

from dataclasses import dataclass

from connect_core.stack import processes
from connect_core.stack.airflow_database import Waiting, waiting

STUCK_AFTER_S = 20.0
_WORKER, _IDLE = "airflow worker -- LocalExecutor", "<idle>"
"""How the executor titles its workers."""


@dataclass(frozen=True)
class Look:
    """What was found: the tasks that wait, the executor's workers, and how many of these have something to do."""

    waiting: Waiting
    workers: int
    busy: int

    @property
    def nobody_starts(self) -> bool:
        """Tasks are queued, and each busy worker has its task running already. Without workers the scheduler itself has
        not begun, or is about to make some."""
        return self.waiting.queued > 0 and self.workers > 0 and self.busy <= self.waiting.running

    @property
    def is_stuck(self) -> bool:
        return self.nobody_starts and self.waiting.longest_s >= STUCK_AFTER_S and not self.waiting.others_start


def look(url: str, scheduler: int) -> Look:
    """`url` is that of Airflow's database, `scheduler` a pid. Raises Unreachable."""
    titles = [title for title in processes.children_titles(scheduler) if title.startswith(_WORKER)]
    return Look(waiting(url, STUCK_AFTER_S), len(titles), sum(_IDLE not in title for title in titles))


@dataclass
class Patience:
    """Looks at one scheduler again and again: stuck is one that was seen so for a while, by the clock of who looks. A
    scheduler that has just been started finds tasks that were queued long before."""

    pid: int = 0
    since: float | None = None

    def is_over(self, pid: int, found: Look, now: float) -> bool:
        if pid != self.pid or not found.nobody_starts:
            self.pid, self.since = pid, now if found.nobody_starts else None
            return False
        self.since = now if self.since is None else self.since
        return found.is_stuck and now - self.since >= STUCK_AFTER_S
