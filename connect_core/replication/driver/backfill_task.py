"""One task of a backfill or a replay: whether it may go on, and what the ledger is told when it ends."""

from __future__ import annotations

from connect_core.errors import ConfigError, LeaseHeld, Retriable, WaybillError
from connect_core.replication.driver.context import Setting, shares_of
from connect_core.replication.driver.summary import TaskSummary
from connect_core.replication.driver.task import TaskRun


def require_going_on(setting: Setting) -> None:
    """Raises ConfigError for a backfill that was called off, or whose connector was deleted; one that had failed is
    running again."""
    ledger, uid = setting.ledger, setting.connector.uid
    stored = ledger.backfill(uid, setting.stream)
    if stored is None or stored.state == "cancelled" or ledger.standing(uid).deleted:
        why = "was cancelled" if stored and stored.state == "cancelled" else "is not there any more"
        raise ConfigError(
            f"{setting.stream} {why}",
            where=f"connector {setting.connector.name}",
            next_step=f"See `waybill backfills list {setting.connector.name}`; another one begins with another --id",
        )
    ledger.resume_backfill(uid, setting.stream)


def concluding(setting: Setting, run: TaskRun) -> TaskSummary:
    """Runs one task; afterwards the ledger knows whether everything is done, or that it failed for good."""
    ledger, uid = setting.ledger, setting.connector.uid
    try:
        summary = run.run()
    except (Retriable, LeaseHeld):
        raise
    except WaybillError:
        ledger.end_backfill(uid, setting.stream, "failed")
        raise
    if is_done(setting):
        ledger.end_backfill(uid, setting.stream, "done")
    return summary


def is_done(setting: Setting, task: int | None = None) -> bool:
    """Whether every part of the backfill is settled; with `task` those of its partitions, as these are shared out."""
    course, ledger, uid = setting.course, setting.ledger, setting.connector.uid
    if course is None:
        raise ValueError(f"stream {setting.stream} of {setting.connector.name} has no course")
    wanted = course.partitions() if task is None else shares_of(setting, ledger.assignment(uid), task).keys()
    positions = ledger.positions(uid, setting.stream, wanted)
    return course.is_done(positions) and not ledger.open_ranges(uid, setting.stream, wanted)
