"""The operators of the DAGs: thin shells around `service.scheduled`, which put a run into Airflow's terms.

An error that is expected is one line in the log, and the exit code of its class for `retrying`; no stack trace.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, Context
from airflow.sdk.api.datamodels._generated import DagRunType
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowRescheduleException,
    AirflowSkipException,
    DownstreamTasksSkipped,
)

from connect_core.airflow.links import ReceiptsLink
from connect_core.errors import Failure, Retriable, WaybillError
from connect_core.masking import mask_secrets
from connect_core.orchestration import names
from connect_core.service.processes import die_with

if TYPE_CHECKING:
    from connect_core.service.scheduled import Request, TaskAttempt


class Replicate(BaseOperator):
    """One task of a run: leases its partitions, plans, moves, settles. `alone` when the run has no other task."""

    ui_color = "#e8f0fe"
    operator_extra_links = (ReceiptsLink(),)

    def __init__(self, *, connector: str, number: int, alone: bool, **arguments: Any) -> None:
        super().__init__(do_xcom_push=False, **arguments)
        self.connector = connector
        self.number = number
        self.alone = alone

    def execute(self, context: Context) -> None:
        die_with_the_supervisor()
        from connect_core.service.run_report import listener
        from connect_core.service.scheduled import replicate

        self._stopped = False
        with told(self.log.error):
            attempt = attempt_from(self.connector, self.number, context)
            moved = replicate(attempt, _engine_address, lambda: self._halted(context), listener(self.log.info))
        if moved is None:
            raise AirflowSkipException("there is nothing for this task to do")
        if not moved.finished and not self._stopped:
            self.log.info("It continues when the DAG is switched on again")
            raise AirflowRescheduleException(datetime.now(UTC))
        if self.alone and moved.finished and moved.empty:
            self.log.info("Nothing was there to move, so there is nothing to reconcile")
            raise DownstreamTasksSkipped(tasks=[names.RECONCILE])

    def on_kill(self) -> None:
        """Somebody marked or cleared this task in Airflow: ends at the next range boundary, or is killed before."""
        self._stopped = True

    def _halted(self, context: Context) -> str:
        if self._stopped:
            return "stopped by a person in Airflow"
        return "paused in Airflow" if _is_paused(context["dag"].dag_id) else ""


class Reconcile(BaseOperator):
    """Adds up the receipts of a run, checks that they add up, and lets the asset's event carry the sum."""

    ui_color = "#e6f4ea"
    operator_extra_links = (ReceiptsLink(),)

    def __init__(self, *, connector: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.connector = connector

    def execute(self, context: Context) -> dict[str, Any]:
        die_with_the_supervisor()
        from connect_core.service.opened import working
        from connect_core.service.run_report import counts, noteworthy
        from connect_core.service.scheduled import reconcile

        with told(self.log.error), working() as opened:
            attempt = attempt_from(self.connector, 0, context)
            total = reconcile(opened.ledger, opened.ledger.connector(self.connector), attempt)
        if not total["ranges"]:
            raise AirflowSkipException("nothing was there to move")
        for line in (f"The receipts add up: {counts(total)}", *noteworthy(total)):
            self.log.info(line)
        for outlet in self.outlets:
            context["outlet_events"][outlet].extra = total
        return total


class Verify(BaseOperator):
    """Reads a share of the target again, and fails where it is not as the receipts say."""

    ui_color = "#fef7e0"

    def __init__(self, *, connector: str, share: float, **arguments: Any) -> None:
        super().__init__(do_xcom_push=False, **arguments)
        self.connector = connector
        self.share = share

    def execute(self, context: Context) -> None:
        die_with_the_supervisor()
        from connect_core.service import verifying
        from connect_core.service.opened import reading

        with told(self.log.error), reading() as opened:
            found = verifying.verified(opened, self.connector, share=self.share)
            if not found["ranges"]:
                raise AirflowSkipException("nothing was settled yet")
            self.log.info(verifying.words(found))
            verifying.demand_same(found, self.log.error)


class Broken(BaseOperator):
    """Stands for a connector whose document makes no DAG: fails with what is wrong with it."""

    def __init__(self, *, connector: str, error: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.connector = connector
        self.error = error

    def execute(self, context: Context) -> None:
        from connect_core.service.scheduled import refuse

        with told(self.log.error):
            refuse(self.connector, _of(context), self.error)


def attempt_from(connector: str, number: int, context: Context) -> TaskAttempt:
    """What Airflow knows of an attempt: by which DAG it runs, with which words of the form, for which tick."""
    from connect_core.service.scheduled import TaskAttempt

    dag_id, run = context["dag"].dag_id, context["dag_run"]
    return TaskAttempt(
        connector=connector,
        task=number,
        of=_of(context),
        accept_gaps=bool(context["params"].get("accept_gaps", False)),
        request=_request(context) if dag_id.startswith(names.BACKFILL_DAG) else None,
        tick=context["logical_date"] if run.run_type == DagRunType.BACKFILL else None,
    )


def _request(context: Context) -> Request:
    from connect_core.service.scheduled import Request

    given = context["params"]
    return Request(
        begin=_word(given["from"]),
        end=_word(given["to"]),
        ranges=_lines(given["ranges"]),
        run=_word(given["run"]),
        sink=_lines(given["sink"]),
        id=_word(given["id"]) or names.backfill_id(context["run_id"]),
        accept_gaps=bool(given["accept_gaps"]),
        why=f"Airflow run {context['run_id']}",
    )


def _word(given: str | None) -> str:
    return (given or "").strip()


def _lines(given: list[str] | None) -> tuple[str, ...]:
    """The form gives the empty lines of its field, too."""
    return tuple(filter(None, map(_word, given or ())))


def _of(context: Context) -> str:
    return names.attempt_of(context["dag"].dag_id, context["run_id"])


def _engine_address() -> str:
    """Of the connection, through the provider's hook: a secret, never to be logged."""
    from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook

    return SparkConnectHook(names.ENGINE_CONNECTION).get_connection_url()


def _is_paused(dag_id: str) -> bool:
    """What Airflow's switch says now. While Airflow does not answer a run goes on: it will be asked again."""
    from airflow.sdk.exceptions import AirflowRuntimeError
    from airflow.sdk.execution_time import task_runner
    from airflow.sdk.execution_time.comms import DagResult, GetDag

    try:
        answer = task_runner.SUPERVISOR_COMMS.send(GetDag(dag_id=dag_id))
    except AirflowRuntimeError:
        return False
    return isinstance(answer, DagResult) and answer.is_paused


def die_with_the_supervisor() -> None:
    """Airflow replaces a task whose supervisor was killed and does not end the process that it replaces: the kernel
    does. The lease fences whatever is left."""
    supervisor = os.getppid()
    if supervisor == 1:
        raise SystemExit(Retriable.exit_code)
    die_with(supervisor)


@contextmanager
def told(log: Callable[[str], object]) -> Iterator[None]:
    """An expected error becomes a line of the log and the exit code of its class; any other one its stack trace, and
    the code of what may be tried again. Airflow would log it with what references stand for."""
    try:
        yield
    except WaybillError as error:
        log(str(error))
        sys.exit(error.exit_code)
    except AirflowException:  # a task that is skipped or put off: Airflow's to understand
        raise
    except Exception as error:
        log(mask_secrets("".join(traceback.format_exception(error))))
        log(Failure.of(error).words)
        sys.exit(Retriable.exit_code)
