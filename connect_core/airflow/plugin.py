"""What Waybill adds to Airflow's own processes: the page of receipts, and the REST routes.

Loaded by every component of Airflow through the entry point `airflow.plugins`; so it imports little.
"""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from connect_core.airflow.links import PREFIX, ReceiptsLink
from connect_core.airflow.web import OnFirstRequest


class WaybillPlugin(AirflowPlugin):
    name = "waybill"
    operator_extra_links: list[Any] = [ReceiptsLink()]  # noqa: RUF012  Airflow declares them as instance attributes
    fastapi_apps: list[Any] = [{"app": OnFirstRequest(), "url_prefix": PREFIX, "name": "waybill"}]  # noqa: RUF012
