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

_INSTRUMENTED = (
    "With performance_schema: the instrument of metadata locks was enabled when the oldest open transaction began."
)
_NEW_ROWS = Guarantee(
    "exactly once",
    (
        "The number of each row is drawn by the statement that inserts it (AUTO_INCREMENT); else no row is inserted"
        " after one with a higher number is committed.",
        "Nobody changes the number of a row, sets the counter back, empties the table (TRUNCATE), or puts another one"
        " in its place.",
        _INSTRUMENTED,
        "All rows are inserted at this server: no replication and no cluster brings some.",
        "The database keeps what it has committed: innodb_flush_log_at_trx_commit is 1, and no failover goes to a"
        " replica that lags.",
        "A row is not deleted before it is read.",
    ),
    "the table",
)
_BEGIN = (
    "That time is the begin of the statement that writes the row (NOW()) or later, and no such statement needs delay_s"
    " until it has its lock of the table, nor waits for it as long behind ALTER TABLE or LOCK TABLES."
)
_CHANGED_ROWS = changed_rows(
    _BEGIN,
    _INSTRUMENTED,
    "All rows are written at this server: no replication and no cluster brings some. Nobody empties the table and"
    " fills it with older times (TRUNCATE, another table in its place).",
)
_HERE = "All rows are written at this server: no replication and no cluster brings some."
_QUERY = rows_of_query(
    "Each number is drawn by the statement that inserts its row (AUTO_INCREMENT). Nobody changes it, sets the counter"
    " back, empties a table (TRUNCATE), or puts another one in its place: that is not noticed.",
    _INSTRUMENTED,
    _HERE,
)
_CHANGES_OF_QUERY = changed_rows_of_query(changed_rows(_BEGIN, _INSTRUMENTED, _HERE))


def source_guarantee(options: Json) -> Guarantee:
    if options.get("bulk"):
        return WHOLE_TABLE
    if options.get("query"):
        return _CHANGES_OF_QUERY if options.get("timestamp") else _QUERY
    return _CHANGED_ROWS if options.get("timestamp") else _NEW_ROWS
