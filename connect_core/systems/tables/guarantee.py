"""What a table of any database promises as a target, and as a source of rows that were changed, or of all; and what a
query does (docs/guarantees.md)."""

from __future__ import annotations

from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.values import Json

_MARKERS = "Nobody changes or deletes the rows of the table of markers"
_SAME_TABLE = "Nobody empties the table, or puts another one in its place"
_LETTERS = (
    "No ledger is brought back from a backup of before the last 1,000 stretches of refused rows of a partition: what"
    " was refused before these counts as delivered then"
)
_OF_KEYS = (
    "All records of a key come from one partition",
    "An update that changes the key brings the row as it was (before), or comes as a delete and an insert",
    "No transaction gives a row the key that another row has until later in it (SET id = id + 1)",
    "No backfill and no replay of dead letters moves older records of a key over newer rows",
)


def rows_written(
    options: Json, *of_the_database: str, table: tuple[str, ...] = (_SAME_TABLE,), letters: str = _LETTERS
) -> Guarantee:
    """Of a sink with these options. `table` is what nobody does to the table, `letters` what holds of dead letters when
    a ledger is brought back."""
    of_keys = _OF_KEYS if options.get("mode") == "upsert" else ()
    conditions = tuple(f"{one}." for one in (*of_the_database, _MARKERS, *table, letters, *of_keys))
    return Guarantee("exactly once", conditions, order="" if of_keys else None)


_AT_A_SERVER = "The database keeps what it has committed: no failover to a server that lags"


def changed_rows(
    *of_the_database: str, clock: str = "the database", keeps: str = f"{_AT_A_SERVER}, or whose clock does."
) -> Guarantee:
    """Of each row the version that is there when a pass reads it, at least its last one. `clock`: whose that is by
    which times are set."""
    return Guarantee(
        "exactly once",
        (
            "What counts are the versions of rows that are there when they are read: of several within a short time the"
            " last one; deletes are not seen.",
            f"Each insert and each update sets the column of the time of the last change, by the clock of {clock} and"
            " in UTC.",
            *of_the_database,
            f"The clock of {clock} is not set back by more than delay_s; where a run sees that it was, all rows are"
            " read again.",
            keeps,
        ),
        "each row",
    )


def rows_of_query(*of_the_database: str, keeps: str = f"{_AT_A_SERVER}.") -> Guarantee:
    """Of new rows."""
    return Guarantee(
        "exactly once",
        (
            "A row of the result is there, with all that it is joined from, when the transaction ends that draws its"
            " number; else it does not come to be there after one with a higher number.",
            "Numbers are drawn from one sequence, and no two rows of the result ever have one number.",
            *of_the_database,
            keeps,
            "A row does not leave the result before it is read.",
        ),
        "the query",
    )


def changed_rows_of_query(changed: Guarantee) -> Guarantee:
    """Of rows that come again, by what holds of those of a table."""
    mine = (
        "Whatever changes a row of the result, in whichever table of the query, or brings it there, sets its time.",
        "No two rows of the result ever have one number.",
    )
    return Guarantee(changed.delivery, (*changed.conditions, *mine), changed.order)


WHOLE_TABLE = Guarantee(
    "exactly once",
    (
        "Each pass brings all rows again, each once, as it is when it is read. One that is inserted or deleted while"
        " the pass lasts may be in it or not; deletes are not seen.",
        "No row gets another number, or another key where its key numbers it, while a pass lasts.",
    ),
    "a pass over the table",
)
