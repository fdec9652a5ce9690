"""The operator of connectors whose engine is spark-submit: Spark's provider starts the job, which is the driver.

The job says in a file how it ended (`service.submissions`), so that its errors are reported and retried as those of any
task. It is bound to this process: when Airflow's task is killed, the kernel ends the job, and its lanes with it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowSkipException, DownstreamTasksSkipped

from connect_core.airflow.links import ReceiptsLink
from connect_core.airflow.operators import attempt_from, die_with_the_supervisor, told
from connect_core.errors import Unreachable
from connect_core.orchestration import names
from connect_core.service.submissions import application, submission

if TYPE_CHECKING:
    from airflow.sdk import Context

    from connect_core.sdk.values import Json
    from connect_core.service.scheduled import TaskAttempt

SUBMIT_CONNECTION = "waybill_submit"
"""The Airflow connection (type spark) that says where spark-submit runs the job."""


class SubmittedReplicate(SparkSubmitOperator):
    """One task of a run, as `Replicate`, in a Spark application of its own."""

    ui_color = "#fef7e0"
    template_fields = ()
    operator_extra_links = (ReceiptsLink(),)

    def __init__(self, *, connector: str, number: int, alone: bool, **arguments: Any) -> None:
        super().__init__(
            application=str(application()),
            conn_id=SUBMIT_CONNECTION,
            name=f"waybill-{connector}",
            do_xcom_push=False,
            **arguments,
        )
        self.connector = connector
        self.number = number
        self.alone = alone

    def execute(self, context: Context) -> None:
        die_with_the_supervisor()

        from connect_core.service.scheduled import is_empty

        attempt = attempt_from(self.connector, self.number, context)
        with told(self.log.error), TemporaryDirectory(prefix="waybill-submit-") as folder:
            summary = self._submitted(attempt, context, Path(folder, "result.json"))
        if not summary["tasks"]:
            raise AirflowSkipException("the partitions are shared by fewer tasks than this DAG was made with")
        if self.alone and not summary["ranges"] and is_empty(attempt):
            raise DownstreamTasksSkipped(tasks=[names.RECONCILE])

    def _submitted(self, attempt: TaskAttempt, context: Context, result: Path) -> Json:
        from connect_core.service.run_report import listener
        from connect_core.service.scheduled import stream_for

        stream = stream_for(attempt, listener(self.log.info))
        if stream is None:
            raise AirflowSkipException("there is nothing for this task to do")
        master = str(self._get_hook()._connection["master"])
        home = Path(os.environ["WAYBILL_HOME"])
        given = submission(attempt, stream, master=master, java=_java(), home=home, result=result)
        self.application_args, self.conf, self.env_vars = given.arguments, given.settings, given.environment
        try:
            super().execute(context)
        except AirflowException as error:  # the job's own words are in the result, and better
            self.log.info("spark-submit: %s", error)
            return given.ended(well=False)
        return given.ended(well=True)


def _java() -> Path:
    home = os.environ.get("JAVA_HOME")
    found = f"{home}/bin/java" if home else shutil.which("java")
    if not found:
        raise Unreachable("spark-submit needs Java", next_step="Set JAVA_HOME for Airflow's tasks")
    return Path(found).resolve()
