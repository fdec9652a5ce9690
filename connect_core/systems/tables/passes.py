"""Rows that were changed, as passes over a table: which of them a pass reads, and what a position says of it. Pure.

A pass reads the rows whose time is within a window, in the order of their numbers, and these are its offsets. Each pass
is an incarnation of its own. The windows adjoin, so a version of a row, which has one time, is in one of them. A window
has an end before which no time is written any more: rows leave it, when they are changed again, and none comes. So a
range that is read again finds each row at the number that it had, or does not find it, and then a later pass has it.
"""

from __future__ import annotations

import hashlib
import math
from typing import NamedTuple, Self

from connect_core.sdk.values import ORIGIN, Json
from connect_core.systems.tables.stretches import PassStretch

TABLE = "table"
_FROM, _TO = "from", "to"


class TimeWindow(NamedTuple):
    """Times in [begin, end), whole seconds since 1970 in UTC. No `begin`: all before `end`.

    Programs, and columns, may keep less of a time than the database's clock says, but hardly less than its second. So a
    time that is written once the clock has passed a whole second is not before that."""

    begin: int | None
    end: int


class Among(NamedTuple):
    """Which rows of a table are meant: those that were changed in `window`, of `stretch`. None: whichever."""

    window: TimeWindow | None = None
    stretch: PassStretch | None = None


class Pass(NamedTuple):
    """Rows of `window`, and of these the ones of `stretch`. `table` is the origin of the table that they are of."""

    table: str
    window: TimeWindow
    stretch: PassStretch

    @classmethod
    def of(cls, evidence: Json) -> Self | None:
        """None of a position that knows none: nothing was read yet, or in another mode."""
        if _TO not in evidence:
            return None
        window = TimeWindow(evidence[_FROM], evidence[_TO])
        return cls(evidence[TABLE], window, PassStretch.of(evidence))

    @property
    def evidence(self) -> Json:
        """Its origin names the window, too: a ledger that was restored counts other passes by the same numbers."""
        named = f"{self.table}/{self.window.begin}/{self.window.end}{self.stretch.named}"
        return {
            ORIGIN: hashlib.blake2b(named.encode(), digest_size=8).hexdigest(),
            TABLE: self.table,
            _FROM: self.window.begin,
            _TO: self.window.end,
            **self.stretch.evidence,
        }


def settled_second(now: float, delay_s: float) -> int:
    """Before this no time is written any more by who is not seen to write: the end of a window, once those have ended
    that were seen after the database's clock said `now`."""
    return math.floor(now - delay_s)


def second_behind(now: float) -> int:
    """Whatever has the time `now`, or one before it, is before this."""
    return math.floor(now) + 1
