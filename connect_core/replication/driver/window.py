"""A window: the run stays when what was there is moved, and follows its source until the window ends.

The driver waits at the source, not by a timer. When something is there it plans a live range for every partition and
starts a quantum, in which the worker follows all of them. Ranges into which nothing came stay open for the next quantum
and are withdrawn at the end. Between two quanta the run looks whether it is to end, and whether there are new
partitions; those of its own task are followed from then on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from connect_core import clock
from connect_core.errors import Retriable, WaybillError
from connect_core.ledger import FloorsBeside
from connect_core.planning import follow_ranges, something
from connect_core.replication.driver import available, plan
from connect_core.replication.driver.run_workers import RunWorkers
from connect_core.replication.driver.task_context import TaskContext
from connect_core.sdk.records import Partition
from connect_core.sdk.source import PushSource
from connect_core.sdk.values import OPEN_END, Bounds, OpenRange

WAIT_S = 1.0
"""How long at most a wait at the source lasts before the run looks whether it is to end."""

CATCH_UP_S = 0.25
"""How long a quantum lasts at most in which a partition has an end to come to, a log file that was rotated away: behind
it the next file waits."""

EMPTIED_S = 60.0
"""How long at most a run without a window stays for what its source pushes."""

IN_VAIN = 3
"""As many quanta in a row may end without a record though the source has some: it may have been taken back."""


def nothing_moved(where: str) -> Retriable:
    return Retriable(
        "No record moved in a whole quantum",
        where=where,
        next_step="The target or the source is very slow; raise quantum_s and lease_ttl_s",
    )


class Moving(Protocol):
    """What a window asks the run to do (`task.TaskRun`)."""

    quantum_s: float
    idle_timeout_s: float
    first_record_timeout_s: float
    workers: RunWorkers
    came_nearer: bool

    def ends_here(self) -> bool: ...

    def moved(self, pending: Sequence[OpenRange]) -> list[OpenRange]: ...

    def follow_new_partitions(self) -> None: ...


class Window:
    """The rest of one run, until `ends_at` (monotonic). `task` is what the run works with."""

    def __init__(self, run: Moving, task: TaskContext, ends_at: float) -> None:
        self._run, self._task, self._ends_at = run, task, ends_at
        self._sign_s = task.context.times.ttl_s / 4
        self._signed = self._looked = clock.monotonic()
        self._in_vain = 0
        self._followed = False
        """Whether the sources were followed, or waited for, once."""

    def stay(self) -> None:
        """Raises what stopped the run; live ranges that are open then are looked for by the next attempt."""
        run, task, pending = self._run, self._task, list[OpenRange]()
        while ((left_s := self._ends_at - clock.monotonic()) > 0 or self._owes_a_quantum()) and not run.ends_here():
            self._follow_new_partitions()
            bounds = available.bounds(task)
            pending = self._still_as_planned(pending, bounds)
            if task.lifecycle.aside and not bounds:
                break  # nothing is left to follow: who runs it next tries again
            if run.workers.stay:  # what comes after a silence finds somebody there
                run.idle_timeout_s = task.context.times.quantum_s
            if something(bounds) or (run.workers.stay and any(seen.grows for seen in bounds.values())):
                pending = self._quantum(pending, bounds, left_s)
            else:
                self._wait(bounds, left_s, pending)
            self._followed = True
        self._withdraw(pending)

    def empty_inbox(self) -> None:
        """For a source that pushes, without a window: takes what comes until nothing has come for the idle timeout. It
        counts from when it is connected: to connect may take longer than that."""
        run, task, pending, receipts = self._run, self._task, list[OpenRange](), -1
        run.first_record_timeout_s = task.context.times.idle_timeout_s
        while clock.monotonic() < self._ends_at and self._got_on(receipts) and not run.ends_here():
            receipts = len(task.summary.receipts)
            bounds = available.bounds(task)
            pending = self._still_as_planned(pending, bounds)
            pending = self._quantum(pending, bounds, task.context.times.quantum_s)
        self._withdraw(pending)

    def _got_on(self, receipts: int) -> bool:
        """Whether the last quantum has moved something, or only found out where to."""
        return len(self._task.summary.receipts) > receipts or self._task.more_targets.found

    def _quantum(self, pending: list[OpenRange], bounds: Mapping[Partition, Bounds], left_s: float) -> list[OpenRange]:
        """Raises Retriable when nothing moves though there is something, again and again."""
        run, task = self._run, self._task
        receipts = len(task.summary.receipts)
        ranges = [*pending, *self._planned(bounds, {item.range.partition for item in pending})]
        catching_up = any(item.range.begin < item.range.end < OPEN_END for item in ranges)
        longest_s = CATCH_UP_S if catching_up else task.context.times.quantum_s
        run.quantum_s = longest_s if self._owes_a_quantum() else min(longest_s, left_s)
        left = run.moved(ranges)
        self._signed = clock.monotonic()
        waiting = any(seen.end > seen.begin for seen in bounds.values())
        moved = len(task.summary.receipts) > receipts or run.came_nearer
        self._in_vain = self._in_vain + 1 if waiting and not moved else 0
        if self._in_vain > IN_VAIN:
            raise nothing_moved(task.where())
        return left

    def _owes_a_quantum(self) -> bool:
        """What a source pushes comes in a window alone: in a run that had no time for one, a whole one all the same."""
        return isinstance(self._task.source, PushSource) and not self._followed

    def _planned(self, bounds: Mapping[Partition, Bounds], planned: set[Partition]) -> list[OpenRange]:
        task = self._task
        limits, pins = plan.terms(task)
        wanted = {partition: seen for partition, seen in bounds.items() if partition not in planned}
        floors = FloorsBeside(floor for floor in task.ledger.floors(task.uid, task.stream) if floor.ahead)
        ahead = {one for one in wanted if task.is_ahead(pins(one), floors.of(one.id))}
        return plan.open_ranges(task, follow_ranges(task.stream, wanted, task.slots, ahead, limits, pins))

    def _wait(self, bounds: Mapping[Partition, Bounds], left_s: float, pending: Sequence[OpenRange]) -> None:
        """Gives a sign of life now and then: whoever waits for the lease must see that its holder is there. A source
        that does not answer ends the run: ranges into which nothing came would hold up who turns to another server."""
        if clock.monotonic() - self._signed >= self._sign_s:
            self._task.held.renew()
            self._signed = clock.monotonic()
        try:
            self._task.source.wait(bounds, max(min(left_s, WAIT_S, self._sign_s), 0.0))
        except WaybillError:
            self._withdraw(pending)
            raise

    def _still_as_planned(self, pending: Sequence[OpenRange], bounds: Mapping[Partition, Bounds]) -> list[OpenRange]:
        """Idle ranges whose partition is what it was. The others are taken back, to be planned anew."""
        kept = [
            item for item in pending if not item.range.live or _is_as_planned(item, bounds.get(item.range.partition))
        ]
        ids = {item.id for item in kept}
        self._withdraw([item for item in pending if item.id not in ids])
        return kept

    def _withdraw(self, items: Sequence[OpenRange]) -> None:
        """Nothing was written of them: each execution returned, and told of no record."""
        live = [item.id for item in items if item.range.live]
        if live:
            self._task.take_back(live)

    def _follow_new_partitions(self) -> None:
        """Each task looks for itself. Where the partitions have to be shared out anew, the run ends."""
        if clock.monotonic() - self._looked < self._task.context.times.quantum_s:
            return
        self._looked = clock.monotonic()
        self._run.follow_new_partitions()


def _is_as_planned(item: OpenRange, seen: Bounds | None) -> bool:
    if seen is None:  # put aside, or named no more
        return False
    wanted = item.range
    planned = (wanted.incarnation, wanted.begin, wanted.evidence)
    return planned == (seen.incarnation, seen.begin, seen.evidence) and seen.grows and not seen.gaps
