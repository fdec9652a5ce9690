"""The engine: each lane is an actor of its own that does what a worker process does.

It may start late, it refuses after its deadline, shares the lock files, dies at the absolute deadline whatever state
it is in, and mostly soon after its driver. When one lane dies the driver hears of it at once; the others go on, and
nobody takes their answers. A worker may be on another host: its lane has its deadline in that host's clock, by the
product's own reckoning, and no locks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from connect_core.engine.host_clocks import Sample, lane_there
from connect_core.errors import EngineFailed, Failure, Fenced, Retriable
from connect_core.replication.locks import shared
from connect_core.replication.worker.lane import move
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.sink import Scan, Sink
from connect_core.sdk.source import Source
from connect_core.work import Lane, Outcome, ScanTask, Side
from tests.simulator.broker import Holder
from tests.simulator.faults import ENGINE_LOST, LANE_LATE, LANE_QUEUED, LANE_STRAYS, Faults
from tests.simulator.hosts import Host, is_late, sampled
from tests.simulator.scheduler import Actor, Scheduler

KERNEL_TIMER = True
"""Without it the simulator must find what delivery rule 2 prevents."""

GRACE_NS = 1_500_000_000
"""How long after their deadline a driver waits for its lanes."""

_HEARD_S = 0.03
"""How soon a worker dies after its driver, where it watches it."""


@dataclass(frozen=True)
class Place:
    """What engines run on. Workers are `pace` times slower than drivers, more or less: a retry may get less far."""

    scheduler: Scheduler
    faults: Faults
    source: Callable[[Side], Source]
    sink: Callable[[Side, Holder], Sink]
    step: Callable[[str], None]
    looks: Callable[[Scan], None]
    pace: float
    hosts: tuple[Host, ...] = ()
    breaks: Callable[[str], None] = print
    """Is told what must not happen."""


@dataclass
class SimulatedEngine:
    """A `work.Engine` of one driver. `writer` numbers the lease that the driver holds."""

    place: Place
    driver: Actor
    writer: Callable[[], int]
    described: str = "simulated"
    lanes: int = field(default=0, init=False)
    run: Any = None
    """Whose engine it is, where that is not known before."""
    samples: dict[Host, Sample] = field(default_factory=dict, init=False)

    @property
    def elsewhere(self) -> bool:
        return bool(self.place.hosts)

    def read_clocks(self) -> None:
        """See `work.OnOtherHosts`."""
        for host in self.place.hosts:
            self.samples[host] = sampled(self.place.scheduler, host)

    def execute(self, lanes: Sequence[Lane]) -> list[Outcome]:
        scheduler = self.place.scheduler
        self.place.step("starts lanes")
        jobs = [self._job(lane) for lane in lanes]
        for job, lane in zip(jobs, lanes, strict=True):
            self.lanes += 1
            name = f"{self.driver.name}/lane {self.lanes}"
            job.actor = scheduler.spawn(name, job.run, self._queued_s(lane.deadline_ns), self.driver)
            job.actor.host, job.actor.deadline_ns = job.host, lane.deadline_ns
            job.actor.pace = self.place.pace * scheduler.chance.choice((0.1, 0.5, 1, 3))
            job.actor.at_end.append(lambda: scheduler.wake(self.driver))
            self._watch_driver(job.actor)
        patience_ns = max(lane.deadline_ns for lane in lanes) + GRACE_NS
        scheduler.at(patience_ns, lambda: scheduler.wake(self.driver))
        while not all(job.actor.ended for job in jobs) and scheduler.boottime_ns() < patience_ns:
            if any(job.actor.ended and job.outcomes is None for job in jobs):
                break
            scheduler.block()
        self.place.step("hears of its lanes")
        if any(job.outcomes is None for job in jobs):
            raise EngineFailed("a worker died or does not end")
        if self.place.faults.strikes(ENGINE_LOST, weight=2):
            raise EngineFailed("the engine's answer was lost")
        return [outcome for job in jobs for outcome in job.outcomes or ()]

    def scan(self, task: ScanTask) -> dict[int, ScanResult]:
        self.place.step("starts a search")
        holder = Holder(self.writer(), tuple(item.range.partition.id for item in task.scan.ranges))
        self.place.looks(task.scan)
        found = self.place.sink(task.sink, holder).scan(task.scan)
        self.place.step("hears of its search")
        if self.place.faults.strikes(ENGINE_LOST, weight=2):
            raise EngineFailed("the engine's answer was lost")
        return found

    def _job(self, lane: Lane) -> _Job:
        """Some lanes are worked through beside their driver. What is known of a host's clock is for that host."""
        chance, hosts = self.place.scheduler.chance, self.place.hosts
        host = chance.choice((None, *hosts, *hosts)) if hosts else None
        if host is None:
            return _Job(self, lane, None)
        if self.place.faults.strikes(LANE_STRAYS, weight=3):
            return _Job(self, lane, host)
        return _Job(self, lane_there(lane, self.samples[host]), host)

    def _queued_s(self, deadline_ns: int) -> float:
        """How long a lane waits for a free slot."""
        chance, left_s = self.place.scheduler.chance, (deadline_ns - self.place.scheduler.now_ns) / 1e9
        fault = self.place.faults.strikes(LANE_QUEUED, LANE_LATE, weight=3)
        if fault == LANE_LATE:
            return left_s + chance.uniform(0, 1)
        return chance.uniform(0, left_s) if fault == LANE_QUEUED else chance.uniform(0.0005, 0.005)

    def _watch_driver(self, worker: Actor) -> None:
        """Two of three workers see the process of their driver; the others go on when it is dead."""
        scheduler = self.place.scheduler
        if scheduler.chance.random() < 0.67:
            delay_s = scheduler.chance.uniform(0, _HEARD_S)
            self.driver.at_end.append(lambda: scheduler.after(delay_s, lambda: scheduler.kill(worker, "driver ended")))


