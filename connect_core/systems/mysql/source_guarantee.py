"""What a table promises as a source (docs/guarantees.md)."""

from __future__ import annotations

from connect_core.sdk.guarantee import Guarantee

GUARANTEE = Guarantee(
    "exactly once",
    (
        "The number of each row is drawn by the statement that inserts it (AUTO_INCREMENT); else no row is inserted"
        " after one with a higher number is committed.",
        "Nobody changes the number of a row, sets the counter back, empties the table (TRUNCATE), or puts another one"
        " in its place.",
        "With performance_schema: the instrument of metadata locks was enabled when the oldest open transaction began.",
        "All rows are inserted at this server: no replication and no cluster brings some.",
        "The database keeps what it has committed: innodb_flush_log_at_trx_commit is 1, and no failover goes to a"
        " replica that lags.",
        "A row is not deleted before it is read.",
    ),
    "the table",
)
