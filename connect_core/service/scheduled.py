"""What a scheduler has done: one task of a run, and the sum of the receipts of all its tasks and their attempts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby

from connect_core import clock
from connect_core.config import EngineOptions, Settings, engine_for, load_document
from connect_core.config.schedule import Schedule
from connect_core.engine import engine
from connect_core.errors import ConfigError, DataError
from connect_core.ledger import Backfill, Connector, Ledger, Run, SettledRange
from connect_core.orchestration import names
from connect_core.replication.backfill.request import Moments, Request, moments_of_tick, stream_of
from connect_core.replication.backfill.run import backfill_context, gets_nowhere
from connect_core.replication.backfill.start import begun
from connect_core.replication.driver.attempts import recorded
from connect_core.replication.driver.backfill_task import is_done
from connect_core.replication.driver.context import RunContext, RunListener
from connect_core.replication.driver.prepare import run_context, working
from connect_core.replication.driver.run import RunSummary, keeping_what_is_there, run_task
from connect_core.sdk.values import LIVE, Json
from connect_core.service.run_report import lines, reported, total
from connect_core.systems import SYSTEMS

__all__ = [
    "Moved",
    "Request",
    "TaskAttempt",
    "engine_of",
    "is_empty",
    "lost_attempts",
    "needed_by_systems",
    "reconcile",
    "refuse",
    "replicate",
    "since_the_tick_before",
    "stream_for",
    "what_it_moves",
]


@dataclass(frozen=True)
class TaskAttempt:
    """One attempt of one task of an Airflow run. `of` is the same for all attempts of all tasks of that run. What is
    asked for is a backfill with its `request`, the backfill of a `tick` of the schedule, or else the live stream."""

    connector: str
    task: int
    of: str
    accept_gaps: bool = False
    request: Request | None = None
    tick: datetime | None = None


@dataclass(frozen=True)
class Moved:
    """What an attempt came to. `receipts` of its own; `finished` is False when the task's own part of a backfill is not
    done: it was told to pause, or its partitions were shared out anew; `empty` when there is nothing to reconcile."""

    receipts: int
    finished: bool = True
    empty: bool = False


def replicate(
    attempt: TaskAttempt, remote: Callable[[], str], halted: Callable[[], str], listener: RunListener
) -> Moved | None:
    """Runs the task; None when there is nothing for it to do: partitions are shared by fewer tasks, or nothing is there
    that the backfill could move. `remote` gives the engine's address when one is needed; `halted` says why to end at
    the next range boundary."""
    SYSTEMS.reload()  # Airflow forks this process from one that may have loaded packages long ago
    with ExitStack() as stack:
        ledger, settings, home = stack.enter_context(working())
        connector = ledger.connector(attempt.connector)
        if attempt.request is None and attempt.tick is None:
            stack.enter_context(recorded(ledger, connector.uid, LIVE, task=attempt.task, attempt_of=attempt.of))
        for line in lost_attempts(ledger, connector, attempt):
            listener.log(line)
        of, accept_gaps = attempt.of, attempt.accept_gaps
        nobody = engine("inline")  # a context has one; nothing is executed yet
        live = run_context(ledger, settings, home, connector, nobody, listener, attempt_of=of, accept_gaps=accept_gaps)
        kind = engine_for(connector.document, settings, home).kind
        with keeping_what_is_there(live):
            found = engine(kind, remote=remote() if kind == "spark" else None, home=home)
        live = replace(live, engine=found, halted=halted)
        request = _request(attempt, connector)
        context = _backfill(live, settings, request) if request else live
        started = clock.monotonic()
        summary = run_task(context, attempt.task) if context else None
        if context is None or summary is None:
            return None
        if summary.receipts:
            for line in lines(reported(RunSummary(connector.name, (summary,)), clock.monotonic() - started)):
                listener.log(line.strip())
        finished = context.stream == LIVE or is_done(context, attempt.task)
        if not (finished or summary.receipts or halted()):
            raise gets_nowhere(connector.name, context.stream)  # else Airflow starts the task again at once, for ever
        empty = not summary.receipts and _is_empty(ledger, connector, attempt)
        return Moved(len(summary.receipts), finished, empty)


def refuse(connector: str, attempt_of: str, error: str) -> None:
    """Of a connector whose document cannot be used: raises ConfigError, which is kept among its runs."""
    with working() as (ledger, _, _), recorded(ledger, ledger.connector(connector).uid, LIVE, attempt_of=attempt_of):
        raise ConfigError(error, next_step="Correct the document and `waybill apply` it")


def engine_of(connector: str) -> EngineOptions:
    """What the connector's document asks for, else the settings."""
    with working() as (ledger, settings, home):
        return engine_for(ledger.connector(connector).document, settings, home)


