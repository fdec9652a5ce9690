"""Events of a stream that no batch has yet. Pure."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

import numpy as np

from connect_core.sdk.values import SourceBatch
from connect_core.systems.tables.change_events import Event, batch_of
from connect_core.systems.tables.pages import holes_between

MOST_EVENTS, MOST_BYTES = 10_000, 16 << 20
"""Of one batch: what is larger is torn, in memory and in the target."""


@dataclass
class TakenEvents:
    """From the offset `first` on, each with its own; `left_out` are offsets of what is none."""

    first: int
    numbers: list[int] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    left_out: list[int] = field(default_factory=list)
    size: int = 0

    @property
    def fills_a_batch(self) -> bool:
        return len(self.numbers) >= MOST_EVENTS or self.size >= MOST_BYTES

    def add(self, number: int, event: Event) -> None:
        self.numbers.append(number)
        self.events.append(event)
        self.size += len(event.value)

    def before(self, behind: int) -> int:
        """How many."""
        return bisect_left(self.numbers, behind)

    def cut(self, behind: int, *, has_holes: bool = False) -> SourceBatch:
        """A batch of those before an offset, which then are no longer here. `has_holes`: offsets are places, at most of
        which there is nothing; else each is that of an event, or left out."""
        rows, aside = self.before(behind), bisect_left(self.left_out, behind)
        numbers, events = self.numbers[:rows], self.events[:rows]
        holes = holes_between(np.array(numbers, np.int64), self.first, behind) if has_holes else ()
        batch = batch_of(numbers, events, behind, tuple(self.left_out[:aside]), holes)
        self.first, self.size = behind, self.size - _size(events)
        del self.numbers[:rows], self.events[:rows], self.left_out[:aside]
        return batch

    def forget(self, begin: int) -> None:
        """Those from an offset on."""
        kept = self.before(begin)
        self.size -= _size(self.events[kept:])
        del self.numbers[kept:], self.events[kept:]


def _size(events: list[Event]) -> int:
    return sum(len(one.value) for one in events)
