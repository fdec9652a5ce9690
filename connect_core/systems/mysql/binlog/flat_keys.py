"""The keys of Debezium's connectors for MySQL and MariaDB. Pure.

https://debezium.io/documentation/reference/stable/connectors/mysql.html, "Connector properties"
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect_core.sdk.flat import FlatEnd, FlatHandler, FlatWriter, ignored
from connect_core.systems.tables.debezium_keys import (
    COMMON,
    encrypted,
    flat_class,
    number,
    only,
    snapshot_mode,
    tables,
    tombstones,
)


def _tables(into: FlatWriter, key: str, value: Any) -> None:
    """The connection is to the database of the first one."""
    tables(into, key, value)
    names = [str(one) for one in into.options.get("tables", ())]
    if unfit := [one for one in names if "." not in one]:
        into.refuse(key, f"{unfit[0]!r} has no database: write DATABASE.TABLE")
    elif names:
        into.put(key, "database", names[0].partition(".")[0])


def _schema_changes(into: FlatWriter, key: str, value: Any) -> None:
    if str(value).strip().lower() != "false":
        into.notice(f"{key}: changes of the schema are no records here, unless the source has `schema_changes: true`")


def _complete(into: FlatWriter) -> None:
    """Debezium sends tombstones and changes of the schema also where no key says so."""
    if "tombstones.on.delete" not in into.given:
        tombstones(into, "tombstones.on.delete", "true")
    if "include.schema.changes" not in into.given:
        _schema_changes(into, "include.schema.changes", "true")
    into.notice(
        "offsets: reading begins where the log ends; what Debezium has read up to is not taken over. Stop it first, and"
        " set snapshot.mode=no_data where it has brought the rows"
    )


_NO_HISTORY = "the log has the columns of each row: no history of the schema is kept"
_HISTORY = ("kafka.bootstrap.servers", "kafka.topic", "name.srv.addr", "rocketmq.topic", "internal")
_KEYS: Mapping[str, FlatHandler] = {
    **COMMON,
    "database.server.id": number("server_id"),
    "database.ssl.mode": encrypted,
    "database.include.list": ignored("table.include.list names databases too"),
    "database.whitelist": ignored("table.include.list names databases too"),
    "table.include.list": _tables,
    "table.whitelist": _tables,
    "snapshot.mode": snapshot_mode({"schema_only": "never"}),
    "snapshot.fetch.size": number("snapshot_rows"),
    "incremental.snapshot.chunk.size": number("snapshot_rows"),
    "snapshot.locking.mode": ignored("who changes a row waits while its chunk is copied; nothing else is locked"),
    "signal.data.collection": ignored("waybill snapshot NAME brings rows once more"),
    "include.schema.changes": _schema_changes,
    "bigint.unsigned.handling.mode": only("long"),
    "time.precision.mode": only("adaptive_time_microseconds"),
    "heartbeat.interval.ms": ignored("the position moves on with each run, also where other tables alone change"),
    **dict.fromkeys((f"schema.history.internal.{one}" for one in _HISTORY), ignored(_NO_HISTORY)),
    **dict.fromkeys((f"database.history.{one}" for one in _HISTORY), ignored(_NO_HISTORY)),
    **dict.fromkeys(("database.history", "schema.history.internal"), ignored(_NO_HISTORY)),
}
_MUST = {
    "database.hostname": "where the server is",
    "database.user": "who reads",
    "table.include.list|table.whitelist": "whose changes are read",
}


_END = FlatEnd(_KEYS, _MUST, _complete)
CLASSES = (
    flat_class("MySqlConnector", "io.debezium.connector.mysql.", _END),
    flat_class("MariaDbConnector", "io.debezium.connector.mariadb.", _END),
    flat_class("DebeziumMysqlConnector", "org.apache.rocketmq.connect.debezium.mysql.", _END),
)
