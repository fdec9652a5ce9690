"""Runs: one execution of one task. Called by the driver at its start and end; not fenced, for a run that lost its lease
must still be able to say how it ended."""

from __future__ import annotations

import secrets
from dataclasses import asdict
from datetime import datetime
from typing import Literal

import sqlalchemy as sa
from sqlalchemy import Connection

from connect_core.errors import ConfigError, Failure
from connect_core.ledger.database import Transactions, now
from connect_core.ledger.rows import Row
from connect_core.ledger.tables import RANGES, RUNS
from connect_core.sdk.values import Json

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"  # without i, l, o and u: read aloud and typed by people
_TIME_DIGITS, _RANDOM_DIGITS = 9, 4


def new_run_id(moment: datetime) -> str:
    """13 characters; run ids sort by their start, to the millisecond."""
    value = int(moment.timestamp() * 1000)
    digits = [_DIGITS[(value >> (5 * place)) & 31] for place in reversed(range(_TIME_DIGITS))]
    return "".join(digits + [secrets.choice(_DIGITS) for _ in range(_RANDOM_DIGITS)])


class Runs(Transactions):
    """The runs' part of the ledger."""

    def begin_run(self, uid: str, stream: str, *, task: int, engine: str, attempt_of: str | None = None) -> str:
        """The new run's id. `attempt_of` names what is tried again (an Airflow run, an earlier run)."""
        started_at = now()
        run_id = new_run_id(started_at)
        row = {"id": run_id, "uid": uid, "stream": stream, "task": task, "engine": engine, "attempt_of": attempt_of}
        with self._write() as connection:
            connection.execute(RUNS.insert().values(**row, state="running", started_at=started_at))
        return run_id

    def knows_run(self, run_id: str) -> bool:
        """Whether there is such a run."""
        with self._read() as connection:
            return connection.execute(_ONE, {"run_id": run_id}).one_or_none() is not None

    def end_run(self, run_id: str, *, state: Literal["done", "failed"], failure: Failure | None, summary: Json) -> None:
        """Raises ConfigError when there is no such run.

        A run that is done had the lease: older runs of its task that never said how they ended are marked "lost". Of
        runs that found nothing to do, one after the other, the last one is kept: it tells that somebody looked.
        """
        ended_at = now()
        stored = None if failure is None else asdict(failure)
        with self._write() as connection:
            ended = {"state": state, "failure": stored, "summary": summary, "ended_at": ended_at}
            if not connection.execute(_ENDED, {"run_id": run_id, **ended}).rowcount:
                raise _no_run(run_id)
            if state == "done":
                task = _task_of(connection, run_id)
                connection.execute(_OLDER_AND_SILENT, {**task, "state": "lost", "ended_at": ended_at})
                if not summary.get("ranges", 1):
                    _forget_idle_before(connection, task)


_SAME_TASK = (
    (RUNS.c.uid == sa.bindparam("of_uid"))
    & (RUNS.c.stream == sa.bindparam("of_stream"))
    & (RUNS.c.task == sa.bindparam("of_task"))
)
_OLDER = RUNS.c.id < sa.bindparam("run_id")

# Built once: building a statement costs more than running it.
_ENDED = RUNS.update().where(RUNS.c.id == sa.bindparam("run_id"))
_ONE = sa.select(RUNS).where(RUNS.c.id == sa.bindparam("run_id"))
_BEFORE = (
    sa.select(RUNS)
    .where(_SAME_TASK, _OLDER)
    .order_by(RUNS.c.uid.desc(), RUNS.c.stream.desc(), RUNS.c.task.desc(), RUNS.c.id.desc())
    .limit(1)
)
_OLDER_AND_SILENT = RUNS.update().where(_SAME_TASK, sa.text("state = 'running'"), _OLDER)


def _task_of(connection: Connection, run_id: str) -> Row:
    this = connection.execute(_ONE, {"run_id": run_id}).one()
    return {"run_id": run_id, "of_uid": this.uid, "of_stream": this.stream, "of_task": this.task}


def _forget_idle_before(connection: Connection, task: Row) -> None:
    """Removes the run before this one of its task when that had nothing to do either."""
    before = connection.execute(_BEFORE, task).one_or_none()
    if before is not None and before.state == "done" and (before.summary or {}).get("ranges") == 0:
        ranges = sa.exists().where(RANGES.c.run_id == before.id)
        connection.execute(RUNS.delete().where(RUNS.c.id == before.id, ~ranges))


def _no_run(run_id: str) -> ConfigError:
    return ConfigError(f"There is no run {run_id}", next_step="See `waybill runs`")
