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

    def pause(self) -> bool:
        """Waits; False (at once) when the deadline would pass meanwhile."""
        if time.monotonic() + self._next_s >= self._deadline:
            return False
        time.sleep(self._next_s)
        self._next_s = min(2 * self._next_s, LONGEST_S)
        return True
