"""The button *Receipts* of a task in Airflow: leads to the page of `receipts_page`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

from urllib.parse import urlencode

from connect_core.orchestration import names

PREFIX = "/waybill"


class ReceiptsLink(BaseOperatorLink):
    name = "Receipts"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        from airflow.sdk.configuration import conf

        base = conf.get("api", "base_url", fallback="").rstrip("/")
        connector = names.connector_of(ti_key.dag_id) or ""
        query = urlencode({"connector": connector, "run": names.attempt_of(ti_key.dag_id, ti_key.run_id)})
        return f"{base}{PREFIX}/receipts?{query}"
