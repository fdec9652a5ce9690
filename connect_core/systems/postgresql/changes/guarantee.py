"""What a change stream promises (docs/guarantees.md)."""

from __future__ import annotations

from connect_core.sdk.guarantee import Guarantee

GUARANTEE = Guarantee(
    "exactly once",
    (
        "Only this connector reads the slot, and nobody else moves it on.",
        "The server keeps the log that the slot needs: max_slot_wal_keep_size is not exceeded.",
        "The publication has the tables from before the slot on, and is not dropped.",
        "A standby that takes over has the slot, and all that was read.",
        "The server keeps what it has committed, and is not put back to an older state of its files.",
    ),
    "the database, by commits",
)