def stream_for(attempt: TaskAttempt, listener: RunListener) -> str | None:
    """The stream that a driver elsewhere is to work on: a backfill is begun here. None when it has nothing to move."""
    with working() as (ledger, settings, home):
        connector = ledger.connector(attempt.connector)
        request = _request(attempt, connector)
        if request is None:
            return LIVE
        live = run_context(ledger, settings, home, connector, engine("inline"), listener)
        stored = begun(live, settings, request, who=settings.user)
        return stored.stream if stored else None


def _backfill(live: RunContext, settings: Settings, request: Request) -> RunContext | None:
    stored = begun(live, settings, request, who=settings.user)
    if stored is None:
        return None
    live.listener.log(what_it_moves(live.connector.name, stored))
    return backfill_context(live, stored, settings)


def what_it_moves(connector: str, stored: Backfill) -> str:
    """With its stream, by which the commands know it: the form may have left that to us."""
    length = sum(part.end - part.begin for part in stored.parts)
    partitions = len({part.partition for part in stored.parts})
    return (
        f"{length:,} positions in {partitions:,} partition{'' if partitions == 1 else 's'}:"
        f" waybill backfills show {connector} {stored.stream}"
    )


def _request(attempt: TaskAttempt, connector: Connector) -> Request | None:
    if attempt.tick is None:
        return attempt.request
    schedule = load_document(connector.document, f"connector {connector.name}").schedule
    begin, end = since_the_tick_before(schedule, attempt.tick)
    return Request(begin=begin.isoformat(), end=end.isoformat(), id=_tick_id(attempt.tick))


def _tick_id(tick: datetime) -> str:
    return f"{tick:%Y%m%dT%H%M%SZ}"


def since_the_tick_before(schedule: Schedule, tick: datetime) -> Moments:
    """What a tick has to move when Airflow catches it up: [the tick before, tick)."""
    if schedule.every is not None:
        return moments_of_tick(schedule.every, tick)
    if schedule.cron is None:
        raise ConfigError(
            "Only connectors with a schedule of every or cron have ticks to catch up",
            next_step=f"Use the DAG {names.BACKFILL_DAG}<connector>, or waybill backfill",
        )
    from croniter import croniter

    before: datetime = croniter(schedule.cron, tick).get_prev(datetime)
    return Moments(before, tick)


def lost_attempts(ledger: Ledger, connector: Connector, attempt: TaskAttempt) -> Iterator[str]:
    """What became of the earlier attempts of this task in the same Airflow run, a sentence each."""
    for run in ledger.runs_of(connector.uid, attempt.of):
        if run.task == attempt.task:
            yield f"attempt {run.id}, begun at {run.started_at:%H:%M:%S}, {_end_of(run)}"


def _end_of(run: Run) -> str:
    if run.state == "done":
        return "was done"
    if run.failure is None:
        return "was lost: its process was killed, or is being replaced"
    where = f" [{run.failure.where}]" if run.failure.where else ""
    return f"failed: {run.failure.kind}: {run.failure.what}{where}"


