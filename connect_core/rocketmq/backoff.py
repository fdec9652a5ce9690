"""How long to wait when a broker says it is busy: a little, then longer, never past the caller's deadline."""

from __future__ import annotations

import time

FIRST_S = 0.02
LONGEST_S = 1.0


class Backoff:
    """One spell of business; make a new one after a success."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._next_s = FIRST_S

    @property
    def brief(self) -> bool:
        """Whether the spell is still short: the pauses have not become as long as they can be."""
        return self._next_s < LONGEST_S

    def again_at(self) -> float:
        """When to ask again (monotonic); the deadline when that comes first. Each call is a pause, longer than the one
        before."""
        moment = time.monotonic() + self._next_s
        self._next_s = min(2 * self._next_s, LONGEST_S)
        return min(moment, self._deadline)

    def pause(self) -> bool:
        """Waits; False (at once) when the deadline would pass meanwhile."""
        moment = self.again_at()
        if moment >= self._deadline:
            return False
        time.sleep(max(moment - time.monotonic(), 0.0))
        return True
