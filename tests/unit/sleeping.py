"""A clock for tests that wait: time passes when somebody sleeps, and sleeping takes none."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass
class SleepingClock:
    """A `connect_core.clock.Clock` that starts `seconds` after 1970."""

    seconds: float = 0.0

    def boottime_ns(self) -> int:
        return int(self.seconds * 1e9)

    def monotonic(self) -> float:
        return self.seconds

    def utc(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def sleep(self, seconds: float) -> None:
        self.seconds += max(seconds, 0)
