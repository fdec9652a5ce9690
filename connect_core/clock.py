"""The one clock: everything that a run decides by time reads it here, and waits here.

Deadlines are moments of CLOCK_BOOTTIME, which goes on while the machine sleeps and never steps (delivery rule 1);
waits are measured on the monotonic clock; what is written down for people is UTC. The system's clock is the default. A
simulator puts a clock of its own in its place for a while: whole runs then happen in virtual time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Four views of one passing time."""

    def boottime_ns(self) -> int:
        """CLOCK_BOOTTIME: for moments that driver, worker and kernel timer must agree on."""

    def monotonic(self) -> float:
        """Seconds, for durations within one process."""

    def utc(self) -> datetime:
        """For people; may step."""

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The clock of this host."""

    def boottime_ns(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def monotonic(self) -> float:
        return time.monotonic()

    def utc(self) -> datetime:
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


_clock: Clock = SystemClock()


def now_ns() -> int:
    return _clock.boottime_ns()


def monotonic() -> float:
    return _clock.monotonic()


def utc() -> datetime:
    return _clock.utc()


def sleep(seconds: float) -> None:
    _clock.sleep(seconds)


@contextmanager
def replaced_by(clock: Clock) -> Iterator[None]:
    """The whole process lives by `clock` inside the block. For simulators."""
    global _clock
    before, _clock = _clock, clock
    try:
        yield
    finally:
        _clock = before
