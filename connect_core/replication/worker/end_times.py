"""How long a lane has to leave for its end: what came is made durable then, and told of, one partition after the other.

A lane that is not done at its deadline is killed, and has told of nothing. Pure.
"""

from __future__ import annotations

from connect_core.sdk.records import Partition

_SAFETY = 3
"""A machine may be so many times as busy as it was."""

_A_FEW = 16
"""So many partitions are taken in addition to twice those that the lane before had, and no more: one of many takes
longer than one of few, since its sink may look at what the others have written."""


class EndTimes:
    """What the lanes before took, in one worker. `each_s` is what one partition takes, as long as nothing is known.
    `left_out` is the partition that the lane before had no time for, or no room: the next one looks at it first."""

    def __init__(self, each_s: float = 0.02) -> None:
        self._each_s, self._all_s = each_s, 0.0
        self._most: int | None = None
        self.left_out: Partition | None = None

    def took(self, partitions: int, seconds: float) -> None:
        """A lane with so many partitions has ended. What took longer before is forgotten by and by."""
        if partitions:
            self._most = 2 * partitions + _A_FEW
            self._each_s = max(seconds / partitions, self._each_s / 2)
            self._all_s = max(seconds, self._all_s / 2)

    def to_leave_s(self) -> float:
        """What a lane has to leave that comes to as much as those before."""
        return _SAFETY * self._all_s

    def allow(self, partitions: int, left_s: float) -> bool:
        """Whether `left_s` are enough to end so many."""
        known = self._most is None or partitions <= self._most
        return known and partitions * self._each_s * _SAFETY <= left_s
