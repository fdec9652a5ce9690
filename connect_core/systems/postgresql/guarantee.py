"""What the sink promises, and under which conditions."""

from __future__ import annotations

from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.plugin import Role
from connect_core.sdk.values import Json
from connect_core.systems.tables.guarantee import rows_written

_KEPT = "The database keeps what it has committed: no failover to a standby that lags, synchronous_commit is not off"
_SAME_TABLE = (
    "Nobody empties the table, or replaces it together with the table of markers by two that do not belong together"
)
_ACCEPTED = "The table of accepts_table has all rows of the former one"
_LETTERS = (
    "No ledger is brought back from a backup of before the last 1,000 stretches of refused rows of a partition, nor of"
    " before Waybill kept them: what was refused before these counts as delivered then"
)


def guarantee(role: Role, options: Json) -> Guarantee:
    accepted = (_ACCEPTED,) if options.get("accepts_table") else ()
    return rows_written(options, _KEPT, table=(_SAME_TABLE, *accepted), letters=_LETTERS)