def reconcile(ledger: Ledger, connector: Connector, attempt: TaskAttempt) -> Json:
    """The sum of the receipts of an Airflow run, whatever task of it the attempt is of. Raises DataError when an
    identity does not hold in one of them, when two that should adjoin do not, or when its backfill is not done though
    its tasks are."""
    if left := _left(ledger, connector, attempt):
        raise DataError(
            f"{left.stream} is {left.state}, not done, though every task of this run is",
            where=f"connector {connector.name}",
            next_step="Start another one for the rest, with another --id"
            if left.state == "cancelled"
            else f"Move the rest: waybill backfills resume {connector.name} {left.stream}; then clear this task",
        )
    settled = ledger.ranges_of_run(connector.uid, attempt.of)
    faults = [*_identity_faults(settled), *_seams(settled, _begins(ledger, connector, settled))]
    if faults:
        raise DataError(
            f"The receipts of this run do not add up: {'; '.join(faults[:5])}",
            where=f"connector {connector.name}",
            next_step=f"Check them: waybill receipts {connector.name}. Delivered records stay; nothing continues by"
            " itself from here",
        )
    return {
        "connector": connector.name,
        "runs": [run.id for run in ledger.runs_of(connector.uid, attempt.of)],
        **total([one.receipt for one in settled]),
    }


def is_empty(attempt: TaskAttempt) -> bool:
    """Whether there is nothing to reconcile: no attempt of the Airflow run has settled anything, and nothing is left of
    the backfill that it is of, if any."""
    with working() as (ledger, _, _):
        return _is_empty(ledger, ledger.connector(attempt.connector), attempt)


def _is_empty(ledger: Ledger, connector: Connector, attempt: TaskAttempt) -> bool:
    return _left(ledger, connector, attempt) is None and not ledger.ranges_of_run(connector.uid, attempt.of)


def _left(ledger: Ledger, connector: Connector, attempt: TaskAttempt) -> Backfill | None:
    """The backfill that is asked for, when it is not done: the DAG may have fewer tasks than the partitions are shared
    by, and a task that has none of them ends well."""
    asked = Request(id=_tick_id(attempt.tick)) if attempt.tick else attempt.request
    stored = ledger.backfill(connector.uid, stream_of(asked, "")) if asked else None
    return stored if stored and stored.state != "done" else None


def _identity_faults(settled: Sequence[SettledRange]) -> Iterator[str]:
    for one in settled:
        for fault in one.receipt.identity_faults():
            yield f"{one.partition.key} at {one.receipt.begin}: {fault}"


def _begins(ledger: Ledger, connector: Connector, settled: Sequence[SettledRange]) -> set[tuple[str, str, int, int]]:
    """Where a part of a backfill begins: it need not go on from the one before."""
    streams = {one.stream for one in settled} - {LIVE}
    backfills = (ledger.backfill(connector.uid, stream) for stream in streams)
    return {
        (stored.stream, part.partition.key, part.incarnation, part.begin)
        for stored in backfills
        if stored is not None
        for part in stored.parts
    }


def _seams(settled: Sequence[SettledRange], begins: Collection[tuple[str, str, int, int]]) -> Iterator[str]:
    """Places where a receipt does not begin where the one before it in its partition ended, and neither a gap nor one
    of `begins` says why (delivery rule 13). Within one attempt: between two of them other runs may have moved
    something, when a person clears a task of an older run; that what is settled goes on from what was is asked of each
    receipt then."""

    def lineage(one: SettledRange) -> tuple[str, str, int, str]:
        return (one.stream, one.partition.key, one.incarnation, one.run_id)

    for (_, partition, _, _), ranges in groupby(
        sorted(settled, key=lambda one: (*lineage(one), one.receipt.begin, one.receipt.end)), key=lineage
    ):
        end = None
        for one in ranges:
            told = bool(one.receipt.gaps) or (*lineage(one)[:3], one.receipt.begin) in begins
            if end is not None and one.receipt.begin != end and not told:
                yield f"{partition}: a receipt ends at {end}, the next begins at {one.receipt.begin}"
            end = one.receipt.end


def needed_by_systems() -> Iterator[str]:
    """Names of modules that a run loads, between whatever systems: for a scheduler that forks its tasks."""
    return (name for plugin in SYSTEMS.values() for name in plugin.preload)
