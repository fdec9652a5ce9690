"""What a table of any database promises as a source of rows that were changed, or of all; and what a query does
(docs/guarantees.md)."""

from __future__ import annotations

from connect_core.sdk.guarantee import Guarantee


def changed_rows(*of_the_database: str) -> Guarantee:
    """Of each row the version that is there when a pass reads it, at least its last one."""
    return Guarantee(
        "exactly once",
        (
            "What counts are the versions of rows that are there when they are read: of several within a short time the"
            " last one; deletes are not seen.",
            "Each insert and each update sets the column of the time of the last change, by the clock of the database"
            " and in UTC.",
            *of_the_database,
            "The clock of the database is not set back by more than delay_s; where a run sees that it was, all rows are"
            " read again.",
            "The database keeps what it has committed: no failover to a server that lags, or whose clock does.",
        ),
        "each row",
    )


def rows_of_query(*of_the_database: str) -> Guarantee:
    """Of new rows."""
    return Guarantee(
        "exactly once",
        (
            "A row of the result is there, with all that it is joined from, when the transaction ends that draws its"
            " number; else it does not come to be there after one with a higher number.",
            "Numbers are drawn from one sequence, and no two rows of the result ever have one number.",
            *of_the_database,
            "The database keeps what it has committed: no failover to a server that lags.",
            "A row does not leave the result before it is read.",
        ),
        "the query",
    )


def changed_rows_of_query(*of_the_database: str) -> Guarantee:
    """Of rows that come again."""
    changed = changed_rows(*of_the_database)
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
