"""Show and change the offsets that are read next.

A change takes the lease of the task that has the partition, as a run would: it waits for nobody who is alive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Literal

from connect_core import systems
from connect_core.config import revealed
from connect_core.config.faults import nearest
from connect_core.errors import ConfigError, Fault, Retriable
from connect_core.ledger import Connector, LastChange, Lease, Repeats, task_lease_id
from connect_core.planning import Assignment
from connect_core.replication.driver.beginnings import keep_first
from connect_core.replication.driver.leases import LeaseRequest, acquire
from connect_core.replication.driver.offset_checks import checked_position, floors_left, oldest_offset, require_readable
from connect_core.replication.driver.prepare import holder, times
from connect_core.sdk.records import Partition
from connect_core.sdk.source import PushSource, Source
from connect_core.sdk.values import LIVE, Floor, Json, Position
from connect_core.service.opened import AtWork, Opened, Say
from connect_core.service.streams import of_stream

__all__ = ["Agree", "LastChange", "Move", "Repeats", "committed", "history", "moved_together", "set_offset", "undo"]


class OffsetMoved(ConfigError):
    """An offset is another one now than the request says it was. The same request never holds again."""


@dataclass(frozen=True)
class Move:
    """A change of a position before it is made: offsets `before` and `after` it (None: the beginning), and what it
    `repeats`. `undone` is the change that it takes back. `unseen`: so many messages that the target has deleted may be
    of a range that is given up, and nobody has looked at them."""

    connector: str
    partition: str
    before: int | None
    after: int | None
    repeats: Repeats
    undone: LastChange | None = None
    unseen: int = 0


Agree = Callable[[Move], None]
"""Raises when nobody wants what the move repeats: then nothing is changed."""


def committed(opened: Opened, name: str, *, stream: str = LIVE) -> list[Json]:
    """The committed position of each partition."""
    connector = opened.ledger.connector(name)
    return [
        {
            "stream": offset.stream,
            "partition": offset.partition.key,
            "incarnation": offset.position.incarnation,
            "offset": offset.position.offset,
            "changed_at": offset.changed_at,
        }
        for offset in opened.ledger.offsets(connector.uid, of_stream(stream))
    ]


def history(opened: Opened, name: str, *, partition: str = "", stream: str = LIVE, last: int = 50) -> list[Json]:
    """The newest `last` moves of the committed positions, the newest first: settled ranges, and what people changed."""
    connector = opened.ledger.connector(name)
    only = Partition(partition) if partition else None
    steps = opened.ledger.offset_history(connector.uid, only, last, of_stream(stream))
    return [
        {
            "at": step.at,
            "kind": step.kind,
            "stream": step.stream,
            "partition": step.partition.key,
            "before": _plain(step.before),
            "after": _plain(step.after),
            "run": step.run_id,
            "range": step.range_id,
            "who": step.who,
            "why": step.why,
        }
        for step in reversed(steps)
    ]


def set_offset(
    opened: AtWork,
    name: str,
    partition: str,
    offset: int,
    *,
    why: str = "",
    abandon: bool = False,
    agree: Agree,
    say: Say,
) -> Json:
    """Moves the committed position of the live stream to where a record begins, within what the source has now. With
    `abandon` an open range is closed without knowing what was delivered of it."""
    connector = opened.ledger.connector(name)
    assignment = assignment_of(opened, connector)
    part = partition_of(assignment, partition)
    before = opened.ledger.positions(connector.uid, LIVE, [part])[part]
    wanted = _placed(opened, connector, part, before, offset)
    floors, unseen = _floors_left(opened, connector, part) if abandon else ([], 0)
    repeats = opened.ledger.repeats(connector.uid, LIVE, part, before, wanted)
    agree(Move(name, part.key, _offset(before), _offset(wanted), repeats, unseen=unseen))
    with _leases(opened, connector, assignment, [part], say) as leases:
        _require_unmoved(opened, connector, part, before)
        who = opened.settings.user
        opened.ledger.set_offset(
            leases, connector.uid, LIVE, part, wanted, who=who, why=why, abandon=abandon, floors=floors
        )
    return _moved(name, partition, before, wanted, repeats)


def set_offsets(
    opened: AtWork,
    name: str,
    wanted: Mapping[str, int | None],
    *,
    why: str,
    still: Callable[[Connector], None],
    say: Say,
    preview: bool = False,
    seen: Mapping[str, int | None] | None = None,
) -> Json:
    """Moves the committed positions of several partitions, all or none; None stands for the oldest record. `still` gets
    the connector when nobody else can work on these partitions any more, and raises where they may not be moved; `seen`
    are offsets before, as somebody has agreed to the move: raises as `require_seen` does. Where each was `before` and
    is `after` it; with `preview` nothing is changed, and it says what each `repeats`."""
    connector = opened.ledger.connector(name)
    assignment = assignment_of(opened, connector)
    parts = {partition_of(assignment, key): offset for key, offset in wanted.items()}
    before = opened.ledger.positions(connector.uid, LIVE, list(parts))
    require_seen(connector, before, seen)
    with ExitStack() as resources:
        source = systems.source(revealed(opened.resolved(connector).source), resources)
        after = {one: _checked(source, one, before[one], at, f"connector {name}") for one, at in parts.items()}
    told: Json = {
        "connector": name,
        "applied": not preview,
        "before": {one.key: _offset(before[one]) for one in parts},
        "after": {one.key: after[one].offset for one in parts},
        "incarnations": {one.key: [_incarnation(before[one]), after[one].incarnation] for one in parts},
    }
    if preview:
        repeats = {one: opened.ledger.repeats(connector.uid, LIVE, one, before[one], after[one]) for one in parts}
        return told | {"repeats": {one.key: vars(found) for one, found in repeats.items()}}
    moved_together(opened, connector, assignment, before, after, why=why, kind="set", still=still, say=say)
    return told


def moved_together(
    opened: AtWork,
    connector: Connector,
    assignment: Assignment,
    before: Mapping[Partition, Position | None],
    after: Mapping[Partition, Position],
    *,
    why: str,
    kind: Literal["import", "set"],
    still: Callable[[Connector], None],
    say: Say,
) -> None:
    """Under the leases of their tasks. Raises Retriable when one is not where it was `before` any more."""
    with _leases(opened, connector, assignment, list(after), say) as leases:
        still(opened.ledger.connector(connector.name))
        for part in after:
            _require_unmoved(opened, connector, part, before[part])
        opened.ledger.move_offsets(leases, connector.uid, LIVE, after, who=opened.settings.user, why=why, kind=kind)


def _checked(source: Source, partition: Partition, before: Position | None, offset: int | None, where: str) -> Position:
    at = oldest_offset(source, partition, before or Position(0, 0), where) if offset is None else offset
    return checked_position(source, partition, before, at, where)


def require_seen(
    connector: Connector, before: Mapping[Partition, Position | None], seen: Mapping[str, int | None] | None
) -> None:
    """Where somebody has `seen` offsets (None: nobody has), they are of each partition that is moved, and of no other:
    else ConfigError, for a key that names nothing guards nothing. Raises OffsetMoved where one is another now."""
    if seen is None:
        return
    moved = {part.key: _offset(at) for part, at in before.items()}
    faults = [
        *(f'names "{key}", which is not moved{nearest(key, moved)}' for key in sorted(seen.keys() - moved.keys())),
        *(f'leaves out "{key}", which is moved' for key in sorted(moved.keys() - seen.keys())),
    ]
    if faults:
        raise ConfigError(
            "`before` names each partition that is moved, and no other; nothing was changed",
            where=f"connector {connector.name}",
            next_step="Send `before` as a preview of the same request has told it",
            faults=tuple(Fault("before", fault) for fault in faults),
        )
    for key, at in moved.items():
        if seen[key] != at:
            raise OffsetMoved(
                f"The offset was moved since: it is {_shown(at)} now, and not {_shown(seen[key])}; nothing was changed",
                where=f"connector {connector.name}, partition {key}",
                next_step="Ask for a preview again, and name the offset that it tells as `before`",
            )


def undo(
    opened: AtWork,
    name: str,
    partition: str,
    *,
    agree: Agree,
    say: Say,
    seen: Mapping[str, int | None] | None = None,
) -> Json:
    """Takes back the last change that a person made to a partition's position. `seen` as in `set_offsets`."""
    connector = opened.ledger.connector(name)
    assignment = assignment_of(opened, connector)
    part = partition_of(assignment, partition)
    before, wanted, change = _undone(opened, connector, part)
    require_seen(connector, {part: before}, seen)
    repeats = opened.ledger.repeats(connector.uid, LIVE, part, before, wanted)
    agree(Move(name, part.key, _offset(before), _offset(wanted), repeats, undone=change))
    with _leases(opened, connector, assignment, [part], say) as leases:
        _require_unmoved(opened, connector, part, before)
        after = opened.ledger.undo_offset(
            leases, connector.uid, LIVE, part, who=opened.settings.user, session=_session(opened, connector, before)
        )
    return _moved(name, partition, before, after, repeats)


