"""Beginning a backfill or a replay, or going on with one: the one way in for the command, a form and a schedule.

    stored = begun(context, settings, Request(begin="2h"), who="ann")
    run_connector(backfill_context(context, stored, settings))

Everything that a person should know first is said, or refused, before a backfill is stored.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime

from connect_core import clock, systems
from connect_core.config import Resolved, Settings, revealed, sink_changes
from connect_core.errors import ConfigError
from connect_core.ledger import Backfill, WritersSeen, new_run_id, replays_letters
from connect_core.replication.backfill.request import Request, check, moments, parse_option, stream_of
from connect_core.replication.backfill.run import backfill_resolved
from connect_core.replication.backfill.select import (
    PartitionBounds,
    Selection,
    bounds_of,
    by_moments,
    by_ranges,
    by_receipts,
    looked_at,
)
from connect_core.replication.backfill.targets import require_free, stored_beside
from connect_core.replication.driver.beginnings import keep_first
from connect_core.replication.driver.context import RunContext
from connect_core.sdk.records import Partition
from connect_core.sdk.source import Source
from connect_core.sdk.values import ERRORS_SINK, LIVE, Json


def begun(context: RunContext, settings: Settings, request: Request, *, who: str) -> Backfill | None:
    """What is stored now: of a stream that somebody has begun already, whatever that was. None when there is nothing to
    move. `context` is that of the live stream.

    Raises ConfigError for words that cannot be followed, or that are others than those it was begun with; OffsetGone
    when some of it is gone and that is not accepted.
    """
    check(request)
    ledger, connector, now = context.ledger, context.connector, clock.utc()
    stream = stream_of(request, new_run_id(now))
    if stored := ledger.backfill(connector.uid, stream):
        _require_same(request, stored)
        return stored
    if not request.says_what():
        raise ConfigError(
            f"There is no {stream} of connector {connector.name}",
            next_step=f"See `waybill backfills list {connector.name}`, or start one with --from or --range",
        )
    draft = _draft(context, settings, request, stream, who)
    resolved = backfill_resolved(context, draft, settings)
    require_apart(context, settings, resolved, draft)
    with ExitStack() as resources:
        source = systems.source(revealed(resolved.source), resources)
        known = ledger.partitions(connector.uid)
        listed = source.partitions(list(known))
        there = bounds_of(source, ledger.positions(connector.uid, LIVE, listed))
        chosen = _selected(context, source, there, request, now)
        selected = looked_at(source, chosen, request.accept_gaps, connector.name)
    if not _assign(context, listed, known):
        return begun(context, settings, request, who=who)
    _keep_first(context, listed)
    for notice in (*selected.notices, *_same_target(context, resolved)):
        context.listener.log(notice)
    if not selected.parts:
        return None
    whole = replace(draft, parts=selected.parts)

    def store(seen: WritersSeen) -> Backfill:
        require_apart(context, settings, resolved, draft)
        return ledger.begin_backfill(whole, seen)

    return stored_beside(ledger, store)


def _draft(context: RunContext, settings: Settings, request: Request, stream: str, who: str) -> Backfill:
    connector = context.connector
    given = dict(map(parse_option, request.sink))
    return Backfill(
        uid=connector.uid,
        stream=stream,
        kind=request.kind,
        revision=connector.revision,
        asked=request.asked() | ({"accept_gaps": True} if request.accept_gaps else {}),
        parts=(),
        sink=sink_changes(connector.document, given, stream, context.home, settings),
        who=who,
        why=request.why,
    )


def _selected(
    context: RunContext, source: Source, there: Sequence[PartitionBounds], request: Request, now: datetime
) -> Selection:
    ledger, connector = context.ledger, context.connector
    if request.run:
        settled = ledger.ranges_of_run(connector.uid, request.run)
        if any(one.stream == ERRORS_SINK for one in settled):
            raise ConfigError(
                f"Run {request.run} has sent dead letters to errors.sink",
                where=f"connector {connector.name}",
                next_step=f"Name the run that has read the records: waybill runs {connector.name} --stream live",
            )
        if any(replays_letters(one.stream) for one in settled):
            raise ConfigError(
                f"Run {request.run} has replayed dead letters",
                where=f"connector {connector.name}",
                next_step=f"Send them again: waybill dead-letters replay {connector.name} --run {request.run} --again",
            )
        if not settled:
            raise ConfigError(
                f"No run {request.run} of connector {connector.name} has settled anything",
                next_step=f"See `waybill runs {connector.name}`",
            )
        return by_receipts(there, settled)
    if request.ranges:
        return by_ranges(source, there, request.ranges)
    return by_moments(source, there, moments(request, now), now)


def _assign(context: RunContext, listed: Sequence[Partition], known: Collection[Partition]) -> bool:
    """Partitions that no live run has seen yet get their slots and tasks, as the live stream shares them out: all that
    the source `listed`, for of a file of which one part is known no other is listed again. False when others have been
    given since the source was told of those `known`: what it found may be theirs."""
    ledger, uid = context.ledger, context.connector.uid
    standing = ledger.assignment(uid)
    if standing.version:
        tasks, strategy = standing.tasks, standing.strategy
    else:
        tasks, strategy = context.resolved.tasks, context.resolved.assignment
    return ledger.assign_beside(uid, listed, tasks, strategy, known) is not None


def _keep_first(context: RunContext, listed: Sequence[Partition]) -> None:
    """Where the live stream begins, which may have read nothing yet."""
    with ExitStack() as resources:
        source = systems.source(revealed(context.resolved.source), resources)
        keep_first(context.ledger, context.connector, context.resolved, source, listed)


def _require_same(request: Request, stored: Backfill) -> None:
    """Words that say nothing go on with what is stored; others must be the same."""
    before = {name: value for name, value in stored.asked.items() if name != "accept_gaps"}
    now = request.asked()
    if now and now != before:
        raise ConfigError(
            f"{stored.stream} was started with {_shown(before)}, not with {_shown(now)}",
            next_step="Resume it with its --id alone, or start another one with another --id",
        )


def _shown(asked: Json) -> str:
    return ", ".join(f"{name} {value if isinstance(value, str) else ' '.join(value)}" for name, value in asked.items())


def require_apart(context: RunContext, settings: Settings, resolved: Resolved, draft: Backfill) -> None:
    """Raises ConfigError when the live stream, another connector, or a backfill that is not over, has what can have one
    writer only."""
    _require_apart_from_own(context, settings, resolved, draft.stream)
    require_free(context, draft, resolved, settings)


def _require_apart_from_own(context: RunContext, settings: Settings, resolved: Resolved, stream: str) -> None:
    ledger, connector = context.ledger, context.connector
    wanted = _alone(resolved)
    if not wanted:
        return
    others = {f"the live stream of {connector.name}": context.resolved}
    for other in ledger.backfills(connector.uid, only_unfinished=True):
        if other.stream != stream:
            others[f"{other.stream} of {connector.name}"] = backfill_resolved(context, other, settings)
    for name, there in others.items():
        if both := wanted & _alone(there):
            raise ConfigError(
                f"{name} writes to {', '.join(sorted(both))}, which can have one writer only",
                where=f"the sink of {stream}",
                next_step="Name another target with --sink, or none to write beside that of the live stream",
            )


def _alone(resolved: Resolved) -> set[str]:
    """What the tasks of this connector write alone."""
    sink = systems.sink(revealed(resolved.sink))
    return {name for task in range(resolved.tasks) for name in sink.target_leases(task)}


def _same_target(context: RunContext, resolved: Resolved) -> list[str]:
    if resolved.sink != context.resolved.sink:
        return []
    notice = "it writes to the target of the live stream: records that both move are"
    if systems.SYSTEMS[resolved.sink.system].takes_rows:
        return [f"{notice} written twice, on purpose; where rows are replaced by key, older records replace newer rows"]
    return [f"{notice} in the target twice, on purpose; their coordinates name the stream"]
