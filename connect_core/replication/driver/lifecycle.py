"""The partitions of one task's run: which of them it reads, and which were put aside and why (delivery rules 25, 26).

What concerns one partition alone puts it aside: the others are moved to their end, then the run fails with the gravest
of the reasons. The next run tries each of them again. What the document names no more is retired: what is open of it is
finished, nothing new is read. What was read completely and is gone has ended, and is not asked for until it is there
again.

A part of a run's driver. The states are kept in the ledger, for whoever looks at the connector.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from connect_core.errors import Failure, LeaseHeld, Retriable, RowsLost, WaybillError
from connect_core.ledger import PartitionState
from connect_core.replication.driver.task_view import TaskView
from connect_core.sdk.records import Partition
from connect_core.sdk.source import Source, Splitting
from connect_core.sdk.values import Bounds, OpenRange

RETIRED = "the document no longer names it: no new records are read"
_TOLD = 5
"""Of so many partitions an error says one by one why they were put aside."""


class Lifecycle:
    """`aside` are the partitions that were put aside in this run. `named` are those of the document, None: all."""

    def __init__(self, task: TaskView, named: Collection[Partition] | None) -> None:
        self._task = task
        self._named = None if named is None else frozenset(named)
        self._states: dict[Partition, PartitionState] = {}
        self._ending: dict[Partition, str] = {}
        self._idle: set[Partition] = set()
        self._waits: dict[Partition, str] = {}
        self._beside: dict[Partition, Failure] = {}
        self.aside: dict[Partition, Failure] = {}

    # --------------------------------------------------------------------------------------------- what is to be read

    def begin(self) -> None:
        """Asks the ledger, once a run, and tells of partitions that are named no more, or again."""
        self._states = self._task.ledger.partition_states(self._task.uid, self._task.stream)
        self._tell_names()

    def known(self) -> list[Partition]:
        """For the source, which is asked for the partitions that there are now."""
        return to_be_told(self._task.source, self._task.assignment.shares, self._states)

    def names(self, partitions: Iterable[Partition]) -> None:
        """What the document names now, as the source has just said."""
        self._named = frozenset(partitions)
        self._tell_names()

    def reads(self, partition: Partition) -> bool:
        """Whether the document means it. Of one that was put aside the source is still asked, since what it has read
        belongs to it; nothing of it is planned."""
        return self._named is None or partition in self._named

    def _tell_names(self) -> None:
        retired = [one for one in self._task.slots if not self.reads(one) and self._state(one) != "ended"]
        again = [one for one in self._task.slots if self.reads(one) and self._state(one) == "retired"]
        new = [one for one in retired if self._state(one) != "retired"]
        self._keep({one: PartitionState("retired", RETIRED) for one in new})
        self._keep({one: PartitionState("active") for one in again})
        self._say([f"{one.key} is retired: {RETIRED}" for one in new])
        self._say([f"{one.key} is named again: it continues where it stopped" for one in again])

    # ------------------------------------------------------------------------------------------------ what became of it

    def readable(
        self, bounds: Mapping[Partition, Bounds], failures: Mapping[Partition, Failure]
    ) -> dict[Partition, Bounds]:
        """Of what the source says, what can be planned: without partitions that failed, or were put aside before."""
        self.put_aside(failures)
        self._left_where_it_is(bounds)
        there = {one: seen for one, seen in bounds.items() if one not in self.aside}
        self._idle = {one for one, seen in there.items() if has_nothing(seen)}
        gone = {one: self._ending[one] for one in self._ending.keys() & self._idle if not there[one].grows}
        self._keep({one: PartitionState("ended", reason) for one, reason in gone.items()})
        self._ending = {}
        back = [
            one for one in there if self._state(one) == "ended" and not (one in self._idle and not there[one].grows)
        ]
        self._keep({one: PartitionState("active") for one in back})
        return there

    def _left_where_it_is(self, bounds: Mapping[Partition, Bounds]) -> None:
        """What this look saw of it counts: it may come with the next one."""
        waits = {**self._waits, **{one: seen.waits for one, seen in bounds.items()}}
        self._waits = {one: why for one, why in waits.items() if why}
        beside = {one: seen.beside for one, seen in bounds.items() if seen.beside}
        new = {one: failure for one, failure in beside.items() if one not in self._beside}
        self._say([f"{one.key}: the rest continues: {failure.as_error()}" for one, failure in new.items()])
        self._beside = {one: why for one, why in self._beside.items() if one not in bounds} | beside

    def put_aside(self, failures: Mapping[Partition, Failure]) -> None:
        """Nothing more is planned of these in this run. The first failure of each counts."""
        new = {one: failure for one, failure in failures.items() if one not in self.aside}
        self.aside |= new
        self._keep({one: _quarantined(failure) for one, failure in new.items()})
        self._say([f"{one.key} is put aside, others continue: {failure.as_error()}" for one, failure in new.items()])

    def lacking(self, failures: Mapping[Partition, Failure]) -> None:
        """Of these the target has lost what was settled: nothing is planned, so that nothing is left open. The run says
        so at once, since something else may end it, and what to do in its end."""
        new = {one: failure for one, failure in failures.items() if one not in self.aside}
        self.aside |= new
        self._keep({one: _quarantined(failure) for one, failure in new.items()})
        self._say([f"{one.key} is put aside, others continue: {failure.what}" for one, failure in new.items()])

    def going_on(self, items: Sequence[OpenRange]) -> list[OpenRange]:
        """Those whose partition was not put aside."""
        return [item for item in items if item.range.partition not in self.aside]

    def settled(self, partitions: Iterable[Partition]) -> None:
        """Something of these was settled, and nothing stopped them: whoever was put aside by an earlier run is back."""
        self._heal(partitions)

    def told_end(self, items: Sequence[OpenRange]) -> None:
        """Empty ranges that were settled: what they tell of has ended, unless the next bounds say that it goes on."""
        told = ((item.range.partition, gap) for item in items for gap in item.range.gaps)
        self._ending |= {partition: gap.reason for partition, gap in told if not gap.warns}

    def conclude(self) -> None:
        """When everything that can be moved is: says what waits, and raises why partitions were put aside, or parts of
        them left."""
        self._heal(self._idle)
        self._say([f"{one.key}: {why}" for one, why in self._waits.items() if one not in self.aside])
        if left := {**self._beside, **self.aside}:
            raise put_aside_error({one.key: failure for one, failure in left.items()}, self._task.where())

    def _heal(self, partitions: Iterable[Partition]) -> None:
        back = [one for one in partitions if self._state(one) == "quarantined" and one not in self.aside]
        self._keep({one: PartitionState("active") for one in back})

    def _state(self, partition: Partition) -> str:
        stored = self._states.get(partition)
        return stored.state if stored else "active"

    def _keep(self, states: Mapping[Partition, PartitionState]) -> None:
        if states:
            self._task.ledger.set_partition_states(self._task.held.leases, self._task.uid, self._task.stream, states)
            self._states |= states

    def _say(self, lines: Sequence[str]) -> None:
        for line in lines[:_TOLD]:
            self._task.context.listener.log(line)
        if len(lines) > _TOLD:
            self._task.context.listener.log(f"... and {len(lines) - _TOLD:,} more")


def to_be_told(
    source: Source, partitions: Iterable[Partition], states: Mapping[Partition, PartitionState]
) -> list[Partition]:
    """Those that a source is asked to tell the whereabouts of: one that has ended is there again when it says so,
    unless it would not know it without being told."""
    ended = {one for one, known in states.items() if known.state == "ended"}
    if isinstance(source, Splitting):
        ended = {one for one in ended if not source.stays(one)}
    return [one for one in partitions if one not in ended]


def put_aside_error(aside: Mapping[str, Failure], where: str) -> WaybillError:
    """The gravest of these failures, by key of the partition; of several the first few are told with what to do, and of
    lost rows all, since each has an offset of its own. What to do is said once where it is the same."""
    worst = max((failure.as_error() for failure in aside.values()), key=gravity)
    if len(aside) > 1:
        lost = [key for key, failure in aside.items() if failure.kind == RowsLost.__name__]
        first = [*lost, *[key for key in aside if key not in {*lost}][:_TOLD]]
        more = [f"and {len(aside) - len(first):,} more"] if len(aside) > len(first) else []
        told = [*_told_together({key: aside[key].as_error() for key in first}), *more]
        worst = type(worst)(
            f"{len(aside):,} partitions were put aside, the others were moved: {'; '.join(told)}",
            where=where,
            next_step="The next run tries them again; `waybill plan` lists them all",
        )
    worst.aside = dict(aside)
    return worst


def _told_together(errors: Mapping[str, WaybillError]) -> Iterator[str]:
    """Of each what happened; of each step what to do, behind the last of those that it is for."""
    ordered = groupby(sorted(errors.items(), key=lambda one: _first_with(one[1].next_step, errors)), _next_step)
    for step, some in ordered:
        said = "; ".join(f"{key}: {error.what}" for key, error in some)
        yield f"{said} ({step})" if step else said


def _next_step(one: tuple[str, WaybillError]) -> str:
    return one[1].next_step


def _first_with(step: str, errors: Mapping[str, WaybillError]) -> int:
    return next(number for number, error in enumerate(errors.values()) if error.next_step == step)


def gravity(error: BaseException) -> tuple[int, int]:
    """What a person must see first: foreign errors, then what no retry mends, then what another holder explains."""
    if not isinstance(error, WaybillError):
        return 3, 0
    if isinstance(error, Retriable):
        return 0, error.exit_code
    return 1 if isinstance(error, LeaseHeld) else 2, error.exit_code


def _quarantined(failure: Failure) -> PartitionState:
    error = failure.as_error()
    return PartitionState("quarantined", str(error), failure.kind, error.exit_code)


def has_nothing(seen: Bounds) -> bool:
    return seen.end <= seen.begin and not seen.gaps and not seen.pushes
