"""What earlier attempts left of a task's ranges: looked for in the target, settled from there where the source has lost
it, and finished with the pins it had (delivery rules 7, 8, 9, 13 and 16).

A part of a run's driver. `search` and `without_lost` are also for ranges that are planned anew where records may be
ahead in the target.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from connect_core.config import with_policies
from connect_core.config.units import show_count
from connect_core.errors import Failure, PartitionUnreachable, PipelineChanged, Retriable, Unreachable
from connect_core.ledger import FloorsBeside, target_lease_id
from connect_core.observe import Step
from connect_core.pipeline.digest import pipeline_digest
from connect_core.replication.driver.empty_receipt import empty_receipt
from connect_core.replication.driver.errors import bytes_unplaced, records_gone
from connect_core.replication.driver.ledger_batches import in_batches
from connect_core.replication.driver.lost_ranges import LostRange, closed_from_target, ends, lost_ranges
from connect_core.replication.driver.task_context import TaskContext
from connect_core.sdk.records import Partition
from connect_core.sdk.sink import Scan
from connect_core.sdk.source import PushSource, Source
from connect_core.sdk.values import Bounds, OpenRange, Pins, Position
from connect_core.version import code_version
from connect_core.work import Outcome, ScanTask

if TYPE_CHECKING:
    from connect_core.sdk.scan import ScanResult

_RANGES_TOLD = 5
"""Of so many that were left open it is said one by one where they go on."""


def inherited(task: TaskContext) -> list[OpenRange]:
    """Ranges that an earlier attempt left open, looked for in the target, with the pins they had."""
    left = task.ledger.open_ranges(task.uid, task.stream, list(task.slots))
    if not left:
        return []
    held = {lease.id for lease in task.held.leases}
    if not {target_lease_id(key) for key in task.pinned_target_leases(left)} <= held:
        raise Retriable(
            "A range was planned while its lease was taken over",
            where=task.where(),
            next_step="The next attempt takes it over",
        )
    left = _with_their_pipelines(task, left)
    if not left:
        return []
    task.context.listener.log(
        f"an earlier attempt left {show_count(len(left), 'range')} open; checking the target for their records"
    )
    _tell_of_other_code(task, left)
    for some in in_batches([item.id for item in left], task.context.batch_ranges):
        task.ledger.adopt(task.held.leases, task.summary.run_id, some)
    task.end_offsets.took_over(item.range for item in left)
    left = _without_idle(task, left)
    if left and all(task.goes_where_now(item.range.pins) for item in left):
        task.targets = task.look_at_targets()
        left = task.lifecycle.going_on(left)
    return without_lost(task, search(task, left)) if left else []


def _tell_of_other_code(task: TaskContext, items: Sequence[OpenRange]) -> None:
    """What a range becomes is the same (`_with_their_pipelines`); by which versions it was begun and finished a person
    shall find."""
    others = {(item.range.pins.code, task.code_of(item.range.pins)) for item in items}
    for before, now in sorted((before, now) for before, now in others if before != now):
        task.context.listener.log(f"it was planned by {before}, and is finished by {now}")


def _without_idle(task: TaskContext, items: Sequence[OpenRange]) -> list[OpenRange]:
    """Takes back the live ranges whose source still ends where they begin: nothing of them was written. A target may
    have forgotten since what stood where they began, so that nobody could say what is there of them."""
    live = [item for item in items if item.range.live]
    if not live or isinstance(task.source, PushSource):
        return list(items)
    begins = {one.partition: Position(one.incarnation, one.begin, one.evidence) for one in (i.range for i in live)}
    with task.summary.timed("bounds"):
        bounds = _bounds(task, live, begins)
    idle = {item.id for item in live if _is_idle(item, bounds[item.range.partition])}
    task.take_back(sorted(idle))
    return [item for item in items if item.id not in idle]


def _is_idle(item: OpenRange, seen: Bounds) -> bool:
    as_it_was = not seen.failure and not seen.gaps and seen.incarnation == item.range.incarnation
    return as_it_was and seen.begin == seen.end == item.range.begin


def without_lost(task: TaskContext, items: Sequence[OpenRange]) -> list[OpenRange]:
    """Settles from the target what the source has lost of inherited ranges; returns the others. One that pushes has
    lost whatever it was told to forget: all that an attempt left of its ranges is settled so."""
    if isinstance(task.source, PushSource):
        writes = {*task.sink.target_leases(task.task)}
        left = {item.id for item in items if not task.pinned_target_leases([item]) <= writes}
        task.settle(items, closed_from_target(task.source, items, left))
        return []
    begins = {one.partition: Position(one.incarnation, one.begin, one.evidence) for one in (i.range for i in items)}
    with task.summary.timed("bounds"):
        bounds = _bounds(task, items, begins)
    task.lifecycle.put_aside({one: seen.failure for one, seen in bounds.items() if seen.failure and one in begins})
    items = task.lifecycle.going_on(items)
    items = _without_moved(task, items, bounds)
    task.lifecycle.put_aside(_not_accepted(task, lost_ranges(items, bounds)))
    items = task.lifecycle.going_on(items)
    lost = lost_ranges(items, bounds)
    if lost:
        task.context.listener.log(f"the source has lost records of {show_count(len(lost), 'range')}: settling the rest")
    task.settle(items, [Outcome(one.item.id, one.receipt()) for one in lost])
    settled = {one.item.id for one in lost}
    return _with_ends(task, [item for item in items if item.id not in settled], bounds)


def _without_moved(
    task: TaskContext, items: Sequence[OpenRange], bounds: Mapping[Partition, Bounds]
) -> list[OpenRange]:
    """Closes at their begins the ranges that are planned anew by the offsets of another log. Of several of a partition
    nobody has asked where each one begins there."""
    counted = Counter(item.range.partition for item in items)
    moved = [one for one in lost_ranges(items, bounds) if one.is_whole_elsewhere()]
    closed = {one.item.id: one.item for one in moved if counted[one.item.range.partition] == 1}
    task.settle(list(closed.values()), [Outcome(one, empty_receipt(item)) for one, item in closed.items()])
    for item in closed.values():
        key = item.range.partition.key
        task.context.listener.log(
            f"{key}: another server has all that was begun, and the target nothing: it is read there"
        )
    return [item for item in items if item.id not in closed]


def _bounds(
    task: TaskContext, items: Sequence[OpenRange], begins: dict[Partition, Position]
) -> dict[Partition, Bounds]:
    """Of everything, and of the ranges `items` where they are read: what was planned elsewhere is looked at there."""
    elsewhere: dict[Partition, Bounds] = {}
    for item in items:
        source, partition = task.source_of(item.range.pins), item.range.partition
        if source is not task.source:
            elsewhere[partition] = _bounds_elsewhere(source, partition, begins[partition])
    positions = {**task.asked(), **begins}
    here = {one: at for one, at in positions.items() if one not in elsewhere}
    return task.source.available_offsets(here) | elsewhere


def _bounds_elsewhere(source: Source, partition: Partition, begin: Position) -> Bounds:
    """Where this is read nobody may answer: that concerns what was planned there, not what is read now."""
    try:
        return source.available_offsets({partition: begin})[partition]
    except Unreachable as error:
        return Bounds.unread(begin, Failure.of(PartitionUnreachable.of(error)))


def _with_ends(task: TaskContext, items: Sequence[OpenRange], bounds: Mapping[Partition, Bounds]) -> list[OpenRange]:
    """Live ranges that an earlier attempt left open get an end, so that they can be finished with their pins. Those
    into which nothing had come are taken back."""
    ended = ends(items, bounds)
    begun = {item.id: ended[item.id] for item in items if item.id in ended and ended[item.id] > item.range.begin}
    if begun:
        for some in in_batches(sorted(begun), task.context.batch_ranges):
            task.ledger.bound(task.held.leases, {one: begun[one] for one in some})
    if idle := ended.keys() - begun.keys():
        task.take_back(sorted(idle))
    return [
        replace(item, range=replace(item.range, end=begun.get(item.id, item.range.end)))
        for item in items
        if item.id not in idle
    ]


def _not_accepted(task: TaskContext, lost: Sequence[LostRange]) -> dict[Partition, Failure]:
    """The partitions of which neither side has some records, unless that is accepted. Raises OffsetGone for bytes that
    nobody can place: those are a person's to decide on, for the next write of any partition sets them aside, and the
    source cannot give them again (delivery rule 16)."""
    found = {}
    for loss in lost:
        partition, gaps = loss.item.range.partition, loss.gaps()
        if loss.unplaced() and not task.context.accept_gaps:
            raise bytes_unplaced(task.command(), task.where(), loss)
        if gaps and not task.gaps_accepted():
            gone = records_gone(task.command(), task.where(), partition, gaps, loss.seen.begin)
            found[partition] = Failure.of(gone)
    return found


def rests(task: TaskContext) -> list[OpenRange]:
    """What is left of ranges that closed short while records of ours stand further on in their targets, opened
    again up to where they were planned to end. They are finished with what they pinned, and settled from the
    target where the source has lost them: a new revision, and a gap, start behind them (delivery rule 8)."""
    there = [one for one in task.ledger.rests(task.uid, task.stream) if one.partition in task.slots]
    floors = FloorsBeside(task.ledger.floors(task.uid, task.stream) if there else ())
    left = [one for one in there if one.partition not in task.lifecycle.aside and not task.more_targets.begins(one)]
    mine = [one for one in left if task.is_ahead(one.pins, floors.of(one.partition.id))]
    first = min(mine, key=lambda one: one.pins.revision, default=None)  # what is moved together was planned alike
    again = [replace(one, pins=task.pins(one.pins)) for one in mine if first and _alike(one.pins, first.pins)]
    if not again:
        return []
    task.targets = task.targets or task.look_at_targets()
    opened = task.opened(again, {})
    return without_lost(task, search(task, opened))


def search(task: TaskContext, ranges: Sequence[OpenRange]) -> list[OpenRange]:
    """Looks through the targets in slices, keeping what each saw, until every range is complete. Partitions of which
    nobody can say what is there are put aside, and left out."""
    items = {
        item.id: replace(item, found=replace(item.found, complete=False) if item.found else None)
        for item in task.scan_cache.with_known(ranges)
    }
    todo = list(items.values())
    with task.summary.timed("scan"):
        while todo:
            task.held.renew()
            pins = todo[0].range.pins
            sink = with_policies("sink", task.resolved_for(pins).sink, task.context.resolved.sink)
            together = tuple(item for item in todo if _alike(item.range.pins, pins))
            scan = Scan(task.held.attempt(task.uid), together, task.context.find_slice_s)
            told = task.context.engine.scan(ScanTask(sink, scan, code_version()))
            failed = {items[one].range.partition: found.failure for one, found in told.items() if found.failure}
            task.lifecycle.put_aside(failed)
            seen = {one: found for one, found in told.items() if not found.failure}
            got_on = [one for one, found in seen.items() if _got_on(items[one], found)]
            for some in in_batches(got_on, task.context.batch_ranges):
                task.ledger.record_found(task.held.leases, {one: seen[one] for one in some})
            items |= {range_id: replace(items[range_id], found=found) for range_id, found in seen.items()}
            items = {item.id: item for item in task.lifecycle.going_on(list(items.values()))}
            todo = [item for item in items.values() if item.found is None or not item.found.complete]
    task.reached(Step.FOUND)
    _tell_what_is_there(task, list(items.values()))
    return list(items.values())


def _got_on(item: OpenRange, found: ScanResult) -> bool:
    """Whether a slice has seen more of a range than the ledger knows."""
    return item.found is None or found.complete or found.scanned != item.found.scanned


def _tell_what_is_there(task: TaskContext, items: Sequence[OpenRange]) -> None:
    say = task.context.listener.log
    there = {item.id: item.found.there() if item.found else 0 for item in items}
    for item in items[:_RANGES_TOLD]:
        begin, key = item.range.begin, item.range.partition.key
        say(f"{key}: resuming at {begin:,}; {there[item.id]:,} records already in the target")
    for item in [one for one in items if one.range.pins.revision != task.revision][:_RANGES_TOLD]:
        key, begin, revision = item.range.partition.key, item.range.begin, item.range.pins.revision
        give_up = f"waybill offsets set {task.context.connector.name} {key} {begin} --abandon"
        say(f"{key}: revision {revision} of the document has planned this, and finishes it; should it fail: {give_up}")
    if len(items) > 1:
        say(f"{sum(there.values()):,} records of the {len(items):,} open ranges are already in the target")


def _with_their_pipelines(task: TaskContext, items: Sequence[OpenRange]) -> list[OpenRange]:
    """Those that this code finishes with what they pinned; the partitions of the others are put aside."""
    task.lifecycle.put_aside(
        {item.range.partition: Failure.of(_changed(task, item)) for item in items if not _is_unchanged(task, item)}
    )
    return task.lifecycle.going_on(items)


def _is_unchanged(task: TaskContext, item: OpenRange) -> bool:
    pins = item.range.pins
    return pipeline_digest(task.resolved_for(pins).pipeline) == pins.pipeline


def _changed(task: TaskContext, item: OpenRange) -> PipelineChanged:
    return PipelineChanged(
        f"An open range was planned by version {item.range.pins.code} whose pipeline gave other results",
        where=f"{task.where()}, partition {item.range.partition.key}, offset {item.range.begin}",
        next_step=f"Finish it with that version, or give it up: {item.range.give_up}",
    )


def _alike(one: Pins, other: Pins) -> bool:
    """Whether both go to the same place by the same document."""
    return (one.revision, one.connections) == (other.revision, other.connections)
