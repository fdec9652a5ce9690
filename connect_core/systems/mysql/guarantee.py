"""What the sink promises, and under which conditions."""

from __future__ import annotations

from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.values import Json
from connect_core.systems.tables.guarantee import rows_written

_KEPT = (
    "The database keeps what it has committed: innodb_flush_log_at_trx_commit is 1, and no failover goes to a replica"
    " that lags"
)


def sink_guarantee(options: Json) -> Guarantee:
    return rows_written(options, _KEPT)