def undo_preview(opened: Opened, name: str, partition: str) -> Json:
    """What `undo` would do, and the change by hand that it would take back, as `undone`; nothing is changed."""
    connector = opened.ledger.connector(name)
    part = partition_of(assignment_of(opened, connector), partition)
    before, wanted, change = _undone(opened, connector, part)
    repeats = opened.ledger.repeats(connector.uid, LIVE, part, before, wanted)
    undone = {"who": change.who, "at": change.changed_at, "built_on": change.built_on, "newest_run": change.newest_run}
    return _moved(name, partition, before, wanted, repeats) | {"undone": undone}


def _undone(
    opened: Opened, connector: Connector, partition: Partition
) -> tuple[Position | None, Position | None, LastChange]:
    """Where the partition is, where it was before the last change by hand, and that change. Raises ConfigError where
    there was none, and where nothing can be read any more at the position before it."""
    before = opened.ledger.positions(connector.uid, LIVE, [partition])[partition]
    change = opened.ledger.last_change(connector.uid, LIVE, partition)
    if change is None:
        raise ConfigError(
            "There is no change of this offset to undo",
            where=f"connector {connector.name}, partition {partition.key}",
            next_step=f"See what has moved it: waybill offsets history {connector.name}",
        )
    if change.before and change.before != before:
        with ExitStack() as resources:
            source = systems.source(revealed(opened.resolved(connector).source), resources)
            require_readable(source, partition, change.before, f"connector {connector.name}")
    return before, change.before, change


