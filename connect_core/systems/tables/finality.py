"""Up to which id all rows of a table are there, so that none comes later. Pure.

A row gets its id before its transaction commits, so 4 may be there before 3. Nor does the oldest transaction id that
runs say more: an id is given out before its transaction has one of those. But whoever draws an id from a sequence, or
inserts a row, holds a lock on the sequence or the table until the end of the transaction. So each look brings first the
highest id that is committed, and then who holds such a lock: an id below that one was given out before the lock holders
were listed, by one of these, or by a transaction that has ended. When all of these have ended, nothing comes below.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple


class OpenTransaction(NamedTuple):
    """One that may have drawn an id. `prepared`: it waits for the second phase of a two-phase commit."""

    name: str
    prepared: bool


@dataclass
class _Candidate:
    end: int
    waits_for: set[str]


@dataclass
class Finality:
    """What several looks at one table say together. `end` is behind the highest id below which nothing comes any more;
    it never goes back. A long transaction holds up only what was committed after it had begun."""

    end: int = 0
    _candidates: list[_Candidate] = field(default_factory=list)
    _prepared: set[str] = field(default_factory=set)

    @property
    def newest(self) -> int:
        """Behind the highest id that was seen: `end` comes to it, unless a transaction goes on for ever."""
        return self._candidates[-1].end if self._candidates else self.end

    def look(self, newest: int | None, writers: Collection[OpenTransaction]) -> None:
        """`newest` is the highest id that was committed before `writers` were listed."""
        names = {one.name for one in writers}
        self._keep_waiting(names, {one.name for one in writers if one.prepared})
        if newest is not None and newest >= self.newest:
            self._candidates.append(_Candidate(newest + 1, names))
        self.end = max([self.end, *(one.end for one in self._candidates if not one.waits_for)])
        self._forget_what_says_nothing()

    def _keep_waiting(self, names: set[str], prepared: set[str]) -> None:
        """A transaction that is prepared may have another name from then on: a new one of these may be any of those
        that seem to have ended."""
        appeared = prepared - self._prepared
        self._prepared = prepared
        for one in self._candidates:
            one.waits_for = (one.waits_for | appeared) & names

    def _forget_what_says_nothing(self) -> None:
        """Those that a higher one with no more to wait for makes needless: what stays is no more than there are
        transactions."""
        kept: list[_Candidate] = []
        for one in reversed(self._candidates):
            if one.end > self.end and not any(later.waits_for <= one.waits_for for later in kept):
                kept.append(one)
        self._candidates = kept[::-1]
