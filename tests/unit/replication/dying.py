"""A driver that is killed at a step."""

from __future__ import annotations

from connect_core.observe import Step
from connect_core.replication.driver.task import TaskRun
from tests.unit.replication.world import MEMORY, World


class Killed(BaseException):
    """Stands for SIGKILL of the driver: nothing of it runs any more but what the kernel does."""


class Mortal(TaskRun):
    """A driver that is killed at a step: its lock goes as with its process, its lease stays as it is."""

    dies_at: Step
    lives_through = 0
    """How often it passes the step before."""

    @classmethod
    def run_of(cls, world: World, step: Step) -> None:
        """Raises Killed at the step."""
        assignment = world.ledger.assign(world.connector.uid, [MEMORY], 1)
        driver = cls(world.context(), assignment, 0, world.source, world.sink)
        driver.dies_at = step
        driver.run()

    def reached(self, step: Step) -> None:
        if step is not self.dies_at:
            return
        self.lives_through -= 1
        if self.lives_through < 0:
            self.held.leases, locks = [], self.held.locks
            self.held.locks = []
            for lock in locks:
                lock.close()
            raise Killed
