"""Where an Airflow of the local stack finds the connection `waybill_engine`: in the stack's record, whenever it asks.

The engine's address has one owner, the record: an engine that was started again may listen elsewhere, and tasks of a
scheduler that was started long before have to find it there. Named in a setting, `AIRFLOW__SECRETS__BACKEND`; Airflow
asks it before it looks at variables and at its own connections.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from airflow.sdk.bases.secrets_backend import BaseSecretsBackend

from connect_core.orchestration.names import ENGINE_CONNECTION


class EngineOfTheStack(BaseSecretsBackend):
    """Knows one connection. It holds a token, which Airflow masks in its logs as it does every password."""

    def get_conn_value(self, conn_id: str, team_name: str | None = None) -> str | None:
        """Of type `spark_connect`, as JSON; None for any other connection, and while the stack has no engine."""
        if conn_id != ENGINE_CONNECTION:
            return None
        from connect_core.service.local_stack import engine_remote

        remote = engine_remote(Path(os.environ["WAYBILL_HOME"]))
        if remote is None:
            return None
        address, _, token = remote.partition("/;token=")
        host, _, port = address.rpartition(":")
        return json.dumps({"conn_type": "spark_connect", "host": host, "port": int(port), "password": token})
