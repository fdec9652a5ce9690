"""What there is to read, from where each partition of a task stands. Works on a `task_context`.

What a source has chosen or seen there is kept in the ledger before anything is planned on it. Partitions that cannot be
read, or of which records are lost, are put aside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from connect_core.errors import Failure
from connect_core.planning import Goal
from connect_core.planning.backfill_plan import BackfillPlan, within
from connect_core.replication.driver.errors import records_gone
from connect_core.replication.driver.task_context import TaskContext
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Bounds, Gap, Position

_LOOKS = 10
"""So many looks in a row may pass what holds nothing before what is not found counts as lost."""


def bounds(task: TaskContext) -> dict[Partition, Bounds]:
    """What there is from each position on. A partition of which records are lost is put aside, unless somebody has
    accepted that; so is one that cannot be read."""
    plan = task.context.backfill_plan
    seen = _bounds_on(task, plan) if plan else _bounds_from(task, task.asked())
    meant = {partition: one for partition, one in seen.items() if task.lifecycle.reads(partition)}
    bounds = task.lifecycle.readable(meant, _failures(task, meant))
    task.end_offsets.saw(bounds)
    return bounds


def _bounds_from(task: TaskContext, asked: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
    """What the source has chosen is kept at once: where an unread partition begins, or what was seen where it
    stands."""
    task.beginnings.look(asked)
    seen = _with_left_out(task, asked, task.source.available_offsets(asked))
    first = {
        one: _place(there)
        for one, there in seen.items()
        if there.chosen and not there.failure and _is_news(there, asked[one])
    }
    if first:
        task.require_no_secret("source", "a position", first.values())
        if not task.beginnings.keep(first):
            return _bounds_from(task, task.asked())
        known = {**asked, **first}
        task.beginnings.look(known)
        seen = _with_left_out(task, asked, task.source.available_offsets(known))
        _keep_what_was_made(task, first, seen)
    return {one: _with_doubt(task, there) if asked[one] is None else there for one, there in seen.items()}


def _keep_what_was_made(
    task: TaskContext, first: Mapping[Partition, Position], seen: Mapping[Partition, Bounds]
) -> None:
    """A source may make what it reads from, such as a slot, once the ledger knows that it begins. By what that is
    recognised is kept before anything else: a ledger that comes back without it could not tell that it was used."""
    made = {
        one: _place(seen[one])
        for one in first
        if seen[one].chosen and not (seen[one].failure or seen[one].gaps) and _place(seen[one]) != first[one]
    }
    if made:
        task.require_no_secret("source", "a position", made.values())
        task.beginnings.keep(made)


def _with_left_out(
    task: TaskContext, asked: Mapping[Partition, Position | None], seen: Mapping[Partition, Bounds]
) -> dict[Partition, Bounds]:
    """With a gap where a partition counts as never read since an offset was undone, and begins further on than it stood
    then: `start` may be `latest`. A place that is kept at once would hide that."""
    unread = {one for one, at in asked.items() if at is None}
    stood = task.ledger.forgotten(task.uid, task.stream) if unread else {}
    begun_behind = [one for one in unread & stood.keys() if stood[one].offset < seen[one].begin]
    told = {one: _left_out(stood[one].offset, seen[one]) for one in begun_behind if not seen[one].failure}
    return {**seen, **told}


def _left_out(stood: int, there: Bounds) -> Bounds:
    reason = "left out: the offset was undone to where nothing had been read, and reading began where the document says"
    gap = Gap(there.incarnation, stood, there.begin, reason, warns=True)
    return replace(there, gaps=(gap, *there.gaps), chosen=False)


def _with_doubt(task: TaskContext, there: Bounds) -> Bounds:
    """Of a partition that is not known: a ledger that was restored may have forgotten it. What is not there any
    more may then have been lost, or delivered and forgotten."""
    if there.failure or there.pushes or not there.begin or not task.was_restored():
        return there
    reason = (
        "the ledger was restored from a backup that does not know this partition: it is unknown whether the"
        f" records before {there.begin:,} were delivered"
    )
    return replace(there, gaps=(Gap(there.incarnation, 0, there.begin, reason, warns=True), *there.gaps))


def _failures(task: TaskContext, bounds: Mapping[Partition, Bounds]) -> dict[Partition, Failure]:
    found = {}
    for partition, seen in bounds.items():
        if seen.failure:
            found[partition] = seen.failure
        elif any(gap.loses for gap in seen.gaps) and not task.gaps_accepted():
            gone = records_gone(task.command(), task.where(), partition, seen.gaps, seen.begin)
            found[partition] = Failure.of(gone)
    return found


def _bounds_on(task: TaskContext, plan: BackfillPlan) -> dict[Partition, Bounds]:
    """What is left of the parts that are moved next. Where one is done, the position moves to the one behind it."""
    positions = task.positions()
    if jumps := plan.jumps(positions):
        who, why = f"run {task.summary.run_id}", "the next part"
        task.ledger.move_offsets(task.held.leases, task.uid, task.stream, jumps, who=who, why=why)
        positions |= jumps
    parts = plan.ahead(positions)
    bounds = _looked_at(task, {partition: positions[partition] for partition in parts})
    left = {partition: within(part, bounds[partition]) for partition, part in parts.items()}
    task.end_offsets.aims_at({one: Goal(left[one].incarnation, part.end) for one, part in parts.items()})
    return left


def _looked_at(task: TaskContext, asked: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
    """What there is of parts that were there when they were chosen: as long as a look only passes what holds nothing,
    the next one continues there."""
    seen = task.source.available_offsets(asked)
    for _ in range(_LOOKS):
        passed = {one: _place(there) for one, there in seen.items() if there.chosen and there.end == there.begin}
        if not passed:
            break
        task.held.renew_in_time()
        seen |= task.source.available_offsets(passed)
    return seen


def _place(seen: Bounds) -> Position:
    return Position(seen.incarnation, seen.begin, seen.evidence)


def _is_news(there: Bounds, at: Position | None) -> bool:
    """Whether it says more of where the partition stands, or where it begins: for the first time, or anew behind what
    was read to its end. Behind a loss it begins only when that is settled."""
    if at is None or (at.incarnation, at.offset) == (there.incarnation, there.begin):
        return True
    return at.incarnation < there.incarnation and not there.gaps