def _session(opened: Opened, connector: Connector, before: Position | None) -> Json | None:
    """What is known of the session of a source that pushes; None for any other. It is as true at any other number."""
    with ExitStack() as resources:
        source = systems.source(revealed(opened.resolved(connector).source), resources)
        return before.evidence if before and isinstance(source, PushSource) else None


def assignment_of(opened: Opened, connector: Connector) -> Assignment:
    """Who has which partition. A connector that never ran is asked for its partitions now; where a run was faster, its
    partitions are the ones, for it may have split the same files elsewhere."""
    assignment = opened.ledger.assignment(connector.uid)
    if assignment.version:
        return assignment
    resolved = opened.resolved(connector)
    with ExitStack() as resources:
        source = systems.source(revealed(resolved.source), resources)
        partitions = source.partitions([])
        made = opened.ledger.assign_beside(connector.uid, partitions, resolved.tasks, resolved.assignment, ())
        if made:
            keep_first(opened.ledger, connector, resolved, source, partitions)
    return made or opened.ledger.assignment(connector.uid)


def partition_of(assignment: Assignment, key: str) -> Partition:
    known = {partition.key: partition for partition in assignment.shares}
    if key not in known:
        raise ConfigError(f'There is no partition "{key}"' + nearest(key, known))
    return known[key]


def _placed(
    opened: Opened, connector: Connector, partition: Partition, before: Position | None, offset: int
) -> Position:
    """Raises ConfigError when reading cannot go on there."""
    with ExitStack() as resources:
        source = systems.source(revealed(opened.resolved(connector).source), resources)
        return checked_position(source, partition, before, offset, f"connector {connector.name}")


def _floors_left(opened: Opened, connector: Connector, partition: Partition) -> tuple[list[Floor], int]:
    """Where the target of a range that is given up is looked through from then on; and how many messages it has deleted
    before that, which nobody has looked at."""
    with ExitStack() as resources:
        if not opened.ledger.open_ranges(connector.uid, LIVE, [partition]):
            return [], 0
        sink = systems.sink(revealed(opened.resolved(connector).sink), resources)
        known = {
            one.target: one for one in opened.ledger.floors(connector.uid, LIVE) if one.partition_id == partition.id
        }
        left = floors_left(sink, known.values())
        return left, sum(one.position - known[one.target].position for one in left)


@contextmanager
def _leases(
    opened: AtWork, connector: Connector, assignment: Assignment, partitions: Sequence[Partition], say: Say
) -> Iterator[list[Lease]]:
    """Of the tasks that have these partitions."""
    uid, version = connector.uid, assignment.version
    tasks = sorted({assignment.shares[one].task for one in partitions})
    held = acquire(
        opened.ledger,
        [LeaseRequest(task_lease_id(uid, LIVE, version, task), uid, LIVE, version) for task in tasks],
        holder=holder(),
        home=opened.home,
        times=times(opened.settings),
        say=say,
    )
    try:
        yield held.leases
    finally:
        held.release()


def _require_unmoved(opened: Opened, connector: Connector, partition: Partition, before: Position | None) -> None:
    """Raises Retriable when the position is not the one any more that was agreed on. Asked under the lease."""
    now = opened.ledger.positions(connector.uid, LIVE, [partition])[partition]
    if now != before:
        raise Retriable(
            "A run or another change moved the offset meanwhile:"
            f" it is {_shown(_offset(now))} now, and was {_shown(_offset(before))}; nothing was changed",
            where=f"connector {connector.name}, partition {partition.key}",
            next_step=f"Look where it is now (waybill offsets show {connector.name}), and ask for the change again",
        )


def _moved(name: str, partition: str, before: Position | None, after: Position | None, repeats: Repeats) -> Json:
    told = {"connector": name, "partition": partition, "before": _plain(before), "after": _plain(after)}
    return told | {"repeats": vars(repeats)}


def _plain(position: Position | None) -> Json | None:
    return {"incarnation": position.incarnation, "offset": position.offset} if position else None


def _incarnation(position: Position | None) -> int | None:
    return position.incarnation if position else None


def _offset(position: Position | None) -> int | None:
    return position.offset if position else None


def _shown(offset: int | None) -> str:
    return "at the beginning" if offset is None else f"{offset:,}"
