"""What a table, or a query, promises as a source (docs/guarantees.md)."""

from __future__ import annotations

from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.values import Json
from connect_core.systems.tables.guarantee import (
    WHOLE_TABLE,
    changed_rows,
    changed_rows_of_query,
    rows_of_query,
)

_NEW_ROWS = Guarantee(
    "exactly once",
    (
        "The number of each row comes from the column's own sequence, in the transaction that inserts the row; else no"
        " row is inserted after one with a higher number is committed.",
        "Nobody changes the number of a row, or sets the sequence back.",
        "The database keeps what it has committed: no failover to a standby that lags, synchronous_commit is not off.",
        "A row is not deleted before it is read.",
    ),
    "the table",
)
_BEGIN = (
    "That time is the begin of the transaction (now()) or later, and no session needs delay_s from the moment at which"
    " its transaction begins until others see it."
)
_CHANGED_ROWS = changed_rows(_BEGIN)
_ELSEWHERE = "No function that the query calls reads from elsewhere (dblink)."
_QUERY = rows_of_query(
    "Nobody changes the number of a row, or sets the sequence back: where numbers are a column of a table, that is"
    " noticed.",
    _ELSEWHERE,
)
_CHANGES_OF_QUERY = changed_rows_of_query(changed_rows(_BEGIN, _ELSEWHERE))


def source_guarantee(options: Json) -> Guarantee:
    if options.get("bulk"):
        return WHOLE_TABLE
    if options.get("query"):
        return _CHANGES_OF_QUERY if options.get("timestamp") else _QUERY
    return _CHANGED_ROWS if options.get("timestamp") else _NEW_ROWS
