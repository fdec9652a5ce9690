"""What Waybill adds to Airflow's own processes: the page of receipts, and warm executor workers.

Loaded by every component of Airflow through the entry point `airflow.plugins`.
"""

from __future__ import annotations

from typing import Any

from airflow.listeners import hookimpl
from airflow.plugins_manager import AirflowPlugin

from connect_core.orchestration.links import PREFIX, ReceiptsLink
from connect_core.orchestration.receipts_page import app


class WarmWorkers:
    """Loads what every task needs into the scheduler before it forks its executor workers, so that no task has to
    import it. Modules only: no connection or channel is carried across the fork."""

    @hookimpl
    def on_starting(self, component: object) -> None:
        if getattr(component, "job_type", None) == "SchedulerJob":
            from connect_core.engine import spark_connect  # noqa: F401
            from connect_core.orchestration import dags, work  # noqa: F401


class WaybillPlugin(AirflowPlugin):
    name = "waybill"
    operator_extra_links: list[Any] = [ReceiptsLink()]  # noqa: RUF012  Airflow declares them as instance attributes
    fastapi_apps: list[Any] = [{"app": app, "url_prefix": PREFIX, "name": "waybill"}]  # noqa: RUF012
    listeners: list[Any] = [WarmWorkers()]  # noqa: RUF012
