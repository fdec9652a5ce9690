"""What the sink promises, and under which conditions."""

from __future__ import annotations

from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.values import Json
from connect_core.systems.database_urls import file_of

_LOCAL = "The file is on a local file system of the driver's host, whose disk keeps what it was told to"
_UNTESTED = (
    "The database keeps what it has committed, has transactions for the tables and for the markers, lets an UPDATE lock"
    " its row until the end of the transaction, and keeps values of the columns' types as they are. Waybill has tests"
    " with SQLite alone"
)
_UNALTERED = "Nobody alters the table while a run writes"
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
    of_database = (_LOCAL,) if file_of(str(options.get("url"))) else (_UNTESTED, _UNALTERED)
    of_keys = (_ONE_PARTITION, _KNOWN_KEY, _NO_SWAP, _NEWEST) if options.get("mode") == "upsert" else ()
    conditions = tuple(f"{one}." for one in (*of_database, _MARKERS, _SAME_TABLE, _LETTERS, *of_keys))
    return Guarantee("exactly once", conditions, order="" if of_keys else None)
