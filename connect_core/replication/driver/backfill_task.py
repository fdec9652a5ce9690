"""One task of a backfill or a replay: whether it may go on, and what the ledger is told when it ends."""

from __future__ import annotations

from connect_core.errors import ConfigError, LeaseHeld, Retriable, WaybillError
from connect_core.replication.driver.context import RunContext, shares_of
from connect_core.replication.driver.summary import TaskSummary
from connect_core.replication.driver.task import TaskRun


def require_resumable(context: RunContext) -> None:
    """Raises ConfigError for a backfill that was called off, or whose connector was deleted; one that had failed is
    running again."""
    ledger, uid = context.ledger, context.connector.uid
    stored = ledger.backfill(uid, context.stream)
    if stored is None or stored.state == "cancelled" or ledger.standing(uid).deleted:
        why = "was cancelled" if stored and stored.state == "cancelled" else "no longer exists"
        raise ConfigError(
            f"{context.stream} {why}",
            where=f"connector {context.connector.name}",
            next_step=f"See `waybill backfills list {context.connector.name}`; start another one with another --id",
        )
    ledger.resume_backfill(uid, context.stream)


def run_backfill_task(context: RunContext, run: TaskRun) -> TaskSummary:
    """Runs one task; afterwards the ledger knows whether everything is done, or that it failed for good."""
    ledger, uid = context.ledger, context.connector.uid
    try:
        summary = run.run()
    except (Retriable, LeaseHeld):
        raise
    except WaybillError:
        ledger.end_backfill(uid, context.stream, "failed")
        raise
    if is_done(context):
        ledger.end_backfill(uid, context.stream, "done")
    return summary


def is_done(context: RunContext, task: int | None = None) -> bool:
    """Whether every part of the backfill is settled; with `task` those of its partitions, as these are shared out."""
    plan, ledger, uid = context.backfill_plan, context.ledger, context.connector.uid
    if plan is None:
        raise ValueError(f"stream {context.stream} of {context.connector.name} has no backfill plan")
    wanted = plan.partitions() if task is None else shares_of(context, ledger.assignment(uid), task).keys()
    positions = ledger.positions(uid, context.stream, wanted)
    return plan.is_done(positions) and not ledger.open_ranges(uid, context.stream, wanted)
