"""What every history has in common: processes take steps, and at each step one of them may be stopped or killed."""

from __future__ import annotations

from tests.simulator import faults as kinds
from tests.simulator.faults import Faults
from tests.simulator.hosts import pause
from tests.simulator.scheduler import STEP, Actor, Scheduler

_LATENCIES_S = (0.0002, 0.0005, 0.001, 0.002)
_OF_DRIVERS = (kinds.KILLED_DRIVER, kinds.STOPPED_DRIVER, kinds.ZOMBIE_DRIVER)
_OF_WORKERS = (kinds.KILLED_WORKER, kinds.STOPPED_WORKER, kinds.ZOMBIE_WORKER)


class Stage:
    scheduler: Scheduler
    faults: Faults

    def step(self, what: str) -> None:
        """A moment passes; a process may be stopped or killed before and after."""
        actor = self.scheduler.current
        if actor is None:
            return
        self.scheduler.alive()
        self.scheduler.tell(what, mark=STEP)
        if actor.name.startswith("driver"):
            self._strike(actor)
        self.scheduler.wait(self.scheduler.chance.choice(_LATENCIES_S) * actor.pace)

    def _strike(self, actor: Actor) -> None:
        """A driver that waits for its lanes is struck while they work."""
        if actor.parent is None:
            self._suffers(actor, self.faults.strikes(*_OF_DRIVERS, weight=0.25))
            return
        if actor.host and self.faults.strikes(kinds.CLOCK_STOOD):
            pause(self.scheduler, actor.host, self.scheduler.chance.choice((0.1, 1, 4)))
            return
        fault = self.faults.strikes(*_OF_WORKERS, *_OF_DRIVERS)
        self._suffers(actor.parent if fault in _OF_DRIVERS else actor, fault)

    def _suffers(self, actor: Actor, fault: str | None) -> None:
        if fault in (kinds.KILLED_DRIVER, kinds.KILLED_WORKER):
            self.scheduler.kill(actor, "SIGKILL")
        elif fault in (kinds.STOPPED_DRIVER, kinds.STOPPED_WORKER):
            self.scheduler.stop(actor, self.scheduler.chance.uniform(0.01, 0.7))
        elif fault in (kinds.ZOMBIE_DRIVER, kinds.ZOMBIE_WORKER):
            self.scheduler.stop(actor, self.scheduler.chance.uniform(2, 9))
