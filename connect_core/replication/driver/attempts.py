"""Attempts that end before they are runs: each leaves a row all the same, so that whoever asks is told of it.

A task's run has its row from when it asks for its lease (`task.TaskRun`). Whatever stops an attempt before that (a
document that does not resolve, an engine or a broker that is away, a topic that is missing) is noted here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from connect_core.errors import Failure, WaybillError
from connect_core.ledger import Ledger
from connect_core.replication.driver.summary import TaskSummary

_NOTED = "_noted_in_the_ledger"


def noted(error: BaseException) -> BaseException:
    """The error itself, of which the ledger knows already, or need not know."""
    setattr(error, _NOTED, True)
    return error


@contextmanager
def recorded(
    ledger: Ledger, uid: str, stream: str, *, task: int = 0, engine: str = "", attempt_of: str | None = None
) -> Iterator[None]:
    """What stops the block becomes a failed run of `task`, unless it is one already. A ledger that does not answer
    cannot be told."""
    try:
        yield
    except Exception as error:
        if not getattr(error, _NOTED, False):
            with suppress(WaybillError):
                run_id = ledger.begin_run(uid, stream, task=task, engine=engine, attempt_of=attempt_of)
                summary = TaskSummary(task, run_id).totals()
                ledger.end_run(run_id, state="failed", failure=Failure.of(error), summary=summary)
                noted(error)
        raise
