"""Other hosts than that of the drivers: clocks that begin elsewhere, count faster or slower, and stand still.

Time of the drivers is that of the world; a worker's clock is that of its host. What a driver knows of it is a sample
that it took by a message there and one back.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from connect_core.engine.host_clocks import Reading, Sample
from tests.simulator.faults import CLOCK_STOOD
from tests.simulator.scheduler import Actor, Scheduler

SPEEDS = (820, 900, 1000, 1000, 1100)
"""Thousandths of the drivers' clock: the slowest is what a clock that is steered as far as Linux lets it loses against
one that is steered the other way."""

AHEAD_NS = (-40_000_000_000, -1_000_000_000, 700_000_000, 300 * 86_400 * 10**9)
"""Hosts that were started later, or long before; two clocks may also be near each other by chance."""

WITH_HOSTS = 5
"""One history in so many has them."""


@dataclass(eq=False)
class Host:
    """`stood` are the times during which it was paused, and its clock with it."""

    boot_id: str
    ahead_ns: int
    speed: int
    stood: list[tuple[int, int]] = field(default_factory=list)

    def reads(self, world_ns: int) -> int:
        still_ns = sum(min(end, world_ns) - begin for begin, end in self.stood if begin < world_ns)
        return self.ahead_ns + (world_ns - still_ns) * self.speed // 1000

    def soonest_ns(self, reading: int, world_ns: int) -> int:
        """When its clock reads that, if it does not stand still: never before `world_ns`."""
        return world_ns + max(-(-(reading - self.reads(world_ns)) * 1000 // self.speed), 0)


def drawn_hosts(seed: int) -> tuple[Host, ...]:
    """Of a history: mostly none. By a chance of their own, so that all else of a seed stays as it is without them."""
    if seed % WITH_HOSTS != 1:
        return ()
    chance = random.Random(f"hosts {seed}")
    return tuple(
        Host(f"boot of host {n}", chance.choice(AHEAD_NS), chance.choice(SPEEDS))
        for n in range(chance.choice((1, 1, 2)))
    )


def sampled(scheduler: Scheduler, host: Host) -> Sample:
    """The driver that runs asks a worker there, and waits for the answer: on a bad network for long."""
    chance = scheduler.chance
    scheduler.wait(chance.choice((0.0002, 0.001, 0.01, 0.2)))
    reading = Reading(host.boot_id, host.reads(scheduler.now_ns))
    scheduler.wait(chance.choice((0.0002, 0.001, 0.01, 0.2, 0.9)))
    return Sample(reading, scheduler.now_ns)


def pause(scheduler: Scheduler, host: Host, seconds: float) -> None:
    """As a hypervisor does it: nothing there runs, and its clock does not count."""
    scheduler.tell(f"{CLOCK_STOOD} for {seconds:.3f} s: {host.boot_id}", "world")
    host.stood.append((scheduler.now_ns, scheduler.now_ns + int(seconds * 1e9)))
    for actor in scheduler.actors:
        if actor.host is host and not actor.ended:
            scheduler.stop(actor, seconds)


def is_late(actor: Actor, world_ns: int) -> bool:
    """Whether a lane goes on behind its driver's deadline since its host's clock stood still: the stated condition."""
    return bool(actor.host and actor.host.stood) and world_ns > actor.deadline_ns
