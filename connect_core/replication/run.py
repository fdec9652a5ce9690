"""One run of a connector, here and now: every task side by side, each under its own lease."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

from connect_core import systems
from connect_core.config import revealed
from connect_core.contracts import LIVE, Receipt
from connect_core.errors import ConfigError, LeaseHeld, Retriable, WaybillError
from connect_core.observe import write_metrics
from connect_core.planning import Assignment
from connect_core.replication.backfill import concluding, require_going_on
from connect_core.replication.groups import keep_in_step
from connect_core.replication.leasing import end_older_versions
from connect_core.replication.restoring import recognise
from connect_core.replication.setting import Setting, shares_of
from connect_core.replication.summary import TaskSummary
from connect_core.replication.task import TaskRun


@dataclass(frozen=True)
class RunSummary:
    """What the tasks of one run did, in order of task."""

    connector: str
    tasks: tuple[TaskSummary, ...]

    def receipts(self) -> list[Receipt]:
        return [receipt for task in self.tasks for receipt in task.receipts]


def run_connector(setting: Setting) -> RunSummary:
    """Moves what is there now, then ends. Raises the gravest error of a task after all tasks have ended."""
    _require_running(setting)
    assignment = _assigned(setting)
    busy = [task for task in range(assignment.tasks) if _has_work(setting, assignment, task)]
    with ThreadPoolExecutor(max_workers=assignment.tasks, thread_name_prefix="task") as pool:
        running = [pool.submit(_run_task, setting, assignment, task) for task in busy]
    errors = [error for future in running if (error := future.exception())]
    if errors:
        raise max(errors, key=_gravity)
    keep_in_step(setting)
    return RunSummary(setting.connector.name, tuple(future.result() for future in running))


def run_task(setting: Setting, task: int) -> TaskSummary | None:
    """One task of a run whose other tasks have processes of their own. None when the partitions are shared by fewer
    tasks than that, or it has none of those that a backfill moves: there is nothing for it to do."""
    _require_running(setting)
    assignment = _assigned(setting)
    if not _has_work(setting, assignment, task):
        return None
    summary = _run_task(setting, assignment, task)
    if task == 0:  # one for all: what the others settle after that is of the next run
        keep_in_step(setting)
    return summary


def _has_work(setting: Setting, assignment: Assignment, task: int) -> bool:
    """A live task may still get partitions while it runs."""
    return task < assignment.tasks and (setting.course is None or bool(shares_of(setting, assignment, task)))


def _require_running(setting: Setting) -> None:
    connector = setting.connector
    if setting.stream != LIVE:
        require_going_on(setting)
        return
    if connector.target_state != "running":
        raise ConfigError(
            f"connector {connector.name} is {connector.target_state}",
            next_step=f"Start it again with `waybill connectors resume {connector.name}`",
        )


def _run_task(setting: Setting, assignment: Assignment, task: int) -> TaskSummary:
    with ExitStack() as resources:
        source = systems.source(revealed(setting.resolved.source), resources)
        sink = systems.sink(revealed(setting.resolved.sink), resources)
        run = TaskRun(setting, assignment, task, source, sink)
        try:
            return run.run() if setting.stream == LIVE else concluding(setting, run)
        finally:
            # A task that never got its lease leaves the figures of the run before; a backfill those of the live stream.
            if run.steps and setting.stream == LIVE:
                write_metrics(setting.home, setting.connector.name, task, run.steps, run.summary.records())


def _assigned(setting: Setting) -> Assignment:
    """Who has which partition now, new ones included; nobody of an older version is at work any more. A backfill
    shares nothing out: it follows the live stream."""
    uid = setting.connector.uid
    recognise(
        setting.ledger,
        setting.home,
        holder=setting.holder,
        ttl_s=setting.times.ttl_s,
        say=setting.listener.say,
    )
    assignment = _shared_out(setting) if setting.stream == LIVE else setting.ledger.assignment(uid)
    end_older_versions(
        setting.ledger,
        uid,
        assignment.version,
        stream=setting.stream,
        holder=setting.holder,
        home=setting.home,
        times=setting.times,
        say=setting.listener.say,
    )
    return assignment


def _shared_out(setting: Setting) -> Assignment:
    uid = setting.connector.uid
    with ExitStack() as resources:
        source = systems.source(revealed(setting.resolved.source), resources)
        partitions = source.partitions(list(setting.ledger.partitions(uid)))
    return setting.ledger.assign(uid, partitions, setting.resolved.tasks, setting.resolved.assignment)


def _gravity(error: BaseException) -> int:
    """What a person must see first: foreign errors, then what no retry mends, then what another holder explains."""
    if not isinstance(error, WaybillError):
        return 3
    if isinstance(error, Retriable):
        return 0
    return 1 if isinstance(error, LeaseHeld) else 2
