"""What a driver knows of the clock of another host, and which moment of it is a deadline there (delivery rule 1). Pure.

A worker says what its CLOCK_BOOTTIME reads. However long the message took, when the driver receives it that clock reads
at least as much, and it counts on from there. So for each later moment of its own clock the driver knows a reading that
the other clock has reached by then. A timer that is set to the reading for the driver's deadline goes off at or before
that deadline. No clock is set, no wall clock is read, no delay is estimated.

Clocks count at different speeds, and are steered: see `COUNTS_PERCENT`. A clock that stands still while its host is
paused is another matter: docs/decisions/clocks-of-other-hosts.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from connect_core.work import Lane

COUNTS_PERCENT = 80
"""Of the time that the driver's clock counts, another clock is taken to count at least so much.

Linux lets a daemon steer CLOCK_BOOTTIME by 10 % with the length of its tick and by 0.05 % with its frequency
(adjtimex(2)); chrony does so by up to 8.3 %. The worst pair of clocks counts 0.8995 s against 1.1005 s: 81.7 %."""


@dataclass(frozen=True)
class Reading:
    """What a worker's CLOCK_BOOTTIME read when it sent a message, in ns, and the boot that it counts from."""

    boot_id: str
    boottime_ns: int


@dataclass(frozen=True)
class Sample:
    """A reading, and when the driver had received it by its own CLOCK_BOOTTIME."""

    reading: Reading
    received_ns: int

    def reached_by(self, moment_ns: int) -> int:
        """A reading that the other clock has reached at the driver's `moment_ns`. For a moment before the sample was
        received: one that had passed by then, whatever the clocks did."""
        since_ns = moment_ns - self.received_ns
        counted_ns = since_ns * COUNTS_PERCENT // 100 if since_ns > 0 else since_ns
        return self.reading.boottime_ns + counted_ns

    def is_of(self, boot_id: str, asked_ns: int) -> bool:
        """Whether it is of the driver's own clock: of its boot, and from between `asked_ns`, when the worker was
        started or asked, and its receipt. Two clocks may name one boot: those of containers with times of their own,
        and those of machines that were copied while they ran."""
        return self.reading.boot_id == boot_id and asked_ns <= self.reading.boottime_ns <= self.received_ns


def best(samples: Iterable[Sample], moment_ns: int) -> Sample:
    """Of several samples of one clock the one that says most for a moment: a newer one that was long under way may say
    less than the one before it."""
    return max(samples, key=lambda sample: sample.reached_by(moment_ns))


def lane_there(lane: Lane, sample: Sample) -> Lane:
    """The lane as a worker with that clock gets it. Its deadline is there at or before the driver's."""
    return replace(lane, boot_id=sample.reading.boot_id, deadline_ns=sample.reached_by(lane.deadline_ns))
