"""What a table promises as a source (docs/guarantees.md)."""

from __future__ import annotations

from connect_core.sdk.guarantee import Guarantee

GUARANTEE = Guarantee(
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
