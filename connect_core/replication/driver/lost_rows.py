"""Rows that a target has lost: which partitions lack some, and from which offset on they come again (delivery rule 20).

A part of a run's driver. What a target says of itself (`sdk.sink.Remembering`) is compared with what the ledger has
settled. Where the connector was made anew with the offsets of another one, its own rows begin where it began; of what
the other one had brought its marker in the target speaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from connect_core.errors import Failure, RowsLost, WaybillError
from connect_core.replication.driver.offset_checks import record_at
from connect_core.replication.driver.task_view import TaskView
from connect_core.sdk.records import Partition
from connect_core.sdk.sink import Lacking, Remembering
from connect_core.sdk.values import LIVE, Floor, Position

_ELSEWHERE = (
    ", where this connector was placed by hand or by an import; of what was delivered before that by another one the"
    " target may lack more, and nothing here says how much"
)
_BEFORE = "; what it lacks of the file, queue or table that was read under this name before, no offset brings again"
_THERE = (
    "; there is what a deleted connector of this name brought, up to offset {offset}: set it to that, so that nothing"
    " comes twice, unless this connector was to deliver it again"
)


class _Place(NamedTuple):
    """Where what a target lacks begins, and what is to be said beside that."""

    offset: int
    beside: str = ""


def lacking(task: TaskView, sink: Remembering, floors: Sequence[Floor]) -> dict[Partition, Failure]:
    """The task's partitions of which the target lacks something, and what is to be done."""
    mine = {partition.id: partition for partition in task.slots}
    own = [floor for floor in floors if floor.partition_id in mine]
    found = sink.lacking(task.uid, task.stream, own) if own else {}
    return {mine[one]: _told(task, sink, mine[one], found[one]) for one in mine if one in found}


def unremembered(task: TaskView, floors: Sequence[Floor]) -> dict[Partition, Position]:
    """Partitions that a person has placed, and of which nothing was ever planned: a target knows nothing of them, so
    that it could lose what another connector had brought, and nobody would see it."""
    if task.stream != LIVE:
        return {}
    planned = {floor.partition_id for floor in floors}
    left = [partition for partition in task.slots if partition.id not in planned]
    return task.ledger.placed(task.uid, task.stream, left) if left else {}


def remember(task: TaskView, sink: Remembering, floors: Sequence[Floor]) -> list[Floor]:
    """Lets the target know of these. Its own first, then the ledger: killed in between, the next run does it again."""
    placed = unremembered(task, floors)
    if not placed:
        return []
    at = {partition.id: position for partition, position in placed.items()}
    kept = sink.remember(task.held.attempt(task.uid), task.stream, at)
    task.ledger.keep_floors(task.held.leases, task.uid, task.stream, kept)
    return kept


def _told(task: TaskView, sink: Remembering, partition: Partition, lacking: Lacking) -> Failure:
    failure = replace(lacking.failure, where=f"partition {partition.key}, stream {task.stream}")
    place = _place(task, sink, partition, lacking) if failure.kind == RowsLost.__name__ else None
    if place is None:
        return failure
    return replace(failure, what=f"{failure.what}: what it lacks begins at offset {place.offset}{place.beside}")


def _place(task: TaskView, sink: Remembering, partition: Partition, lacking: Lacking) -> _Place | None:
    at = task.ledger.positions(task.uid, task.stream, [partition])[partition]
    if at is None:
        return None
    kept = lacking.kept
    count = kept.rows if kept else 0
    begin = task.ledger.begin_behind(task.uid, task.stream, partition, lacking.target, count)
    if begin is None:
        begin = Position(kept.incarnation, kept.position) if kept else at
    own = _of_now(task, partition, begin, at)
    return own if kept else _with_former(task, sink, partition, own, at)


def _with_former(task: TaskView, sink: Remembering, partition: Partition, own: _Place, at: Position) -> _Place:
    """Without a marker of this connector the target may be one of before it was made. A former one of its name has left
    a marker there, which says how far that had come."""
    if partition not in task.ledger.placed(task.uid, task.stream, [partition]):
        return own
    name = task.context.connector.name
    for former in reversed(task.ledger.deleted_connectors([name])):
        if kept := sink.kept(former.uid, task.stream, [partition.id]).get(partition.id):
            place = _of_now(task, partition, Position(kept.incarnation, kept.position), at)
            if place.offset <= own.offset:
                return place
            # A backup from later than the one for which this connector was made; or a person wanted it to begin before.
            return own._replace(beside=own.beside + _THERE.format(offset=place.offset))
    return own._replace(beside=_ELSEWHERE)


def _of_now(task: TaskView, partition: Partition, begin: Position, at: Position) -> _Place:
    """Where a record begins of what is read now (`at`), at or behind that place."""
    if begin.incarnation == at.incarnation:
        offset, beside = begin.offset, ""
    else:
        offset, beside = 0, _BEFORE
    with suppress(WaybillError):  # `waybill offsets set` says the same when it is asked
        offset = record_at(task.source, partition, replace(at, offset=offset))
    return _Place(offset, beside)
