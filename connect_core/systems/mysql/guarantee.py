"""What the sink promises, and under which conditions."""

from __future__ import annotations

from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.values import Json

_KEPT = (
    "The database keeps what it has committed: innodb_flush_log_at_trx_commit is 1, and no failover goes to a replica"
    " that lags"
)
_MARKERS = "Nobody changes or deletes the rows of the table of markers"
_SAME_TABLE = "Nobody empties the table, or puts another one in its place"
_ONE_PARTITION = "All records of a key come from one partition"
_KNOWN_KEY = "An update that changes the key brings the row as it was (before), or comes as a delete and an insert"
_NO_SWAP = "No transaction gives a row the key that another row has until later in it (SET id = id + 1)"
_LETTERS = (
    "No ledger is brought back from a backup of before the last 1,000 stretches of refused rows of a partition: what"
    " was refused before these counts as delivered then"
)
_NEWEST = "No backfill and no replay of dead letters moves older records of a key over newer rows"


def sink_guarantee(options: Json) -> Guarantee:
    of_keys = (_ONE_PARTITION, _KNOWN_KEY, _NO_SWAP, _NEWEST) if options.get("mode") == "upsert" else ()
    conditions = tuple(f"{one}." for one in (_KEPT, _MARKERS, _SAME_TABLE, _LETTERS, *of_keys))
    return Guarantee("exactly once", conditions, order="" if of_keys else None)