class _Job:
    """One lane and what came of it: None until it has answered."""

    actor: Actor

    def __init__(self, engine: SimulatedEngine, lane: Lane, host: Host | None) -> None:
        self._place, self.lane, self._writer, self.host = engine.place, lane, engine.writer(), host
        self.outcomes: list[Outcome] | None = None

    def run(self) -> None:
        place, lane = self._place, self.lane
        if self._strays():
            self._refuses(Retriable("The lane was planned for another boot"))
            return
        if place.scheduler.boottime_ns() >= lane.deadline_ns:
            self._refuses(Retriable("The lane started after its deadline"))
            return
        with ExitStack() as held:
            try:
                held.enter_context(shared(() if self.host else lane.lock_paths))
            except Fenced as refused:
                self._refuses(refused)
                return
            if KERNEL_TIMER:
                self._set_timer()
            if self.host:
                place.scheduler.at(self.actor.deadline_ns + 1, self._require_ended)
            self.outcomes = self._worked()

    def _require_ended(self) -> None:
        """By its driver's deadline, unless its host's clock stood still."""
        lane = self.actor
        if not (lane.dead or lane.ended or is_late(lane, self._place.scheduler.now_ns)):
            self._place.breaks(f"{lane.name} outlives the deadline of its driver")

    def _strays(self) -> bool:
        return self.host is not None and self.lane.boot_id != self.host.boot_id

    def _set_timer(self) -> None:
        """Goes off when the clock of its host reads the deadline, which may have stood still meanwhile."""
        scheduler, deadline_ns = self._place.scheduler, self.lane.deadline_ns
        if self.host is None:
            scheduler.at(deadline_ns, lambda: scheduler.kill(self.actor, "its deadline"))
        elif self.host.reads(scheduler.now_ns) < deadline_ns:
            scheduler.at(self.host.soonest_ns(deadline_ns, scheduler.now_ns), self._set_timer)
        else:
            scheduler.kill(self.actor, "its deadline")

    def _worked(self) -> list[Outcome]:
        place, lane = self._place, self.lane
        place.step("starts")
        holder = Holder(self._writer, tuple(item.range.partition.id for item in lane.ranges))
        outcomes = move(lane, place.source(lane.source), place.sink(lane.sink, holder))
        place.step("answers")
        return outcomes

    def _refuses(self, error: Retriable | Fenced) -> None:
        self._place.scheduler.tell(f"refuses: {error}")
        self.outcomes = [Outcome(item.id, None, Failure.of(error)) for item in self.lane.ranges]
