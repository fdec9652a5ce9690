"""One run of a connector, here and now: every task side by side, each under its own lease."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace

from connect_core import clock, systems
from connect_core.config import revealed
from connect_core.errors import ConfigError, LeaseHeld, Unreachable, WaybillError
from connect_core.observe import write_metrics
from connect_core.planning import Assignment
from connect_core.replication.driver.attempts import noted
from connect_core.replication.driver.backfill_task import require_resumable, run_backfill_task
from connect_core.replication.driver.beginnings import keep_first
from connect_core.replication.driver.consumer_groups import keep_in_step
from connect_core.replication.driver.context import RunContext, shares_of
from connect_core.replication.driver.errors_sink import ErrorsSinkSender
from connect_core.replication.driver.evolving import following
from connect_core.replication.driver.leases import end_older_versions
from connect_core.replication.driver.ledger_restore import recognise
from connect_core.replication.driver.lifecycle import gravity, put_aside_error, to_be_told
from connect_core.replication.driver.no_secrets import require_no_secret
from connect_core.replication.driver.summary import TaskSummary
from connect_core.replication.driver.task import TaskRun
from connect_core.replication.worker.letters import letters_source
from connect_core.sdk.records import Partition
from connect_core.sdk.values import LIVE
from connect_core.work import Receipt


@dataclass(frozen=True)
class RunSummary:
    """What the tasks of one run did, in order of task. `sent` are receipts of dead letters in the second target."""

    connector: str
    tasks: tuple[TaskSummary, ...]
    sent: tuple[Receipt, ...] = ()

    def receipts(self) -> list[Receipt]:
        return [receipt for task in self.tasks for receipt in task.receipts]

    def behind(self, former: RunSummary) -> RunSummary:
        """Both as one, of a run that went on under another revision."""
        before = {task.task: task for task in former.tasks}
        tasks = {task.task: task.behind(before[task.task]) if task.task in before else task for task in self.tasks}
        both = before | tasks
        return RunSummary(self.connector, tuple(both[task] for task in sorted(both)), former.sent + self.sent)


_DISK = {
    errno.ENOSPC: "Free space there; the next attempt continues",
    errno.EDQUOT: "Free space there, or raise the quota; the next attempt continues",
    errno.EROFS: "Mount it writable; the next attempt continues",
}
"""What a person does whose home cannot be written: no defect, so that it is tried again."""


@contextmanager
def _staying() -> Iterator[None]:
    """Code of a plug-in that calls sys.exit must not look like a run that ended well; nor a full disk like a defect."""
    try:
        yield
    except SystemExit as left:
        raise RuntimeError(f"sys.exit({left.code}) was called").with_traceback(left.__traceback__) from None
    except OSError as error:
        if error.errno not in _DISK:
            raise
        where = str(error.filename or "the folder of WAYBILL_HOME, or that of temporary files")
        told = f"A file of the home cannot be written: {error.strerror}"
        raise Unreachable(told, where=where, next_step=_DISK[error.errno]) from error


def run_connector(context: RunContext) -> RunSummary:
    """Moves what is there now, then ends. Raises the gravest error of a task after all tasks have ended. Goes on where
    runs have evolved its document meanwhile."""
    begun, summary = clock.monotonic(), _run_connector(context)
    while went_on := following(context, clock.monotonic() - begun):
        begun, context = clock.monotonic(), went_on
        summary = _run_connector(context).behind(summary)
    return summary


def _run_connector(context: RunContext) -> RunSummary:
    _require_running(context)
    sender = ErrorsSinkSender(context, _run_tasks)
    try:
        summaries = _run_tasks(context, sender)
    except Exception as error:
        _send_after(sender, context, error)
        raise
    if unsent := sender.send():
        raise unsent
    return RunSummary(context.connector.name, summaries, tuple(sender.receipts))


def _run_tasks(context: RunContext, sender: ErrorsSinkSender | None = None) -> tuple[TaskSummary, ...]:
    """All of them side by side. Raises the gravest error of a task after all have ended."""
    shared = _assigned(context)
    assignment = shared.assignment
    busy = [task for task in range(assignment.tasks) if _has_work(context, assignment, task)]
    with ThreadPoolExecutor(max_workers=assignment.tasks, thread_name_prefix="task") as pool:
        run = _run_task if len(busy) == 1 else _run_beside_others
        running = [pool.submit(run, context, shared, task) for task in busy]
        if sender:
            sender.send_beside(running)
    errors = [error for future in running if (error := future.exception())]
    if all(map(_only_put_aside, errors)):
        keep_in_step(context)
    if errors:
        raise _gravest(errors, f"connector {context.connector.name}")
    return tuple(future.result() for future in running)


def _send_after(sender: ErrorsSinkSender, context: RunContext, error: Exception) -> None:
    """Of a run that has failed. What stops this, too, is said; the error of the run is the news. Where another run is
    at work, that one sends."""
    if not isinstance(error, LeaseHeld) and (unsent := sender.send()):
        context.listener.log(f"dead letters could not be sent to errors.sink: {unsent}")


def _run_beside_others(context: RunContext, shared: _Shared, task: int) -> TaskSummary:
    """Says at once why it has failed: the others may stay for as long as a window lasts."""
    try:
        return _run_task(context, shared, task)
    except Exception as error:
        if not _only_put_aside(error):
            context.listener.log(f"task {task} has failed, others continue: {error}")
        raise


@contextmanager
def keeping_what_is_there(context: RunContext) -> Iterator[None]:
    """Around finding the engine. Where it is away the run has not begun, and keeps all the same where it would have: a
    log may be renamed before the next one."""
    try:
        yield
    except Exception:
        with suppress(WaybillError):  # what else is wrong is no news then
            _require_running(context)
            _assigned(context)
        raise


def run_task(context: RunContext, task: int) -> TaskSummary | None:
    """One task of a run whose other tasks have processes of their own. None when the partitions are shared by fewer
    tasks than that, or it has none of those that a backfill moves: there is nothing for it to do. Goes on as
    `run_connector` does."""
    begun, summary = clock.monotonic(), _run_this_task(context, task)
    while summary and (went_on := following(context, clock.monotonic() - begun)):
        begun, context = clock.monotonic(), went_on
        more = _run_this_task(context, task)
        summary = more.behind(summary) if more else summary
    return summary


def _run_this_task(context: RunContext, task: int) -> TaskSummary | None:
    _require_running(context)
    shared = _assigned(context)
    if not _has_work(context, shared.assignment, task):
        return None
    sender = ErrorsSinkSender(context, lambda sending: _run_one(sending, task))
    try:
        summary = _run_task(context, shared, task)
    except WaybillError as error:
        if task == 0 and _only_put_aside(error):
            keep_in_step(context)
        _send_after(sender, context, error)
        raise
    if task == 0:  # one for all: what the others settle after that is of the next run
        keep_in_step(context)
    if unsent := sender.send():
        raise unsent
    return summary


def _run_one(context: RunContext, task: int) -> tuple[TaskSummary, ...]:
    shared = _assigned(context)
    return (_run_task(context, shared, task),) if _has_work(context, shared.assignment, task) else ()


def _only_put_aside(error: BaseException) -> bool:
    """Whether everything was moved but the partitions that it tells of."""
    return isinstance(error, WaybillError) and bool(error.aside)


def _gravest(errors: Sequence[BaseException], where: str) -> BaseException:
    """Where all of them only tell of partitions: one that tells of all of these."""
    aside = {
        key: failure for error in errors if isinstance(error, WaybillError) for key, failure in error.aside.items()
    }
    if len(errors) > 1 and all(map(_only_put_aside, errors)):
        return noted(put_aside_error(aside, where))
    return max(errors, key=gravity)


def _has_work(context: RunContext, assignment: Assignment, task: int) -> bool:
    """A live task may still get partitions while it runs."""
    return task < assignment.tasks and (context.backfill_plan is None or bool(shares_of(context, assignment, task)))


def _require_running(context: RunContext) -> None:
    connector = context.connector
    if context.is_backfill:
        require_resumable(context)
    if connector.target_state == "stopped" or (context.stream == LIVE and connector.target_state != "running"):
        raise noted(  # a person's wish, and no failure
            ConfigError(
                f"Connector {connector.name} is {connector.target_state}",
                next_step=f"Start it again with `waybill connectors resume {connector.name}`",
            )
        )


@_staying()
def _run_task(context: RunContext, shared: _Shared, task: int) -> TaskSummary:
    context = replace(context, listener=context.listener.of(connector=context.connector.name, task=task))
    with ExitStack() as resources:
        with _naming(context):
            source = systems.source(revealed(context.resolved.source), resources)
            sink = systems.sink(revealed(context.resolved.sink), resources)
        if context.replays_letters:
            source = letters_source(source)
        run = TaskRun(context, shared.assignment, task, source, sink, shared.named)
        try:
            return run_backfill_task(context, run) if context.is_backfill else run.run()
        finally:
            # A task that never got its lease leaves the figures of the run before; a backfill those of the live stream.
            if run.steps and context.stream == LIVE:
                write_metrics(context.home, context.connector.name, task, run.steps, run.summary.records())


@contextmanager
def _naming(context: RunContext) -> Iterator[None]:
    """Whose options are wrong, where the error does not say it: an end of a connector does not know its name."""
    try:
        yield
    except ConfigError as error:
        error.where = error.where or f"connector {context.connector.name}"
        raise


@dataclass(frozen=True)
class _Shared:
    """Who has which partition; `named` are those that the document names now, None: all."""

    assignment: Assignment
    named: frozenset[Partition] | None = None


@_staying()
def _assigned(context: RunContext) -> _Shared:
    """Who has which partition now, new ones included; nobody of an older version is at work any more. A backfill
    shares nothing out, and moves what it began with: it follows the live stream."""
    uid = context.connector.uid
    recognise(
        context.ledger,
        context.home,
        holder=context.holder,
        ttl_s=context.times.ttl_s,
        say=context.listener.log,
    )
    shared = _shared_out(context) if context.stream == LIVE else _Shared(context.ledger.assignment(uid))
    end_older_versions(
        context.ledger,
        uid,
        shared.assignment.version,
        stream=context.stream,
        holder=context.holder,
        home=context.home,
        times=context.times,
        say=context.listener.log,
    )
    return shared


def _shared_out(context: RunContext) -> _Shared:
    uid, ledger, resolved = context.connector.uid, context.ledger, context.resolved
    assignment = None
    with ExitStack() as resources:
        with _naming(context):
            source = systems.source(revealed(resolved.source), resources)
        while assignment is None:  # a file that another process has split meanwhile is not split again
            shares = ledger.partitions(uid)
            named = source.partitions(to_be_told(source, shares, ledger.partition_states(uid)))
            where, who = f"connector {context.connector.name}", f"source {resolved.source.system}"
            require_no_secret(where, who, "a partition", named)
            assignment = ledger.assign_beside(uid, named, resolved.tasks, resolved.assignment, shares)
        keep_first(ledger, context.connector, resolved, source, named)
    return _Shared(assignment, frozenset(named))
