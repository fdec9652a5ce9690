"""What Waybill adds to Airflow's own processes: the page of receipts.

Loaded by every component of Airflow through the entry point `airflow.plugins`.
"""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from connect_core.airflow.links import PREFIX, ReceiptsLink
from connect_core.airflow.receipts_page import app


class WaybillPlugin(AirflowPlugin):
    name = "waybill"
    operator_extra_links: list[Any] = [ReceiptsLink()]  # noqa: RUF012  Airflow declares them as instance attributes
    fastapi_apps: list[Any] = [{"app": app, "url_prefix": PREFIX, "name": "waybill"}]  # noqa: RUF012
