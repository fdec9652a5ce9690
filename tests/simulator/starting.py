"""Runs as processes: how one is started, sometimes a second one beside it, and when it is over for who started it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tests.simulator.faults import SECOND_RUN, Faults
from tests.simulator.processes import drop_locks
from tests.simulator.scheduler import Actor, Scheduler


class Started(Protocol):
    """The world in which runs are started; it counts them."""

    scheduler: Scheduler
    faults: Faults
    attempts: int


def spawn_driver(world: Started, work: Callable[[], None], after_s: float = 0.0) -> Actor:
    """One run of one task, as a process. When it is killed its locks are free."""
    world.attempts += 1
    actor = world.scheduler.spawn(f"driver {world.attempts}", work, after_s)
    actor.at_end.append(lambda: drop_locks(actor.killed_by))
    return actor


def until_over(world: Started, spawn: Callable[[float], Actor]) -> None:
    """Starts a run, and waits until it has ended; one that is stopped is given up after a while."""
    scheduler = world.scheduler
    me = scheduler.current
    assert me is not None
    running = [spawn(0.0)]
    if world.faults.strikes(SECOND_RUN, weight=3):
        running.append(spawn(scheduler.chance.uniform(0, 0.3)))
    for actor in running:
        actor.at_end.append(lambda: scheduler.wake(me))
    while not all(actor.ended or actor.stopped_until_ns > scheduler.now_ns for actor in running):
        scheduler.after(0.7, lambda: scheduler.wake(me))
        scheduler.block()
