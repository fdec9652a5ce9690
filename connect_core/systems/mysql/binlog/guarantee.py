"""What a change stream promises (docs/guarantees.md)."""

from __future__ import annotations

from connect_core.sdk.guarantee import Guarantee

GUARANTEE = Guarantee(
    "exactly once",
    (
        "The server keeps its log until it is read (binlog_expire_logs_seconds).",
        "binlog_format is ROW, binlog_row_image and binlog_row_metadata are FULL; no session turns its log off"
        " (sql_log_bin) or on another format.",
        "The log has what happens to these tables: no foreign key changes their rows (CASCADE, SET NULL), no"
        " binlog_do_db or binlog_ignore_db leaves them out, and a replica has log_slave_updates.",
        "The server loses in a crash neither the end of its log nor what the log has: sync_binlog and"
        " innodb_flush_log_at_trx_commit are 1; a replica that takes its place has GTIDs, and all that was read.",
        "A prepared transaction (XA) is committed.",
    ),
    "the server's log",
)
