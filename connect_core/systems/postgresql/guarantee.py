"""What the sink promises, and under which conditions."""

from __future__ import annotations

from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.plugin import Role
from connect_core.sdk.values import Json

_KEPT = "The database keeps what it has committed: no failover to a standby that lags, synchronous_commit is not off"
_MARKERS = "Nobody changes or deletes the rows of the table of markers"
_ONE_PARTITION = "All records of a key come from one partition"
_KNOWN_KEY = "An update that changes the key brings the row as it was (before), or comes as a delete and an insert"
_SAME_TABLE = (
    "Nobody empties the table, or replaces it together with the table of markers by two that do not belong together"
)
_NO_SWAP = "No transaction gives a row the key that another row has until later in it (SET id = id + 1)"
_ACCEPTED = "The table of accepts_table has all rows of the former one"
_LETTERS = (
    "No ledger is brought back from a backup of before the last 1,000 stretches of refused rows of a partition, nor of"
    " before Waybill kept them: what was refused before these counts as delivered then"
)
_NEWEST = "No backfill and no replay of dead letters moves older records of a key over newer rows"


def guarantee(role: Role, options: Json) -> Guarantee:
    accepted = (_ACCEPTED,) if options.get("accepts_table") else ()
    of_keys = (_ONE_PARTITION, _KNOWN_KEY, _NO_SWAP, _NEWEST) if options.get("mode") == "upsert" else ()
    conditions = tuple(f"{one}." for one in (_KEPT, _MARKERS, _SAME_TABLE, *accepted, _LETTERS, *of_keys))
    return Guarantee("exactly once", conditions, order="" if of_keys else None)
