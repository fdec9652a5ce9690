"""The button *Receipts* of a task in Airflow: leads to the page of `receipts_page`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

PREFIX = "/waybill"


class ReceiptsLink(BaseOperatorLink):
    name = "Receipts"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Without the host: people come by other names than the one Airflow has for itself, and are logged in there."""
        from airflow.sdk.configuration import conf

        base = urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/")
        query = urlencode({"dag_id": ti_key.dag_id, "run_id": ti_key.run_id})
        return f"{base}{PREFIX}/receipts?{query}"
