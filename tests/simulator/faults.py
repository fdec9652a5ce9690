"""What goes wrong, how often and when: drawn from the seed before and while a history runs.

Each place at which something can go wrong asks `strikes` with the kinds that are possible there. A history has a
budget: when it is used up, or its time for faults is over, everything is healed and the runs must finish.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tests.simulator.scheduler import Scheduler

KILLED_DRIVER, KILLED_WORKER = "driver killed", "worker killed"
STOPPED_DRIVER, STOPPED_WORKER = "driver stopped, goes on in time", "worker stopped, goes on in time"
ZOMBIE_DRIVER, ZOMBIE_WORKER = "driver stopped past its lease", "worker stopped past its deadline"
LEDGER_AWAY, COMMIT_LOST = "ledger does not answer", "COMMIT done, its answer lost"
COMMIT_UNDONE = "COMMIT not done, its answer lost"
SEND_LOST, SEND_UNANSWERED = "send lost", "send stored, its answer lost"
SEND_ORPHANED, SEND_HELD = "killed with a send under way", "send held back by the broker"
BROKER_AWAY = "broker does not answer"
SEND_TORN = "broker dies while it stores a batch"
"""Of a batch the first messages stand, and perhaps one of which the properties are cut. Only some journeys have it."""
LANE_QUEUED, LANE_LATE = "lane starts late", "lane starts after its deadline"
ENGINE_LOST = "engine's answer lost"
LANE_STRAYS = "lane comes to a host that the driver knows nothing of"
CLOCK_STOOD = "worker's host paused, its clock stands still"
"""A condition of each guarantee: only some histories with other hosts have it."""
SECOND_RUN = "second run beside a living one"
CONFIRM_FAILED = "source cannot be told"
SOURCE_AWAY = "source does not answer"

OFTEN = (
    KILLED_DRIVER,
    KILLED_WORKER,
    STOPPED_DRIVER,
    STOPPED_WORKER,
    ZOMBIE_DRIVER,
    ZOMBIE_WORKER,
    LEDGER_AWAY,
    COMMIT_LOST,
    COMMIT_UNDONE,
    SEND_LOST,
    SEND_UNANSWERED,
    SEND_ORPHANED,
    BROKER_AWAY,
    LANE_QUEUED,
    LANE_LATE,
    ENGINE_LOST,
    SECOND_RUN,
    CONFIRM_FAILED,
    SOURCE_AWAY,
)
"""Kinds under which nothing may ever be repeated. SEND_HELD is the stated condition: only some histories have it."""


@dataclass(frozen=True)
class FaultPlan:
    """`rate` is the chance that a place at which something can go wrong goes wrong."""

    kinds: frozenset[str]
    budget: int
    rate: float
    until_s: float


class Faults:
    """Strikes while the budget lasts, and counts."""

    def __init__(self, scheduler: Scheduler, plan: FaultPlan) -> None:
        self._scheduler, self.plan = scheduler, plan
        self.left = plan.budget
        self.counts: Counter[str] = Counter()

    @property
    def healed(self) -> bool:
        return self.left <= 0 or self._scheduler.now_ns / 1e9 > self.plan.until_s

    def strikes(self, *possible: str, weight: float = 1.0) -> str | None:
        """One of `possible` that happens here and now, or None. `weight` is low at places that are passed often."""
        if self.healed or self._scheduler.chance.random() >= self.plan.rate * weight:
            return None
        enabled = [kind for kind in possible if kind in self.plan.kinds]
        if not enabled:
            return None
        kind = self._scheduler.chance.choice(enabled)
        self.left -= 1
        self.counts[kind] += 1
        self._scheduler.tell(f"FAULT {kind}")
        return kind
