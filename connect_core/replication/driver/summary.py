"""What one task's run did: its receipts, added up, and where its time went. Kept in the ledger when the run ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from connect_core import clock
from connect_core.sdk.values import Json
from connect_core.work import COUNTS, Receipt


@dataclass
class TaskSummary:
    """The receipts are in the ledger under `run_id`. `taken_over` are the leases that a former run had not released,
    how they could be taken, and what that took. `lag` is what its last look at the source saw and nobody has settled,
    in the unit of the source; None where it did not look. `ended_by` is paused, stopped or deleted where that has ended
    it at a range boundary."""

    task: int
    run_id: str
    receipts: list[Receipt] = field(default_factory=list)
    seconds_by_part: dict[str, float] = field(default_factory=dict)
    taken_over: list[Json] = field(default_factory=list)
    lag: int | None = None
    ended_by: str = ""

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """What is done meanwhile counts as this part of the run."""
        started = clock.monotonic()
        try:
            yield
        finally:
            spent = self.seconds_by_part
            spent[part] = spent.get(part, 0.0) + clock.monotonic() - started

    def records(self) -> dict[str, int]:
        """The receipts added up by field; unknown counts are left out."""
        return {name: sum(getattr(receipt, name) or 0 for receipt in self.receipts) for name in COUNTS}

    def behind(self, former: TaskSummary) -> TaskSummary:
        """Both as one, of a task that went on under another revision; the run is the last one."""
        seconds = dict(former.seconds_by_part)
        for part, spent in self.seconds_by_part.items():
            seconds[part] = seconds.get(part, 0.0) + spent
        receipts, taken_over = former.receipts + self.receipts, former.taken_over + self.taken_over
        return TaskSummary(self.task, self.run_id, receipts, seconds, taken_over, self.lag, self.ended_by)

    def totals(self) -> Json:
        """For the run's row in the ledger."""
        told = {**self.records(), "ranges": len(self.receipts), "seconds": self.seconds_by_part}
        told |= {"taken_over": self.taken_over} if self.taken_over else {}
        return told if self.lag is None else {**told, "lag": self.lag}
