"""The next ranges: cut, pinned and committed as planned before anything is written; looked for where records may be
ahead. Works on a `task_context`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from connect_core.ledger import FloorsBeside
from connect_core.observe import Step
from connect_core.planning import RangeLimits, plan_ranges, something
from connect_core.replication.driver import available, recovery
from connect_core.replication.driver.errors import target_taken
from connect_core.replication.driver.task_context import TaskContext
from connect_core.sdk.records import Partition
from connect_core.sdk.sink import Expiring, Homing
from connect_core.sdk.source import PushSource
from connect_core.sdk.values import Floor, Gap, Json, OpenRange, Pins, Range


def next_ranges(task: TaskContext) -> list[OpenRange]:
    """The next ranges, from where reading goes on to the end that was seen when this run began. With a window those of
    all partitions, as long as one has to come so far: what comes to the others does not wait for it."""
    while True:
        with task.summary.timed("bounds"):
            bounds = {one: there for one, there in available.bounds(task).items() if not there.later}
        if not something(bounds):
            return []
        limits, pins = terms(task)
        wanted = plan_ranges(task.stream, bounds, task.slots, task.end_offsets.of, limits, pins)
        if wanted and task.context.window_s:
            wanted = plan_ranges(task.stream, bounds, task.slots, {}, limits, pins)
        opened = open_ranges(task, wanted)
        if opened or not task.beginnings.overtaken:
            return opened


def terms(task: TaskContext) -> tuple[RangeLimits, Callable[[Partition], Pins]]:
    """What all ranges planned now have in common, and what each of them pins."""
    targets = task.targets_now()
    pins = task.pins(Pins(task.revision, "", {}, "", task.context.resolved.connections))
    limits = RangeLimits(task.context.resolved.range_records, task.context.resolved.range_bytes)
    return limits, lambda partition: replace(pins, target=targets.pins_for(task.source.topic(partition), partition))


def open_ranges(task: TaskContext, ranges: Sequence[Range]) -> list[OpenRange]:
    """Committed as planned before anything is written; looked for where records may be ahead."""
    ranges = _with_a_target(task, ranges)
    if not ranges:
        return []
    task.reached(Step.BEFORE_PLANNED)
    with task.summary.timed("plan"):
        opened = _committed(task, ranges)
    ahead = [item for item in opened if task.is_ahead(item.range.pins, item.floors)]
    found = {item.id: item for item in recovery.search(task, ahead)} if ahead else {}
    if ahead and isinstance(task.source, PushSource):
        recovery.without_lost(task, list(found.values()))
        return [item for item in opened if item not in ahead]
    return _at_home(task, [found.get(item.id, item) for item in task.lifecycle.going_on(opened)])


def _at_home(task: TaskContext, items: list[OpenRange]) -> list[OpenRange]:
    """Those that go on where their partition was found to stand; the others are planned anew for that place."""
    if not isinstance(task.sink, Homing):
        return items
    homes = {item.id: home for item in items if item.found and (home := task.sink.home_found(item))}
    if not homes:
        return items
    task.take_back(sorted(homes))
    task.stand_at({item.range.partition.id: homes[item.id] for item in items if item.id in homes})
    _, pins_for = terms(task)
    again = [replace(item.range, pins=pins_for(item.range.partition)) for item in items if item.id in homes]
    return [*(item for item in items if item.id not in homes), *open_ranges(task, again)]


def _with_a_target(task: TaskContext, ranges: Sequence[Range]) -> Sequence[Range]:
    """Puts partitions aside whose place in the target is not there any more, or whose topic can have none."""
    if task.targets is None:
        return ranges
    why = {one.partition: task.targets.failure_of(task.source.topic(one.partition), one.partition) for one in ranges}
    failed = {one: failure for one, failure in why.items() if failure}
    task.lifecycle.put_aside(failed)
    return [one for one in ranges if one.partition not in task.lifecycle.aside]


def _committed(task: TaskContext, ranges: Sequence[Range]) -> list[OpenRange]:
    known = FloorsBeside(task.ledger.floors(task.uid, task.stream))
    floors: dict[Partition, tuple[Floor, ...]] = {}
    planned = []
    for wanted in ranges:
        mine = known.of(wanted.partition.id)
        restored = _may_have_forgotten(task, wanted.pins.target, mine)
        floors[wanted.partition] = task.sink.floors(wanted, mine, restored=restored)
        planned.append(_with_expired(task, wanted, floors[wanted.partition]) if restored else wanted)
        task.held.renew_in_time()
    if task.sink.target_leases(task.task):
        _check_alone(task, {floor.target for some in floors.values() for floor in some})
    return _with_what_comes_again(task, task.opened(planned, floors))


def _with_what_comes_again(task: TaskContext, items: list[OpenRange]) -> list[OpenRange]:
    """What a source that pushes gave to an attempt that died was not acknowledged where the sink cannot tell what it
    holds. It comes again in the next range, which nobody could tell from one that has nothing before it."""
    if not isinstance(task.source, PushSource) or task.sink.scan_tells_records:
        return items
    left = task.ledger.without_receipt(task.uid, task.stream, [item.range.partition for item in items])
    return [replace(item, comes_again=item.range.partition in left) for item in items]


def _with_expired(task: TaskContext, wanted: Range, floors: Sequence[Floor]) -> Range:
    """A ledger that was restored looks for what it has forgotten from the oldest message that a target has left.
    What was delivered before that, and has expired there, is delivered again, and nobody can count it."""
    if not isinstance(task.sink, Expiring):
        return wanted
    first = task.sink.within([floor._replace(position=0) for floor in floors if floor.ahead])
    expired = sorted(floor.target for floor in first if floor.position)
    if not expired:
        return wanted
    reason = (
        f"the ledger was restored from a backup, and the oldest messages of {expired[0]} are gone: what was"
        " delivered there since that backup, and is gone now, is delivered again"
    )
    told = Gap(wanted.incarnation, wanted.begin, wanted.begin, reason, warns=True)
    return replace(wanted, gaps=(*wanted.gaps, told))


def _may_have_forgotten(task: TaskContext, target: Json, floors: Sequence[Floor]) -> bool:
    """Whether there may be floors of a partition that a ledger which was restored does not know. When a range is
    settled its partition has all floors of its target, and those are not `ahead`. Those of another target say
    nothing: the document may have named this one before the ledger was restored. Where records name targets any may
    be forgotten."""
    if task.growing():
        return task.was_restored()
    here = [floor for floor in floors if task.sink.reaches(target, floor.target)]
    if here and not any(floor.ahead for floor in here):
        return False
    return task.was_restored()


def _check_alone(task: TaskContext, targets: set[str]) -> None:
    """Raises ConfigError when another connector or stream writes one of these targets, at other times than now:
    each would take what the other has settled there for unsettled bytes of its own."""
    others = task.ledger.other_writers(task.uid, task.stream, targets)
    if others:
        raise target_taken(others[0], f"{task.where()}, {others[0].target}")
